package agent

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
)

func TestPanel(t *testing.T) {
	// A round is one letter a check: + well, - sick, ? unknown.
	f := func(need int, rounds, want string) {
		t.Helper()
		first, _, _ := strings.Cut(rounds, " ")
		p := panel{need: need}
		for range first {
			p.checks = append(p.checks, checkState{Hysteresis: health.Hysteresis{Rise: 1, Fall: 2}})
		}
		got, checks := "", 0
		for _, letter := range rounds + " " {
			if letter == ' ' {
				got += string("?UD"[p.verdict])
				checks = 0
				continue
			}
			kind := map[rune]check.Kind{'+': check.Well, '-': check.Sick}[letter]
			p.observe(checks, time.Time{}, check.Answer{Kind: kind}, false)
			checks++
		}
		if got != want {
			t.Errorf("need %d, rounds %q: got %s, want %s", need, rounds, got, want)
		}
	}
	f(1, "+ - - + ? ?", "UUDUUU")
	f(1, "? ? - - + ?", "???DUU")
	f(2, "?? ++ +- +- ++", "?UUDU")
	f(2, "+? +? +? ++", "???U") // all: one that never spoke is not well
	f(1, "-- -- +- -- --", "?DUUD")
	f(1, "+? -? -?", "UUD") // any: a broken one does not hold the app up
	f(2, "++- --+ --+", "UUD")
	f(2, "+-+ +-- +--", "UUD")
}

func TestSickAnswersInTheGraceDoNotCount(t *testing.T) {
	p := panel{need: 1, checks: []checkState{{Hysteresis: health.Hysteresis{Rise: 1, Fall: 1}}}}
	sick, well := check.Answer{Kind: check.Sick}, check.Answer{Kind: check.Well}
	if p.observe(0, time.Time{}, sick, true); p.verdict != health.Undecided {
		t.Errorf("got %v within the grace, want undecided", p.verdict)
	}
	p.observe(0, time.Time{}, well, true)
	if p.observe(0, time.Time{}, sick, true); p.verdict != health.Down {
		t.Errorf("got %v, want down: the first good answer ends the grace", p.verdict)
	}
}

// The verdict of a panel in which every check has spoken is that of counting.
func TestPanelProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "checks")
		p := panel{need: rapid.IntRange(1, n).Draw(t, "need"), checks: make([]checkState, n)}
		for i := range p.checks {
			p.observe(i, time.Time{}, check.Answer{Kind: check.Well}, false)
		}
		last := make([]bool, n)
		for i := range last {
			last[i] = true
		}
		for range rapid.IntRange(0, 20).Draw(t, "answers") {
			i := rapid.IntRange(0, n-1).Draw(t, "check")
			kind := rapid.SampledFrom([]check.Kind{check.Well, check.Sick, check.Unknown}).Draw(t, "kind")
			before := p.verdict
			out := p.observe(i, time.Time{}, check.Answer{Kind: kind}, false)
			if kind != check.Unknown {
				last[i] = kind == check.Well
			}
			well := 0
			for _, w := range last {
				if w {
					well++
				}
			}
			if want := well >= p.need; (p.verdict == health.Up) != want || out.changed != (before != p.verdict) {
				t.Fatalf("%d of %d are well, need %d: verdict %v, changed %v", well, n, p.need, p.verdict, out.changed)
			}
			if len(p.checks[i].last) > lastAnswers {
				t.Fatal("keeps too many answers")
			}
		}
	})
}

func TestFreshUntil(t *testing.T) {
	now := time.Unix(1000, 0)
	after := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	f := func(need int, v health.Verdict, want time.Time, checks ...checkState) {
		t.Helper()
		p := panel{need: need, verdict: v, checks: checks}
		if got := p.freshUntil(); !got.Equal(want) {
			t.Errorf("need %d of %d, %v: got %v, want %v", need, len(checks), v, got, want)
		}
	}
	at := func(s int, v health.Verdict) checkState {
		return checkState{vouched: after(s), wait: 7 * time.Second, Hysteresis: health.Hysteresis{Verdict: v}}
	}
	f(1, health.Up, after(7), at(0, health.Up))
	f(2, health.Up, after(7), at(0, health.Up), at(5, health.Up))  // all: the one that hangs counts
	f(1, health.Up, after(12), at(0, health.Up), at(5, health.Up)) // any: the one that answers counts
	f(1, health.Up, after(7), at(0, health.Up), at(5, health.Down))
	f(2, health.Down, after(12), at(0, health.Down), at(5, health.Up))
	f(1, health.Undecided, time.Time{}, checkState{})
}

// The pace: an interval from start to start; after a bad answer a quarter of it
// from the end of the one before.
func TestPace(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(9 * time.Second)
		s.app.say(check.Sick, "refused")
		s.wait(8 * time.Second)
		var gaps []time.Duration
		asked := s.app.times()
		for i := 1; i < len(asked); i++ {
			gaps = append(gaps, asked[i].Sub(asked[i-1]).Round(10*time.Millisecond))
		}
		want := []time.Duration{2000, 2000, 2000, 2000, 2000, 500, 500, 2000, 2000}
		for i := range want {
			if want[i] *= time.Millisecond; i >= len(gaps) || gaps[i] != want[i] {
				t.Fatalf("gaps between questions %v, want %v", gaps, want)
			}
		}
	})
}

