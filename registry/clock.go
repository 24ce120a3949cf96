package registry

import (
	"sync/atomic"
	"time"
)

// sweepPeriod is how often silence is looked at, and so the precision of every
// expiry. A pass over 1 000 000 instances takes about a millisecond.
const sweepPeriod = 500 * time.Millisecond

// lateBy is how much later than its period a sweep may come before the process
// itself counts as stopped (SIGSTOP, a suspended machine, a stolen processor).
const lateBy = 2 * time.Second

// stamp is a time in ms since the store was made, on the store's own clock.
type stamp int64

// never is a time that does not come: 139 years after start.
const never = stamp(timeMask)

// clock counts the milliseconds during which the store was at work. It is
// driven by its ticks: when they stop for more than lateBy, only one period of
// the gap counts, so that all deadlines move by it at once. It never looks at
// the wall clock.
type clock struct {
	base time.Time // only its monotonic part is used
	last atomic.Pointer[tick]
}

type tick struct {
	real time.Duration // since base
	own  time.Duration // what of it counted
}

func newClock() *clock {
	c := &clock{base: time.Now()}
	c.last.Store(&tick{})
	return c
}

// now reads the clock. Between the end of a gap and the tick that notices it,
// the gap does not count either.
func (c *clock) now() stamp {
	last := c.last.Load()
	return stamp((last.own + counted(time.Since(c.base)-last.real)).Milliseconds())
}

// tick moves the clock on and returns the gap that was forgiven, or 0.
func (c *clock) tick() (forgiven time.Duration) {
	last := c.last.Load()
	real := time.Since(c.base)
	passed := real - last.real
	c.last.Store(&tick{real: real, own: last.own + counted(passed)})
	return passed - counted(passed)
}

func counted(passed time.Duration) time.Duration {
	if passed > sweepPeriod+lateBy {
		return sweepPeriod
	}
	return passed
}
