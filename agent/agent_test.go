package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

func TestRegistersAtTheFirstSuccessAndNotBefore(t *testing.T) {
	c := usual()
	c.CheckRise = 2
	playFrom(t, c, func(s *site) { s.app.say(check.Sick, "refused") }, func(s *site) {
		s.wait(time.Minute)
		if n := len(s.link.since(s.start, "register")); n != 0 {
			t.Errorf("registered %d times while the app never answered well", n)
		}
		s.app.say(check.Well, "200 OK")
		s.wait(2500 * time.Millisecond)
		s.want("healthy")
		calls := s.link.since(s.start, "")
		register := s.link.since(s.start, "register")
		beats := s.link.since(s.start, "beat")
		if len(register) != 1 || len(beats) != 1 || beats[0].at.Sub(register[0].at) > 100*time.Millisecond {
			t.Errorf("want one registration and a beat within 100ms of it, got %+v", calls)
		}
	})
}

func TestOnDown(t *testing.T) {
	f := func(mode OnDown, ephemeral bool, atOnce, after20, after50 string, beats bool) {
		t.Helper()
		c := usual()
		c.OnDown, c.Ephemeral = mode, ephemeral
		play(t, c, func(s *site) {
			s.wait(30100 * time.Millisecond)
			s.want("healthy")
			s.app.say(check.Sick, "refused")
			s.wait(3500 * time.Millisecond) // the next question, then two a quarter of the interval apart
			s.want(atOnce)
			down := time.Now()
			s.wait(20 * time.Second)
			s.want(after20)
			s.wait(30 * time.Second)
			s.want(after50)
			if n := len(s.link.since(down, "beat")); (n > 0) != beats {
				t.Errorf("%s: %d beats while it was down, want some: %v", mode, n, beats)
			}
			s.app.say(check.Well, "200 OK")
			up := time.Now()
			s.wait(2100 * time.Millisecond)
			s.want("healthy")
			if n := len(s.link.since(up, "register")); n != 1 {
				t.Errorf("%s: registered %d times when it came up again, want once", mode, n)
			}
			if n := s.log.count("the app is down"); n != 1 {
				t.Errorf("said %d times that it is down\n%s", n, s.log.all())
			}
		})
	}
	f(Unhealthy, true, "unhealthy", "unhealthy", "-", false)
	f(Deregister, true, "-", "-", "-", false)
	f(Disable, true, "healthy disabled", "healthy disabled", "healthy disabled", true)
	f(Silent, true, "healthy", "unhealthy", "-", false)
	f(Unhealthy, false, "unhealthy", "unhealthy", "unhealthy", false)
	f(Deregister, false, "unhealthy", "unhealthy", "unhealthy", false)
	f(Disable, false, "unhealthy disabled", "unhealthy disabled", "unhealthy disabled", false)
	f(Silent, false, "healthy", "healthy", "healthy", false)
}

func TestDownIsSeenSoon(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(10 * time.Second)
		s.app.say(check.Sick, "refused")
		failing := time.Now()
		s.wait(10 * time.Second)
		marks := s.link.since(failing, "mark")
		if len(marks) == 0 {
			t.Fatal("never marked")
		}
		// 2 s at most until the first bad answer, then two a quarter of the interval apart.
		if took := marks[0].at.Sub(failing); took > 3100*time.Millisecond {
			t.Errorf("marked after %v, want 3.1s at most", took)
		}
	})
}

func TestDrain(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(10 * time.Second)
		begin := time.Now()
		synctest.Wait()
		ended := make(chan error, 1)
		stop := s.stop
		go func() { ended <- stop() }()
		s.wait(time.Second)
		s.want("healthy disabled")
		s.wait(10 * time.Second)
		s.want("healthy disabled")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.want("-")
		if took := time.Since(begin); took < 12*time.Second || took > 13*time.Second {
			t.Errorf("the drain took %v, want 12s", took)
		}
		s.wait(time.Minute)
		s.want("-")
	})
}

