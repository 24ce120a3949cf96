package prober

import (
	"time"

	"github.com/sirupsen/logrus"
)

// rest stops all asking and writing while an operator has switched health
// checks off. What was found out before is as old as before a stop of the
// process when they are on again: doubts begin anew, down-writes need new
// evidence, and nobody is asked in a hurry for the appointments in between.
func (c *core) rest(now time.Duration, off bool) {
	if c.resting == off {
		return
	}
	c.resting = off
	c.epoch++
	c.skipBefore, c.clearSince = now, now
	if off {
		c.say(logrus.InfoLevel, "health checks are switched off; nobody is probed", nil)
	} else {
		c.say(logrus.InfoLevel, "health checks are switched on again", nil)
	}
}

// idles tells that this prober writes nothing now, whatever it knows.
func (c *core) idles() bool { return c.observing || c.resting }

func (p *Prober) paused() bool { return p.Paused != nil && p.Paused() }
