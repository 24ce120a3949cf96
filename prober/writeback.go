package prober

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

// Writes that failed are made again after a random part of half a second, one,
// two, ... ten seconds (full jitter).
const (
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 10 * time.Second
)

// bucket lets rate things pass a second, and most at once.
type bucket struct {
	rate, most, level float64
	at                time.Duration
	used              bool
}

// wait tells how long until the next may pass; 0: now.
func (b *bucket) wait(now time.Duration) time.Duration {
	if !b.used {
		b.used, b.level = true, b.most
	} else {
		b.level = min(b.most, b.level+b.rate*max(0, now-b.at).Seconds())
	}
	b.at = now
	if b.level >= 1 {
		return 0
	}
	return time.Duration(math.Ceil((1 - b.level) / b.rate * float64(time.Second)))
}

// take lets one pass; wait must have given 0.
func (b *bucket) take() { b.level-- }

// write is one health write on its way.
type write struct {
	ref     ref
	epoch   uint32
	key     registry.Key
	healthy bool
	took    bool // of an instance that an agent has signed
	slow    bool // let through by the brake
}

// hold notes since when the brake holds a row's down-write; 0: not held.
func (c *core) hold(row *row, at time.Duration) {
	if row.heldAt > 0 {
		c.tally.held--
	}
	if row.heldAt = at; at > 0 {
		c.tally.held++
	}
}

// brakeOn holds a row and asks it again one period later.
func (c *core) brakeOn(now time.Duration, r ref, row *row) {
	c.hold(row, now)
	if !row.asking {
		c.schedule(r, now+c.ProbeInterval)
	}
}

// offer queues the write that an answer just given has made due, if any.
func (c *core) offer(now time.Duration, r ref) {
	row := c.table.get(r)
	healthy := row.opinion.Verdict == health.Up
	if row.believed == healthy {
		c.hold(row, 0)
		return
	}
	if row.pending || c.idles() || row.signed && !c.takesOver(now, row) {
		return
	}
	switch {
	case healthy:
		c.queue(&c.ups, r, row)
	case row.heldAt > 0 && now < row.heldAt+c.ProbeInterval:
		c.schedule(r, row.heldAt+c.ProbeInterval)
	case row.heldAt > 0:
		c.queue(&c.slow, r, row)
	default:
		c.queue(&c.downs, r, row)
	}
}

func (c *core) queue(q *queue, r ref, row *row) {
	row.pending = true
	q.push(r)
}

// takesOver tells whether a write may be made for an instance that an agent has
// signed: down when both our verdict and the registry's belief have stood
// against each other for one period, up when it was us who took it down.
func (c *core) takesOver(now time.Duration, row *row) bool {
	if row.opinion.Verdict == health.Up {
		return row.took
	}
	return now >= max(row.since, row.believedAt)+c.ProbeInterval
}

// wantsWriter tells whether the writer may have something to do.
func (c *core) wantsWriter() bool { return c.ups.len()+c.downs.len()+c.slow.len() > 0 }

// never is longer than anybody waits; whatever changes rings the writer's bell.
const never = time.Hour

// next gives the health write to make now, or how long to wait for one. Up
// comes first. A down-write needs clear guards and an answer to a question that
// was asked after they became clear: without one the target is asked again.
func (c *core) next(now time.Duration) (w write, wait time.Duration, some bool) {
	c.enter(now)
	c.look(now)
	if wait := c.writeAfter - now; wait > 0 {
		return write{}, wait, false
	}
	if !c.wantsWriter() {
		return write{}, never, false
	}
	if wait := c.pace.wait(now); wait > 0 {
		return write{}, wait, false
	}
	if w, some = c.pick(now, &c.ups, health.Up); some {
		return w, 0, true
	}
	if !c.clear {
		c.sayBlind()
		return write{}, never, false
	}
	if w, some = c.pick(now, &c.downs, health.Down); some {
		return w, 0, true
	}
	return c.nextSlow(now)
}

// nextSlow lets 1 % of all targets a second through, at least one.
func (c *core) nextSlow(now time.Duration) (w write, wait time.Duration, some bool) {
	if c.slow.len() == 0 {
		return write{}, never, false
	}
	c.trickle.rate = max(1, float64(c.table.n)/100)
	c.trickle.most = max(1, c.trickle.rate/10)
	if wait := c.trickle.wait(now); wait > 0 {
		return write{}, wait, false
	}
	if w, some = c.pick(now, &c.slow, health.Down); some {
		c.trickle.take()
		w.slow = true
		return w, 0, true
	}
	return write{}, never, false
}