func TestDrainOfAPersistentInstanceKeepsIt(t *testing.T) {
	c := usual()
	c.Ephemeral, c.Metadata = false, "version=2"
	play(t, c, func(s *site) {
		s.wait(10 * time.Second)
		in, _ := s.link.store.Get(context.Background(), s.key)
		if in.Metadata[metaBy] != byUs {
			t.Errorf("metadata %v is not signed", in.Metadata)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		s.want("unhealthy")
		in, _ = s.link.store.Get(context.Background(), s.key)
		if in.Metadata[metaBy] != "" || in.Metadata["version"] != "2" {
			t.Errorf("metadata %v: the signature must be given up and the rest kept", in.Metadata)
		}
	})
}

func TestDrainOfADownPersistentInstanceGivesUpTheSignature(t *testing.T) {
	c := usual()
	c.Ephemeral, c.Drain = false, 0
	play(t, c, func(s *site) {
		s.wait(10 * time.Second)
		s.app.say(check.Sick, "refused")
		s.wait(10 * time.Second)
		s.want("unhealthy")
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		s.want("unhealthy")
		if in, _ := s.link.store.Get(context.Background(), s.key); in.Metadata[metaBy] != "" {
			t.Errorf("metadata %v is still signed", in.Metadata)
		}
	})
}

func TestNeverRegisteredLeavesAtOnce(t *testing.T) {
	playFrom(t, usual(), func(s *site) { s.app.say(check.Sick, "refused") }, func(s *site) {
		s.wait(time.Second)
		begin := time.Now()
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("leaving took %v although nothing was ever registered", took)
		}
	})
}

func TestDrainWithoutTheRegistryIsBoundedAndSaysSo(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(10 * time.Second)
		s.link.set(func(l *link) { l.fault = errAway })
		begin := time.Now()
		if err := s.stop(); err == nil {
			t.Error("an instance that could not be deregistered must be an error")
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("leaving took %v, want at most 12s and some seconds", took)
		}
	})
}

// After POST /drain the process stays: one that left would be started again.
func TestDrainByHandKeepsRunningAndRegistersNothing(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(10 * time.Second)
		if err := s.agent.Drain(s.t.Context()); err != nil {
			t.Error(err)
		}
		s.want("-")
		s.wait(time.Minute)
		s.want("-")
		if err := s.agent.Healthy(); err != nil {
			t.Error(err)
		}
		if err := s.agent.Ready(); err == nil {
			t.Error("a drained agent is not ready")
		}
		begin := time.Now()
		if err := s.stop(); err != nil || time.Since(begin) > time.Second {
			t.Errorf("after the drain it ended with %v in %v, want at once", err, time.Since(begin))
		}
	})
}

// The app that dies while it drains is not beaten for any more.
func TestAppDiesWhileDraining(t *testing.T) {
	play(t, usual(), func(s *site) {
		s.wait(10 * time.Second)
		ended := make(chan error, 1)
		stop := s.stop
		go func() { ended <- stop() }()
		s.wait(time.Second)
		s.app.say(check.Sick, "refused")
		s.wait(4 * time.Second)
		s.want("unhealthy disabled")
		at := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.want("-")
		if n := len(s.link.since(at, "beat")); n != 0 {
			t.Errorf("%d beats for a dead app", n)
		}
	})
}

func TestRestartWhileTheAppIsDeadBeatsNothing(t *testing.T) {
	before := func(s *site) {
		s.app.say(check.Sick, "refused")
		// What a killed agent left behind.
		if err := s.link.store.Register(s.t.Context(), s.agent.apps[0].life.declared); err != nil {
			t.Fatal(err)
		}
	}
	playFrom(t, usual(), before, func(s *site) {
		s.wait(4 * time.Second)
		s.want("unhealthy")
		s.wait(40 * time.Second)
		s.want("-")
		if n := len(s.link.since(s.start, "beat")) + len(s.link.since(s.start, "register")); n != 0 {
			t.Errorf("%d beats and registrations for an app that never answered", n)
		}
	})
}

func TestSeveralAppsOfOneAgent(t *testing.T) {
	c := usual()
	c.Apps = filepath.Join(t.TempDir(), "apps.yaml")
	text := "- {service: orders, address: '10.0.0.7:8080', check: 'http://:8080/'}\n" +
		"- {service: billing, address: '10.0.0.7:9090', check: 'http://:9090/', on_down: deregister}\n"
	if err := os.WriteFile(c.Apps, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	play(t, c, func(s *site) {
		s.wait(5 * time.Second)
		s.app.sayOf("http://:9090/", check.Sick, "503")
		s.wait(5 * time.Second)
		s.want("healthy")
		billing := s.key
		billing.Name, billing.Port = "billing", 9090
		if _, err := s.link.store.Get(s.t.Context(), billing); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("the app that is down is still listed: %v", err)
		}
		s.app.sayOf("http://:9090/", check.Well, "200 OK")
		s.wait(3 * time.Second)
		if _, err := s.link.store.Get(s.t.Context(), billing); err != nil {
			t.Error(err)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		s.want("-")
		if _, err := s.link.store.Get(context.Background(), billing); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("the second app is still listed after the end: %v", err)
		}
	})
}

var _ Registry = (*registry.Store)(nil)
