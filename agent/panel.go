package agent

import (
	"slices"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
)

// lastAnswers is how many answers of a check are kept for the status.
const lastAnswers = 5

// panel is what the checks of one app have said, and what that means together.
// It knows no clock and is not safe for concurrent use.
type panel struct {
	need    int // so many checks must be up
	checks  []checkState
	verdict health.Verdict
	cause   string // the reason of the answer that made the verdict
}

type checkState struct {
	health.Hysteresis
	wait    time.Duration // its verdict counts so long after an answer
	vouched time.Time     // when the last answer came that did not contradict the verdict
	well    bool          // has ever answered well
	broken  bool          // the last answer was Unknown
	last    []answered    // newest last
}

type answered struct {
	at time.Time
	check.Answer
}

// fallout is what followed from one answer.
type fallout struct {
	changed bool // the verdict of the app
	broke   bool // the check began to fail to ask
	mended  bool // and asks again
}

// observe takes the answer of check i, which came at now. Sick answers in the
// time of grace do not count before the first good one.
func (p *panel) observe(i int, now time.Time, a check.Answer, grace bool) (out fallout) {
	c := &p.checks[i]
	if len(c.last) == lastAnswers {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, answered{now, a})
	broken := a.Kind == check.Unknown
	out.broke, out.mended = broken && !c.broken, !broken && c.broken
	c.broken = broken
	if broken {
		c.vouched = now
	}
	if broken || a.Kind == check.Sick && grace && !c.well {
		return out
	}
	c.well = c.well || a.Kind == check.Well
	c.Observe(a.Kind == check.Well)
	if !c.Doubted() {
		c.vouched = now
	}
	if v := p.judge(); v != p.verdict {
		p.verdict, p.cause, out.changed = v, a.Reason, true
	}
	return out
}

// judge is up when enough checks are up, and down when enough can no longer
// be. A check that never said anything may still come up while nothing is
// decided, but does not hold an app up whose other checks went down.
func (p *panel) judge() health.Verdict {
	up, down := p.count(health.Up), p.count(health.Down)
	switch {
	case up >= p.need:
		return health.Up
	case p.verdict == health.Up, down > len(p.checks)-p.need:
		return health.Down
	}
	return p.verdict
}

func (p *panel) count(v health.Verdict) (n int) {
	for _, c := range p.checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// freshUntil is the moment at which the verdict rests on too few answers, so
// that nothing may be said in its name: a hung check.
func (p *panel) freshUntil() time.Time {
	var ends []time.Time
	for _, c := range p.checks {
		if !c.vouched.IsZero() && (c.Verdict == health.Up || p.verdict != health.Up) {
			ends = append(ends, c.vouched.Add(c.wait))
		}
	}
	need := p.need
	if p.verdict != health.Up {
		need = 1
	}
	if len(ends) < need {
		return time.Time{}
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[need-1]
}

// doubted tells whether check i has to be asked again soon.
func (p *panel) doubted(i int) bool {
	c := &p.checks[i]
	if c.broken {
		return false
	}
	return c.Doubted() || c.Verdict == health.Undecided && len(c.last) > 0
}

// pause is how long to wait after a question of check i that began and ended
// then: an interval from its start, or a quarter of one from the end of an
// answer that contradicts what was believed.
func (p *panel) pause(i int, interval time.Duration, began, ended time.Time) time.Duration {
	if p.doubted(i) {
		return interval / 4
	}
	return max(began.Add(interval).Sub(ended), 0)
}