func (c *core) sayBlind() {
	if !c.blind && c.sight.blind() {
		c.blind = true
		c.say(logrus.WarnLevel, "the prober gets no answer from anywhere; marking targets down waits", nil)
	}
}

// pick takes the first of a queue that is still to be written.
func (c *core) pick(now time.Duration, q *queue, verdict health.Verdict) (write, bool) {
	for {
		r, some := q.pop()
		if !some {
			return write{}, false
		}
		row := c.table.get(r)
		switch {
		case row == nil:
		case !row.pending || row.idle || c.idles() || row.opinion.Verdict != verdict || row.believed == (verdict == health.Up):
			row.pending = false
		case verdict == health.Down && row.opinion.Doubted(): // it answers again; the next answer settles it
			row.pending = false
		case verdict == health.Down && row.asked < c.clearSince:
			row.pending = false
			c.hurry(r, now)
		case q == &c.downs && c.brake.engaged(now, c.tally.up):
			row.pending = false
			c.brakeOn(now, r, row)
		default:
			c.pace.take()
			return write{r, c.epoch, row.key(), verdict == health.Up, row.signed, false}, true
		}
	}
}

// stands tells, just before it is made, whether a write is still right.
func (c *core) stands(now time.Duration, w write) bool {
	c.enter(now)
	c.look(now)
	row := c.table.get(w.ref)
	if row == nil || row.idle || c.idles() || (row.opinion.Verdict == health.Up) != w.healthy {
		return false
	}
	return w.healthy || c.clear && w.epoch == c.epoch
}

// outcome is what became of a write.
type outcome uint8

const (
	written outcome = iota
	already         // the registry believed it before
	gone            // the instance is no more
	owned           // an agent has signed it since
	dropped         // no longer right, or the prober stops
	refused         // the registry will not have it
	failed          // not made, or not known whether: to be made again
)

var outcomeNames = [...]string{"written", "already", "gone", "owned", "dropped", "refused", "failed"}

func (o outcome) String() string { return outcomeNames[o] }

// wrote takes what became of a write.
func (c *core) wrote(now time.Duration, w write, o outcome, err error) {
	c.enter(now)
	c.tally.writes[o]++
	c.tallyFailures(now, o, err)
	row := c.table.get(w.ref)
	if row == nil {
		return
	}
	row.pending = false
	switch o {
	case gone:
		c.drop(now, w.ref.row)
	case written, already:
		c.settled(now, row, w, o)
		c.offerLater(now, w, row)
	case owned:
		row.signed = true
	case refused:
		c.sayRefused(row, err)
	case dropped, failed:
		c.again(now, w, row)
	}
}

func (c *core) settled(now time.Duration, row *row, w write, o outcome) {
	if row.believed != w.healthy {
		row.believed, row.believedAt = w.healthy, now
	}
	c.hold(row, 0)
	if row.refused = false; o == written {
		row.wroteAt, row.wrote, row.took = now, w.healthy, w.took && !w.healthy
	}
}

// offerLater offers again when the verdict changed while the write was made.
func (c *core) offerLater(now time.Duration, w write, row *row) {
	if row.decided && !row.opinion.Doubted() && (row.opinion.Verdict == health.Up) != w.healthy {
		c.offer(now, w.ref)
	}
}

// again puts a write that was not made back to the end of its queue, as long
// as it is right.
func (c *core) again(now time.Duration, w write, row *row) {
	switch {
	case (row.opinion.Verdict == health.Up) != w.healthy:
		c.offerLater(now, w, row)
	case w.healthy:
		c.queue(&c.ups, w.ref, row)
	case w.slow:
		c.queue(&c.slow, w.ref, row)
	default:
		c.queue(&c.downs, w.ref, row)
	}
}

func (c *core) sayRefused(row *row, err error) {
	if row.refused {
		return
	}
	row.refused = true
	key := row.key()
	c.say(logrus.WarnLevel, "the registry refuses the health of an instance", logrus.Fields{
		"service": key.Service.String(), "instance": key.Address(), "cause": err.Error(),
	})
}

// tallyFailures slows the writer down while writes fail; said once per row.
func (c *core) tallyFailures(now time.Duration, o outcome, err error) {
	if o == dropped {
		return
	}
	if o != failed {
		if c.failures > 0 {
			c.say(logrus.InfoLevel, "health can be written again", logrus.Fields{"count": c.failures})
		}
		c.failures = 0
		return
	}
	if c.failures++; c.failures == 1 {
		c.say(logrus.WarnLevel, "cannot write health, trying again", logrus.Fields{"cause": err.Error()})
	}
	most := min(backoffFirst<<min(c.failures-1, 10), backoffMost)
	c.writeAfter = now + time.Duration(rand.Int64N(int64(most))) + time.Millisecond
}
