package agent

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

const period = 5 * time.Second // of beats

func TestRegistryComesBack(t *testing.T) {
	f := func(name string, ephemeral bool, disturb func(*link), empty bool) {
		t.Helper()
		c := usual()
		c.Ephemeral, c.Metadata, c.Weight = ephemeral, "version=2", 3
		play(t, c, func(s *site) {
			s.wait(20 * time.Second)
			s.link.set(disturb)
			s.wait(70 * time.Second)
			if empty {
				s.replace()
			}
			back := time.Now()
			s.link.set(func(l *link) { l.fault, l.lost, l.slow = nil, false, 0 })
			s.wait(period)
			s.want("healthy")
			in, err := s.link.store.Get(s.t.Context(), s.key)
			if err != nil || in.Weight != 3 || in.Metadata["version"] != "2" {
				t.Errorf("%s: it came back as %+v %v, want weight 3 and its metadata", name, in, err)
			}
			if n := len(s.link.since(back, "")); n > 6 {
				t.Errorf("%s: %d calls in the first period after the registry came back", name, n)
			}
		})
	}
	away := func(l *link) { l.fault = errAway }
	unavailable := func(l *link) { l.fault = fmt.Errorf("no leader: %w", registry.ErrUnavailable) }
	silent := func(l *link) { l.slow = time.Hour }
	lost := func(l *link) { l.lost = true }
	f("refused, empty", true, away, true)
	f("refused, with its data", true, away, false)
	f("503", true, unavailable, true)
	f("says nothing", true, silent, true)
	f("answers get lost", true, lost, false)
	f("persistent, empty", false, away, true)
	f("persistent, with its data", false, away, false)
	f("persistent, says nothing", false, silent, true)
}

// A registration that failed is made again until it is acknowledged.
func TestRegistryAwayWhileTheAppComesUp(t *testing.T) {
	playFrom(t, usual(), func(s *site) { s.link.fault = errAway }, func(s *site) {
		s.wait(time.Minute)
		s.link.set(func(l *link) { l.fault = nil })
		s.wait(period)
		s.want("healthy")
		if s.log.count("level=warning") != 1 || s.log.count("the registry takes it again") != 1 {
			t.Errorf("want one line when it went and one when it came back:\n%s", s.log.all())
		}
	})
}

// What was not acknowledged is sent again: also marks.
func TestRegistryAwayWhileTheAppGoesDown(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(20 * time.Second)
		s.link.set(func(l *link) { l.fault = errAway })
		s.app.say(check.Sick, "refused")
		s.wait(8 * time.Second)
		s.want("healthy")
		s.link.set(func(l *link) { l.fault = nil })
		s.wait(period)
		s.want("unhealthy")
	})
}

// A beat that arrives after the mark heals what is down; the read-back finds it.
func TestLateBeatDoesNotHeal(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(21 * time.Second)
		s.app.say(check.Sick, "refused")
		s.wait(3500 * time.Millisecond)
		s.want("unhealthy")
		if _, err := s.link.store.Beat(s.t.Context(), s.agent.apps[0].life.declared); err != nil {
			t.Fatal(err)
		}
		s.want("healthy")
		s.wait(3 * time.Second)
		s.want("unhealthy")
	})
}

func TestRegistryAwayIsQuiet(t *testing.T) {
	f := func(name string, most int, disturb func(s *site, second int)) {
		t.Helper()
		play(t, usual(), func(s *site) {
			s.wait(20 * time.Second)
			before, goroutines := strings.Count(s.log.all(), "\n"), runtime.NumGoroutine()
			begin := time.Now()
			for second := range 600 {
				disturb(s, second)
				s.wait(time.Second)
			}
			if lines := strings.Count(s.log.all(), "\n") - before; lines > most {
				t.Errorf("%s: %d lines in ten minutes, want at most %d\n%s", name, lines, most, s.log.all())
			}
			if calls := len(s.link.since(begin, "")); calls > 600 {
				t.Errorf("%s: %d calls in ten minutes", name, calls)
			}
			if now := runtime.NumGoroutine(); now > goroutines+2 {
				t.Errorf("%s: %d goroutines, %d before", name, now, goroutines)
			}
			s.link.set(func(l *link) { l.fault = nil })
			s.wait(80 * time.Second) // a registry that refuses is asked once a minute
			s.want("healthy")
		})
	}
	f("healthy", 0, func(*site, int) {})
	f("away", 1, func(s *site, _ int) { s.link.set(func(l *link) { l.fault = errAway }) })
	f("comes and goes", 25, func(s *site, second int) {
		s.link.set(func(l *link) {
			l.fault = nil
			if second/10%2 == 0 {
				l.fault = errAway
			}
		})
	})
	f("forgets all", 25, func(s *site, second int) {
		if second%8 == 0 {
			s.replace()
		}
	})
	f("refuses", 1, func(s *site, _ int) {
		s.link.set(func(l *link) { l.fault = fmt.Errorf("persistent service: %w", registry.ErrRefused) })
	})
}

