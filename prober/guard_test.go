package prober

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPauseNoticesAStop(t *testing.T) {
	f := func(now, wall time.Duration, want bool) {
		t.Helper()
		p := pause{most: 1600 * time.Millisecond}
		p.came(time.Second, time.Second)
		if got := p.came(time.Second+now, time.Second+wall); got != want {
			t.Errorf("%v later, %v by the wall clock: got %v, want %v", now, wall, got, want)
		}
		if p.came(time.Second+now, time.Second+wall) {
			t.Error("one stop was noticed twice")
		}
	}
	f(100*time.Millisecond, 100*time.Millisecond, false)
	f(1600*time.Millisecond, 1600*time.Millisecond, false)
	f(1700*time.Millisecond, 1700*time.Millisecond, true)
	f(100*time.Millisecond, 40*time.Second, true) // suspended: only the wall clock went on
	f(100*time.Millisecond, -time.Hour, false)    // the wall clock was set back
}

func TestMostPause(t *testing.T) {
	f := func(timeout, want time.Duration) {
		t.Helper()
		if got := mostPause(timeout); got != want {
			t.Errorf("timeout %v: got %v, want %v", timeout, got, want)
		}
	}
	f(50*time.Millisecond, 500*time.Millisecond)
	f(3200*time.Millisecond, 1600*time.Millisecond)
	f(time.Minute, 2*time.Second)
}

func TestSight(t *testing.T) {
	// + an answer, digits targets that fall silent, ? a question not asked.
	f := func(answers string, want bool) {
		t.Helper()
		var s sight
		var marks [10]uint32
		for _, a := range answers {
			switch a {
			case '+':
				s.answered()
			case '?':
				s.unasked()
			default:
				s.quiet(&marks[a-'0'])
			}
		}
		if got := s.blind(); got != want {
			t.Errorf("after %s: blind %v, want %v", answers, got, want)
		}
	}
	f("", false)
	f("+++01234", true)
	f("+++0123", false)
	f("000000000", false) // a single black hole is one target, however often it is asked
	f("01234+", false)    // one answer shows that there is a network
	f("01234+01234", true)
	f("01234+0123", false)
	f("?????", true)
	f("????", false)
	f("+++++?????", false) // half is not most
	f("++++?????", true)
	f("?????++++++", false)
}

func TestSightNeverBlindWhileEveryFifthAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sight
		var marks [50]uint32
		for range rapid.IntRange(1, 50).Draw(t, "rounds") {
			for range rapid.IntRange(0, blindLeast-1).Draw(t, "silent") {
				s.quiet(&marks[rapid.IntRange(0, 49).Draw(t, "target")])
				if s.blind() {
					t.Fatal("blind although an answer came within the last five targets")
				}
			}
			s.answered()
		}
	})
}

func TestContact(t *testing.T) {
	var c contact
	f := func(reached, changed, ok bool) {
		t.Helper()
		if got := c.tried(reached); got != changed || c.ok() != ok {
			t.Errorf("reached %v: changed %v ok %v, want %v %v", reached, got, c.ok(), changed, ok)
		}
	}
	if c.ok() {
		t.Error("nothing was reached yet")
	}
	f(false, true, false)
	f(false, false, false)
	f(true, true, true)
	f(true, false, true)
	f(false, true, false)
	var fresh contact
	if !fresh.tried(true) || !fresh.ok() {
		t.Error("the first contact is a change")
	}
}

func TestBelief(t *testing.T) {
	f := func(known, lacking int, want bool) {
		t.Helper()
		var b belief
		if got := b.holds(known, lacking); got != want {
			t.Errorf("%d of %d lacking: believed %v, want %v", lacking, known, got, want)
		}
		if !b.holds(known, lacking) {
			t.Errorf("%d of %d lacking: not believed the second time", lacking, known)
		}
	}
	f(0, 0, true)
	f(1, 1, false) // empty
	f(100, 100, false)
	f(100, 20, true)
	f(100, 21, false)
	f(10, 4, true) // a few may always go
	f(10, 5, false)
	f(100, 0, true)
	var b belief
	b.holds(100, 50)
	b.holds(100, 0)
	if b.holds(100, 50) {
		t.Error("a good list in between: the doubt must begin anew")
	}
}
