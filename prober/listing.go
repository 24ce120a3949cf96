package prober

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
)

// observe notes whether somebody else writes. Whoever becomes an observer
// forgets what it wanted to write.
func (c *core) observe(now time.Duration, observing bool) {
	c.enter(now)
	if c.observing == observing && c.asked {
		return
	}
	if observing {
		c.say(logrus.InfoLevel, "a prober works inside the registry; this one observes and writes nothing", nil)
	} else if c.asked {
		c.say(logrus.InfoLevel, "no prober works inside the registry any more; this one writes", nil)
	}
	c.asked, c.observing = true, observing
	c.look(now)
}

// begin starts a listing.
func (c *core) begin(now time.Duration) {
	c.enter(now)
	c.sweep++
	c.began = now
}

// page takes one page of a listing. The answer of the registry is contact.
func (c *core) page(now time.Duration, p registry.Page) {
	c.enter(now)
	c.reach(now, nil)
	for _, in := range p.Instances {
		checker, has := p.Checkers[registry.Cluster{Service: in.Service, Name: in.Cluster}]
		c.upsert(now, in, checker, has)
	}
}

// finish ends a complete listing: targets it lacks are dropped, unless it lacks
// so many that it must be seen twice. unread are the services the registry
// could not read. It tells whether the list was believed.
func (c *core) finish(now time.Duration, unread []registry.Service) (believed bool) {
	c.enter(now)
	c.tally.listings++
	c.listed = true
	c.listedAt, c.listingTook = now, now-c.began
	lacking := c.lacking(unread)
	if !c.belief.holds(c.table.n, len(lacking)) {
		c.say(logrus.WarnLevel, "the list of instances has shrunk a lot; waiting until it says so twice", logrus.Fields{"count": len(lacking)})
		return false
	}
	for _, i := range lacking {
		c.drop(now, i)
	}
	return true
}

func (c *core) lacking(unread []registry.Service) (rows []int32) {
	skip := make(map[registry.Service]bool, len(unread))
	for _, s := range unread {
		skip[s] = true
	}
	for i := range c.table.size() {
		if row := c.table.at(i); row.live && row.sweep != c.sweep && !skip[row.service.Value()] {
			rows = append(rows, i)
		}
	}
	return rows
}

// reach notes that the registry was reached, or why it was not.
func (c *core) reach(now time.Duration, why error) {
	c.enter(now)
	before := c.contact
	if !c.contact.tried(why == nil) {
		return
	}
	switch {
	case why != nil:
		c.say(logrus.WarnLevel, "the registry cannot be read; probing goes on with what is known", logrus.Fields{"cause": why.Error()})
	case before.lost:
		c.say(logrus.InfoLevel, "the registry is read again", nil)
	}
	c.look(now)
}
