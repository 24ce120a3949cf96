package agent

import (
	"errors"
	"maps"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

// step is one thing to send to the registry.
type step uint8

const (
	rest step = iota // nothing for now
	register
	mark
	beat
	deregister
	read
)

var stepNames = [...]string{"rest", "register", "mark", "beat", "deregister", "read"}

func (s step) String() string { return stepNames[s] }

const (
	beatLeast  = time.Second // floor of any interval, whatever the registry says
	retryFirst = time.Second // pause after a first failure; doubled to one beat period
	readEvery  = 30 * time.Second
	readSoon   = 2 * time.Second // Nacos shows a write after 0.5 to 0.6 s
	refusedFor = time.Minute     // trying again cannot help until somebody acts
	parting    = 5 * time.Second // for the last calls, after the drain
	partAgain  = 500 * time.Millisecond
	unsure     = 2 * time.Second // for a registration to arrive of which no answer came
	deleteLate = 5 * time.Second // precision of the registries' own deleting
)

// phase is where an instance is on its way out.
type phase uint8

const (
	serving phase = iota
	draining
	leaving
	left
)

func (p phase) String() string { return [...]string{"serving", "draining", "leaving", "left"}[p] }

// holding is what the registry is known to hold. It changes only by answers
// of the registry, never by what was sent: a lost write is made again.
type holding uint8

const (
	unknown holding = iota
	gone
	there
)

func (h holding) String() string { return [...]string{"unknown", "gone", "there"}[h] }

// life decides what to send to the registry for one instance, and when. It
// knows no clock and does no I/O: next says what to do, done takes the outcome,
// judge, drain and suspect what happens outside. It is not safe for concurrent
// use, and one call at a time is under way.
type life struct {
	plan
	declared registry.Instance   // as registered while all is well
	spread   func() float64      // 0 to 1, where jitter comes from
	verdict  health.Verdict      // of the checks
	downAt   time.Time           // since when it is down
	fresh    time.Time           // until when the verdict counts
	wasUp    bool                // was up since the start
	touched  bool                // we may have an entry in the registry
	phase    phase               //
	drainEnd time.Time           // of the drain, then of leaving
	holds    holding             //
	acked    status              // what the registry said it holds
	again    bool                // register in full although acked looks right
	doubt    bool                // the outcome of a registration is not known
	sure     time.Time           // when it has arrived, if it does
	resent   bool                // lost metadata was sent once more
	edited   string              // which fields the operator changed
	insist   int                 // times in a row that a read-back showed another state
	newborn  bool                // no beat since the registration
	hush     bool                // the next registration is not worth a line
	lostAt   time.Time           // when a loss was said last
	interval time.Duration       // between beats, as answered
	beatDue  time.Time           //
	lastBeat time.Time           // when the last one was sent
	readDue  time.Time           //
	hold     time.Time           // nothing is sent before: after a failure
	failures int                 // in a row
	sent     time.Time           // when the last registration was sent
	parted   bool                // the last word was acknowledged, and proven
	last     error               // of the last call
	lastAt   time.Time           //
	seen     registry.Instance   // as last read back
	trouble  trouble             //
	notes    []note              // to be logged
	counts   map[step]*stepCount //
}

// status is the part of an instance that the agent steers.
type status struct{ healthy, enabled bool }

type stepCount struct{ sent, failed uint64 }

// note is a line for the log.
type note struct {
	level logrus.Level
	text  string
	cause string
	state string
	took  time.Duration
	count int
}

func newLife(p plan, spread func() float64) *life {
	return &life{plan: p, declared: p.instance(), spread: spread, interval: p.beatEvery, counts: map[step]*stepCount{}}
}

// place is where an instance ought to be.
type place uint8

const (
	leave   place = iota // as it is
	ifThere              // in the given state when it is listed; never created
	present              // listed in the given state
	absent               // not listed
)

// want is the state that the registry should have.
type want struct {
	place place
	status
	beats bool
}

// wanted is the table of design section 5.
func (l *life) wanted(now time.Time) want {
	switch {
	case l.phase == leaving && l.ephemeral:
		return want{place: absent}
	case l.phase == leaving: // a persistent one is kept: unhealthy, and enabled for whoever comes next
		return want{ifThere, status{false, true}, false}
	case l.phase == left:
		return want{}
	case l.phase == draining:
		return l.wantedDraining(now)
	case l.verdict == health.Up && l.stale(now):
		return want{}
	case l.verdict == health.Up:
		return want{present, status{true, true}, l.ephemeral}
	case l.verdict == health.Down:
		return l.wantedDown(now)
	}
	return want{}
}

func (l *life) wantedDraining(now time.Time) want {
	w := l.wantedDown(now)
	if l.verdict != health.Down {
		up := l.verdict == health.Up
		w = want{ifThere, status{up, false}, up && l.ephemeral && !l.stale(now)}
	}
	if w.place == present {
		w.place = ifThere
	}
	w.enabled = false
	return w
}

func (l *life) wantedDown(now time.Time) want {
	where := ifThere
	if l.wasUp && (!l.ephemeral || l.onDown == Disable) {
		where = present // it is listed while it is down, so a registry that lost it gets it again
	}
	switch {
	case l.onDown == Silent && !l.expired(now):
		return want{}
	case !l.ephemeral:
		return want{where, status{false, l.onDown != Disable}, false}
	case l.onDown == Disable: // healthy, because each beat makes it so
		return want{where, status{true, false}, !l.stale(now)}
	case l.onDown == Deregister, l.expired(now):
		return want{place: absent}
	}
	return want{ifThere, status{false, true}, false}
}

// expired tells that the registry should have deleted a silent instance; over
// a connection that lives on it would keep it for ever.
func (l *life) expired(now time.Time) bool {
	return l.ephemeral && now.Sub(l.downAt) >= l.deleteAll+deleteLate
}

// stale tells that the checks have not answered for too long.
func (l *life) stale(now time.Time) bool { return now.After(l.fresh) }

// next says what to send now, or how long to wait (at most a beat period, so
// that the loop is seen to turn). After the phase left nothing more is sent.
func (l *life) next(now time.Time) (step, registry.Instance, time.Duration) {
	l.advance(now)
	w := l.wanted(now)
	do, due := l.choose(now, w)
	if now.Before(l.hold) {
		due = later(due, l.hold)
	}
	if l.phase == left {
		return rest, registry.Instance{}, 0
	}
	if do == rest || due.After(now) {
		return rest, registry.Instance{}, l.patience(now, due)
	}
	return do, l.with(w), 0
}

// patience is the time until due, cut to when the phase changes and to a beat
// period.
func (l *life) patience(now, due time.Time) time.Duration {
	wait := due.Sub(now)
	if l.phase == draining || l.phase == leaving {
		wait = min(wait, l.drainEnd.Sub(now))
	}
	return min(max(wait, 0), l.interval)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// choose picks what to send next and when it is due.
func (l *life) choose(now time.Time, w want) (step, time.Time) {
	matches := l.holds == there && l.acked == w.status && !l.again
	switch w.place {
	case leave:
		return rest, now.Add(l.interval)
	case absent:
		return l.chooseAbsent(now)
	case ifThere:
		switch {
		case l.holds == unknown:
			return read, now
		case l.holds == there && (l.acked != w.status || l.phase == leaving && !l.parted):
			return mark, now
		}
	case present:
		switch {
		case !matches && l.holds == there && l.verdict == health.Down:
			return mark, now
		case !matches:
			return register, now
		}
	}
	if due := later(l.beatDue, l.lastBeat.Add(beatLeast)); w.beats && l.holds == there && !due.After(l.readDue) {
		return beat, due
	}
	return read, l.readDue
}

func (l *life) chooseAbsent(now time.Time) (step, time.Time) {
	switch {
	case l.holds != gone:
		return deregister, now
	case l.phase == leaving && l.touched:
		return read, l.readDue // the proof that it is gone
	}
	return rest, now.Add(l.interval)
}

// with is the instance as it is sent.
func (l *life) with(w want) registry.Instance {
	in := l.declared
	in.Healthy, in.Enabled = w.healthy, w.enabled
	in.Metadata = maps.Clone(in.Metadata)
	if l.phase == leaving && !l.ephemeral {
		delete(in.Metadata, metaBy) // whoever looks after it now may write its health
	}
	return in
}

// advance moves the phases of the way out.
func (l *life) advance(now time.Time) {
	if l.phase == draining && (!now.Before(l.drainEnd) || l.holds != there) { // nobody was told of it: nobody has to be given time
		l.phase, l.drainEnd = leaving, now.Add(parting)
		l.hold, l.readDue, l.failures = time.Time{}, now, 0
	}
	if l.phase != leaving {
		return
	}
	settled := l.parted && !l.doubt && (l.holds == gone || !l.ephemeral)
	if !l.touched || settled || !now.Before(l.drainEnd) {
		l.phase = left
	}
}

// judge takes the verdict and until when it counts.
func (l *life) judge(now time.Time, v health.Verdict, fresh time.Time) {
	l.fresh = fresh
	if v == l.verdict {
		return
	}
	l.verdict = v
	l.hold, l.failures = time.Time{}, 0 // a change is worth a try at once
	switch v {
	case health.Up:
		l.again = l.wasUp || l.touched // what was not sent while it was down
		l.wasUp = true
	case health.Down:
		l.downAt, l.again = now, false
	}
}

// drain starts the way out; a second call changes nothing.
func (l *life) drain(now time.Time) {
	if l.phase != serving {
		return
	}
	l.phase, l.drainEnd = draining, now.Add(l.plan.drain)
	l.hold, l.failures = time.Time{}, 0
}

// suspect tells that the process was stopped: what the checks said before says
// nothing about now.
func (l *life) suspect() { l.fresh = time.Time{} }

// move changes the address before the first registration was acknowledged.
func (l *life) move(host string) {
	l.host, l.declared.IP = host, host
}

// result is what is wrong at the end: the instance may still be listed.
func (l *life) result() error {
	switch {
	case !l.touched || l.parted && !l.doubt:
		return nil
	case l.last != nil:
		return l.last
	}
	return errors.New("the registry still lists it")
}