// A conflict of kinds is said once and tried again slowly.
func TestRefused(t *testing.T) {
	before := func(s *site) {
		other := s.key
		other.Port, other.Ephemeral = 1, false
		if err := s.link.store.Register(s.t.Context(), registry.Instance{Key: other, Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	playFrom(t, usual(), before, func(s *site) {
		s.wait(5 * time.Minute)
		if n := len(s.link.since(s.start, "")); n < 6 || n > 12 {
			t.Errorf("%d calls in five minutes, want a few and then one a minute", n)
		}
		if n := s.log.count("the registry refuses it"); n != 1 {
			t.Errorf("said %d times\n%s", n, s.log.all())
		}
		begin := time.Now()
		if err := s.stop(); err != nil || time.Since(begin) > time.Second {
			t.Errorf("what was refused is not drained: %v in %v", err, time.Since(begin))
		}
	})
}

// Never more than one beat a second, whatever the registry answers.
func TestServerCannotHurryTheAgent(t *testing.T) {
	f := func(pace time.Duration, least, most int) {
		t.Helper()
		play(t, usual(), func(s *site) {
			s.link.set(func(l *link) { l.pace = pace })
			s.wait(10 * time.Second)
			begin := time.Now()
			s.wait(time.Minute)
			if n := len(s.link.since(begin, "beat")); n > most || n < least {
				t.Errorf("told %v: %d beats a minute, want %d to %d", pace, n, least, most)
			}
		})
	}
	f(time.Millisecond, 55, 61)
	f(time.Second, 55, 61)
	f(3*time.Second, 19, 21)
	f(-1, 11, 13)           // no answer: as declared
	f(24*time.Hour, 11, 13) // a third of the 15 s is the most
}

func TestOperatorsWordStands(t *testing.T) {
	c := usual()
	c.Metadata = "version=2"
	play(t, c, func(s *site) {
		s.wait(10 * time.Second)
		weight, enabled := 7.0, false
		edit := registry.Overlay{Weight: &weight, Enabled: &enabled, Metadata: map[string]string{"version": "3"}}
		if err := s.link.store.Override(s.t.Context(), s.key, edit); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		s.wait(5 * time.Minute)
		s.want("healthy disabled")
		if n := len(s.link.since(begin, "register")) + len(s.link.since(begin, "mark")); n != 0 {
			t.Errorf("fought the operator %d times", n)
		}
		if n := s.log.count("other values than declared"); n != 1 || s.log.count("enabled false, metadata version, weight 7") != 1 {
			t.Errorf("want one line that names all three:\n%s", s.log.all())
		}
		s.app.say(check.Sick, "refused")
		s.wait(10 * time.Second)
		s.want("unhealthy disabled")
		s.app.say(check.Well, "200 OK")
		s.wait(5 * time.Minute)
		s.want("healthy disabled")
		if n := s.log.count("other values than declared"); n != 1 {
			t.Errorf("said %d times\n%s", n, s.log.all())
		}
	})
}

// An instance that was made anew without its metadata is registered in full
// and once only when the registry cannot keep them.
func TestLostMetadata(t *testing.T) {
	c := usual()
	c.Metadata = "version=2"
	play(t, c, func(s *site) {
		s.wait(10 * time.Second)
		bare := s.agent.apps[0].life.declared
		bare.Metadata = nil
		if err := s.link.store.Register(s.t.Context(), bare); err != nil {
			t.Fatal(err)
		}
		s.wait(40 * time.Second)
		in, err := s.link.store.Get(s.t.Context(), s.key)
		if err != nil || in.Metadata["version"] != "2" {
			t.Errorf("got %+v %v, want the metadata back", in, err)
		}
	})
}

func TestPersistentHealthIsOwned(t *testing.T) {
	c := usual()
	c.Ephemeral = false
	play(t, c, func(s *site) {
		s.wait(10 * time.Second)
		if err := s.link.store.SetHealth(s.t.Context(), registry.Instance{Key: s.key}, false); err != nil {
			t.Fatal(err)
		}
		s.want("unhealthy")
		s.wait(7 * time.Second)
		s.want("healthy")
	})
}

func TestDeletedByHandComesBack(t *testing.T) {
	f := func(ephemeral bool) {
		c := usual()
		c.Ephemeral = ephemeral
		play(t, c, func(s *site) {
			s.wait(10 * time.Second)
			if err := s.link.store.Deregister(s.t.Context(), s.key); err != nil {
				t.Fatal(err)
			}
			s.wait(7 * time.Second)
			s.want("healthy")
		})
	}
	f(true)
	f(false)
}

// A thousand agents leave while their beats and registrations are slow; what is
// on the wire arrives even when its sender has given up. None comes back.
func TestShutdownLeavesNoGhost(t *testing.T) {
	ghosts := 0
	for i := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			c := usual()
			c.Drain = time.Duration(i%3) * time.Second
			s := open(t, c, func(*site) {})
			slow := time.Duration(1+i%43) * 97 * time.Millisecond
			swift := i%3 == 0 // then the deregistration overtakes what is under way
			if i%2 == 0 {
				s.wait(time.Duration(i) * 7 * time.Millisecond) // then a beat is under way, sooner or later
			}
			s.link.set(func(l *link) { l.slow, l.swift = slow, swift })
			if i%5 == 0 {
				s.replace() // then it is a registration
			}
			s.wait(time.Duration(i*31%6000) * time.Millisecond)
			err := s.stop()
			s.link.set(func(l *link) { l.slow = 0 })
			s.wait(5 * time.Second)
			if s.state() != "-" {
				ghosts++
				t.Errorf("run %d, slow %v, ended with %v: the registry lists %q\n%s", i, slow, err, s.state(), s.history())
			}
		})
		if ghosts > 3 {
			t.FailNow()
		}
	}
}