func TestGrace(t *testing.T) {
	c := usual()
	c.StartGrace = 30 * time.Second
	playFrom(t, c, func(s *site) { s.app.say(check.Sick, "refused") }, func(s *site) {
		s.wait(20 * time.Second)
		if v := s.agent.apps[0].verdict(); v != health.Undecided {
			t.Errorf("got %v within the grace", v)
		}
		s.wait(14 * time.Second)
		if v := s.agent.apps[0].verdict(); v != health.Down {
			t.Errorf("got %v after the grace", v)
		}
	})
}

// A check that hangs: no beat on a verdict older than interval*fall+timeout
// and the registry finds the instance silent.
func TestHungCheck(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(20500 * time.Millisecond)
		s.app.setHang(true)
		hung := time.Now()
		s.wait(15 * time.Second)
		for _, c := range s.link.since(hung.Add(9*time.Second), "beat") {
			t.Errorf("a beat %v after the check began to hang", c.at.Sub(hung))
		}
		if err := s.agent.Ready(); err == nil {
			t.Error("ready although the checks do not answer")
		}
		s.wait(30 * time.Second)
		s.want("-")
		if err := s.agent.Healthy(); err == nil {
			t.Error("healthy although a loop does not turn")
		}
		if n := s.log.count("the checks have not answered for too long"); n != 1 {
			t.Errorf("said %d times\n%s", n, s.log.all())
		}
		s.app.setHang(false)
		s.over()
	})
}

// A checker that is itself broken keeps the last verdict and says so once.
func TestBrokenChecker(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(20 * time.Second)
		s.app.say(check.Unknown, "no such program")
		s.wait(5 * time.Minute)
		s.want("healthy")
		if n := s.log.count("the check cannot be asked"); n != 1 || s.log.count("no such program") != 1 {
			t.Errorf("said %d times\n%s", n, s.log.all())
		}
		s.app.say(check.Well, "200 OK")
		s.wait(5 * time.Second)
		if n := s.log.count("the check can be asked again"); n != 1 {
			t.Errorf("said %d times\n%s", n, s.log.all())
		}
	})
}

func TestBrokenCheckerAtTheStartRegistersNothing(t *testing.T) {
	playFrom(t, usual(), func(s *site) { s.app.say(check.Unknown, "no such program") }, func(s *site) {
		s.wait(time.Minute)
		if n := len(s.link.since(s.start.Add(time.Second), "")); n != 0 {
			t.Errorf("%d calls although nobody knows how the app is", n)
		}
	})
}

// After the process was stopped nothing is said before the app answered anew.
func TestAfterAPauseTheAppIsAskedFirst(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(20 * time.Second)
		asked := len(s.app.times())
		s.app.say(check.Unknown, "cannot ask")
		a := s.agent.apps[0]
		a.suspect(20 * time.Second)
		at := time.Now()
		s.wait(0)
		s.wait(100 * time.Millisecond)
		if n := len(s.app.times()); n != asked+1 {
			t.Errorf("asked %d times at once, want 1", n-asked)
		}
		s.app.setHang(true)
		a.suspect(20 * time.Second)
		s.wait(20 * time.Second)
		for _, c := range s.link.since(at.Add(100*time.Millisecond), "beat") {
			t.Errorf("a beat %v after the pause, before the app answered", c.at.Sub(at))
		}
		s.app.setHang(false)
		s.over()
	})
}

// A bad answer after the pause does not revive the old verdict.
func TestAfterAPauseABadAnswerDoesNotCountForTheVerdict(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(20 * time.Second)
		s.app.say(check.Sick, "refused")
		s.agent.apps[0].suspect(20 * time.Second)
		at := time.Now()
		s.wait(0)
		s.wait(10 * time.Second)
		if n := len(s.link.since(at, "beat")) + len(s.link.since(at, "register")); n != 0 {
			t.Errorf("%d beats and registrations after the pause, for an app that never answered well\n%s", n, s.history())
		}
	})
}

// An answer that took far longer than it may is a sign that we were stopped: it
// does not count, and the question is asked again.
func TestAnswersFromBeforeAPauseDoNotCount(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(20 * time.Second)
		a := s.agent.apps[0]
		before := len(a.panel.checks[0].last)
		if wait := a.take(0, time.Now().Add(-10*time.Second), check.Answer{Kind: check.Sick}); wait != 0 {
			t.Errorf("waits %v, want to ask at once", wait)
		}
		a.resumed = time.Now()
		if wait := a.take(0, time.Now().Add(-time.Millisecond), check.Answer{Kind: check.Sick}); wait != 0 {
			t.Errorf("waits %v, want to ask at once", wait)
		}
		if n := len(a.panel.checks[0].last); n != before {
			t.Errorf("%d answers were taken", n-before)
		}
	})
}
