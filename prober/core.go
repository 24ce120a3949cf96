package prober

import (
	"time"
	"unique"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

// retryAfter is how long after the end of an answer that contradicts the
// verdict the next question comes. With three refusals in a row a target is
// marked 2 s after the first, with three timeouts of 3.2 s after 11.6 s.
const retryAfter = time.Second

// core joins the rules of the prober. It knows no clock and does no I/O; all
// times are counted from the start of the process. It is not safe for
// concurrent use: Prober holds a lock around it.
type core struct {
	Probe
	scope  scope
	offset time.Duration // what the wall clock said at the start, see phased

	table  table
	agenda agenda
	urgent queue // to be asked now: suspects and whatever is in a hurry
	ready  queue // to be asked now: the others
	turn   bool

	ups     queue // health writes that wait
	downs   queue
	slow    queue // downs that the brake lets through one by one
	pace    bucket
	trickle bucket

	pause   pause
	sight   sight
	contact contact
	belief  belief
	brake   brake

	observing   bool // somebody else writes; so it is held until it was asked
	resting     bool // health checks are switched off
	asked       bool // it was asked whether somebody else writes
	listed      bool // one listing was complete
	epoch       uint32
	sweep       uint32
	began       time.Duration // of the current listing
	skipBefore  time.Duration // appointments before this instant were slept through
	clear       bool          // all guards but the brake let down-writes pass
	clearSince  time.Duration
	writeAfter  time.Duration // no write before: the last ones failed
	failures    int           // writes that failed in a row
	braking     bool          // as last said
	blind       bool          // as last said
	tally       tally
	lines       []line
	listedAt    time.Duration
	listingTook time.Duration
	wall        func(now time.Duration) time.Duration // wall clock since the start
}

// line is a log line that waits until the lock is free.
type line struct {
	level  logrus.Level
	text   string
	fields logrus.Fields
}

func newCore(p Probe, s scope, offset time.Duration) *core {
	return &core{
		Probe: p, scope: s, offset: offset, table: newTable(), observing: true,
		wall:    func(now time.Duration) time.Duration { return now },
		pause:   pause{most: mostPause(p.ProbeTimeout)},
		brake:   brake{period: p.ProbeInterval},
		pace:    bucket{rate: float64(p.ProbeWriteRate), most: max(1, float64(p.ProbeWriteRate)/10)},
		trickle: bucket{rate: 1, most: 1},
	}
}

func (c *core) say(level logrus.Level, text string, fields logrus.Fields) {
	c.lines = append(c.lines, line{level, text, fields})
}

// enter comes first in everything that happens. It notices when the process
// was stopped: then the answers in flight are void, doubts begin anew, what was
// slept through is skipped, and every down-write needs new evidence.
func (c *core) enter(now time.Duration) {
	if !c.pause.came(now, c.wall(now)) {
		return
	}
	c.epoch++
	c.skipBefore, c.clearSince = now, now
	c.tally.stops++
	c.say(logrus.WarnLevel, "the prober itself was stopped; what it missed counts against nobody", nil)
}

// look notes whether the guards became clear.
func (c *core) look(now time.Duration) {
	clear := c.contact.ok() && !c.sight.blind()
	if clear && !c.clear {
		c.clearSince = now
	}
	c.clear = clear
	if c.blind && !c.sight.blind() {
		c.blind = false
		c.say(logrus.InfoLevel, "the prober sees targets again", nil)
	}
	if engaged := c.brake.engaged(now, c.tally.up); engaged != c.braking {
		c.braking = engaged
		c.sayBrake(engaged)
	}
}

func (c *core) sayBrake(engaged bool) {
	fields := logrus.Fields{"count": c.brake.sum.failing}
	if engaged {
		c.say(logrus.WarnLevel, "more than a third of the targets fail at once; marking them down is held", fields)
	} else {
		c.say(logrus.InfoLevel, "targets no longer fail at once; marking down goes on", fields)
	}
}

// schedule gives a row its next appointment.
func (c *core) schedule(r ref, due time.Duration) {
	c.table.at(r.row).due = due
	c.agenda.add(due, r)
}

// schedulePhase gives a row its next appointment on its own phase.
func (c *core) schedulePhase(r ref, now time.Duration) {
	c.schedule(r, phased(now, c.offset, c.table.at(r.row).hash, c.ProbeInterval))
}

// hurry asks a row now, unless it is being asked.
func (c *core) hurry(r ref, now time.Duration) {
	if row := c.table.at(r.row); !row.asking && !row.idle {
		row.due = now
		row.asking = true
		c.urgent.push(r)
	}
}

// tick moves what is due into the ready queues, and tells how many questions
// wait there and when to come again. At rest nothing is due.
func (c *core) tick(now time.Duration) (waiting int, again time.Duration) {
	c.enter(now)
	c.look(now)
	if c.resting {
		return 0, tickMost
	}
	for c.agenda.next() <= now {
		a := c.agenda.take()
		row := c.table.get(a.ref)
		switch {
		case row == nil || row.due != a.due || row.idle || row.asking:
		case a.due < c.skipBefore:
			c.tally.missed++
			c.schedulePhase(a.ref, now)
		case row.opinion.Doubted():
			row.asking = true
			c.urgent.push(a.ref)
		default:
			row.asking = true
			c.ready.push(a.ref)
		}
	}
	return c.urgent.len() + c.ready.len(), c.agenda.next() - now
}

// job is one question on its way.
type job struct {
	ref      ref
	epoch    uint32
	started  time.Duration
	timeout  time.Duration
	question check.Spec
}

// take gives the next question to ask. Suspects go first, but every other turn
// is for the rest, so that many suspects starve nobody.
func (c *core) take(now time.Duration) (job, bool) {
	c.enter(now)
	for !c.resting {
		c.turn = !c.turn
		first, second := &c.urgent, &c.ready
		if c.turn {
			first, second = second, first
		}
		r, some := first.pop()
		if !some {
			if r, some = second.pop(); !some {
				return job{}, false
			}
		}
		if row := c.table.get(r); row != nil {
			return c.start(r, row, now), true
		}
	}
	return job{}, false
}

func (c *core) start(r ref, row *row, now time.Duration) job {
	lag := now - row.due
	c.tally.lag(lag)
	c.tally.missed += int64(lag / c.ProbeInterval)
	c.tally.flying++
	question := row.asks()
	timeout := c.ProbeTimeout
	if own := question.Timeout(); own > 0 {
		timeout = min(own, timeout)
	}
	return job{r, c.epoch, now, timeout, question}
}

// settle takes the answer of a job and says what follows: the verdict, a write
// that is due, the next appointment.
func (c *core) settle(now time.Duration, j job, a check.Answer) {
	c.enter(now)
	c.tally.flying--
	row := c.table.get(j.ref)
	if row == nil {
		return
	}
	row.asking = false
	if row.idle {
		return
	}
	ours := j.epoch != c.epoch || now-j.started > j.timeout+c.pause.most
	if a.Kind == check.Sick && ours {
		a = check.Answer{Kind: check.Unknown, Reason: "void: the prober itself was stopped", Took: a.Took}
	}
	c.tally.answer(a, quiet(a, j.timeout))
	row.remember(a, now)
	c.judge(now, j, row, a)
	c.look(now)
	if row.opinion.Doubted() && a.Kind != check.Unknown {
		c.schedule(j.ref, now+retryAfter)
	} else {
		c.schedulePhase(j.ref, now)
	}
	if a.Kind != check.Unknown && !row.opinion.Doubted() {
		row.decided = true
		c.offer(now, j.ref)
	}
}

// judge shows an answer to the guards and to the hysteresis.
func (c *core) judge(now time.Duration, j job, row *row, a check.Answer) {
	if a.Kind == check.Unknown {
		if row.decided && j.epoch == c.epoch {
			c.sight.unasked()
		}
		return
	}
	if row.epoch != c.epoch {
		row.epoch = c.epoch
		row.opinion = health.Hysteresis{Rise: row.opinion.Rise, Fall: row.opinion.Fall, Verdict: row.opinion.Verdict}
	}
	well, up := a.Kind == check.Well, row.opinion.Verdict == health.Up
	row.asked = j.started
	switch {
	case !quiet(a, j.timeout):
		c.sight.answered()
	case up || row.believed:
		c.sight.quiet(&row.mark)
	}
	switch {
	case well && row.failed > 0:
		c.brake.clear(now, row.failed, !up)
		row.failed = 0
	case !well && up && !c.brake.counts(row.failed):
		row.failed = c.brake.fail(now)
	}
	c.tally.leave(row)
	changed := row.opinion.Observe(well)
	c.tally.enter(row)
	if changed {
		c.changed(now, row, a)
	}
}

func (c *core) changed(now time.Duration, row *row, a check.Answer) {
	row.since = now
	text := "target is up"
	if row.opinion.Verdict == health.Down {
		text = "target is down"
		c.brake.fall(now, row.failed)
	} else {
		c.hold(row, 0)
	}
	key := row.key()
	c.say(logrus.InfoLevel, text, logrus.Fields{
		"service": key.Service.String(), "instance": key.Address(), "cause": a.Reason,
		"check": row.asks().Label(), "took": a.Took.String(),
	})
}

// upsert takes one instance of a listing that began with begin. What the
// registry believes seeds the verdict until the target has given its own.
func (c *core) upsert(now time.Duration, in registry.Instance, checker registry.Checker, has bool) {
	if in.Ephemeral || in.IP == "" || !c.scope.holds(in.Service) {
		return
	}
	i := c.table.find(in.Key)
	if i < 0 {
		i = c.table.add(in.Key)
		row := c.table.at(i)
		row.believed, row.believedAt, row.since, row.epoch = in.Healthy, now, now, c.epoch
		row.idle = true // until configure says otherwise
		c.tally.enter(row)
	}
	row := c.table.at(i)
	row.sweep = c.sweep
	if h := c.table.wishes(in, checker, has); row.wishes != h {
		row.wishes = h
		c.configure(now, i, wantOf(in.Metadata, checker, has))
	}
	if row.wroteAt <= c.began {
		c.believe(now, i, in.Healthy)
	}
}

// believe notes what the registry says of a target's health. It is repaired
// when it differs from our own verdict, after one more answer: whoever changed
// it may know something newer.
func (c *core) believe(now time.Duration, i int32, healthy bool) {
	row := c.table.at(i)
	if row.believed != healthy {
		row.believed, row.believedAt = healthy, now
		row.took = row.took && !healthy
	}
	listed := health.Down
	if healthy {
		listed = health.Up
	}
	switch {
	case !row.decided && row.opinion.Verdict != listed:
		c.brake.clear(now, row.failed, row.opinion.Verdict == health.Down)
		row.failed = 0
		c.tally.leave(row)
		row.opinion = health.Hysteresis{Rise: row.opinion.Rise, Fall: row.opinion.Fall, Verdict: listed}
		row.since = now
		c.tally.enter(row)
	case row.decided && row.opinion.Verdict != listed && !row.pending && row.heldAt == 0 && !row.signed && !c.idles():
		c.hurry(c.table.ref(i), now)
	}
}

// configure says what a row is asked from now on. Verdict and row of answers
// stay: a change of the question is no news of the target.
func (c *core) configure(now time.Duration, i int32, w wanted) {
	row := c.table.at(i)
	row.opinion.Rise, row.opinion.Fall = uint8(c.ProbeRise), uint8(c.ProbeFall)
	if w.rise > 0 {
		row.opinion.Rise = w.rise
	}
	if w.fall > 0 {
		row.opinion.Fall = w.fall
	}
	row.question = unique.Make(w.question)
	row.signed, row.took = w.signed, row.took && w.signed
	for _, fault := range w.faults {
		key := row.key()
		c.say(logrus.WarnLevel, "cannot use what an instance says about its probing", logrus.Fields{
			"service": key.Service.String(), "instance": key.Address(), "cause": fault.Error(),
		})
	}
	c.tally.leave(row)
	was := row.idle
	row.idle = w.question == askNone || row.port == 0
	row.decided = row.decided && !row.idle
	c.tally.enter(row)
	if was && !row.idle && !row.asking {
		c.schedulePhase(c.table.ref(i), now)
	}
}

// drop forgets a target.
func (c *core) drop(now time.Duration, i int32) {
	row := c.table.at(i)
	c.brake.clear(now, row.failed, row.opinion.Verdict == health.Down)
	c.hold(row, 0)
	c.tally.leave(row)
	c.table.remove(i)
}
