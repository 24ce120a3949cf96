package registry

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What the recording 08-operator shows before anything is set.
func TestSwitchesByDefault(t *testing.T) {
	want := Switches{
		PushCacheMillis: 10000, ClientBeatInterval: 5000, CacheMillis: 3000, DistroThreshold: 0.7,
		HealthCheckEnabled: true, AutoChangeHealth: true, DistroEnabled: true, EnableStandalone: true, PushEnabled: true,
		CheckTimes: 3, HTTPHealth: HealthParams{5000, 500, 0.85}, TCPHealth: HealthParams{5000, 1000, 0.75},
		MySQLHealth: HealthParams{3000, 2000, 0.65}, ServerStatusMillis: 2000, ServiceStatusMillis: 5000,
		LightBeatEnabled: true, DistroExpiredMillis: 10000,
		PushVersions:       PushVersions{"0.1.0", "0.1.0", "0.4.3", "1.0.12", "0.9.0"},
		EphemeralByDefault: true,
	}
	if diff := cmp.Diff(want, NewStore().Switches()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSetSwitch(t *testing.T) {
	f := func(entry, value string, change func(w *Switches)) {
		t.Helper()
		s := NewStore()
		want := s.Switches()
		change(&want)
		if err := s.SetSwitch(t.Context(), entry, value); err != nil {
			t.Errorf("%s=%s: %v", entry, value, err)
		}
		if diff := cmp.Diff(want, s.Switches()); diff != "" {
			t.Errorf("%s=%s (-want +got):\n%s", entry, value, diff)
		}
	}
	f("nonsense", "1", func(*Switches) {})
	f("Check", "false", func(*Switches) {}) // case counts
	f("distroThreshold", "0.25", func(w *Switches) { w.DistroThreshold = 0.25 })
	f("clientBeatInterval", "-7", func(w *Switches) { w.ClientBeatInterval = -7 })
	f("pushVersion", "java:10.2.3", func(w *Switches) { w.PushVersions.Java = "10.2.3" })
	f("pushVersion", "go:1.0.0:x", func(w *Switches) { w.PushVersions.Go = "1.0.0" })
	f("pushVersion", "c:1.0.0", func(w *Switches) { w.PushVersions.C = "1.0.0" })
	f("pushVersion", "csharp:1.0.0", func(w *Switches) { w.PushVersions.CSharp = "1.0.0" })
	f("pushVersion", "python:1.0.0", func(w *Switches) { w.PushVersions.Python = "1.0.0" })
	f("pushCacheMillis", "10000", func(w *Switches) { w.PushCacheMillis = 10000 })
	f("pushCacheMillis", "20000", func(w *Switches) { w.PushCacheMillis = 20000 })
	f("defaultCacheMillis", "1000", func(w *Switches) { w.CacheMillis = 1000 })
	f("masters", "a,b,,", func(w *Switches) { w.Masters = []string{"a", "b"} })
	f("distro", "false", func(w *Switches) { w.DistroEnabled = false })
	f("check", "false", func(w *Switches) { w.HealthCheckEnabled = false })
	f("check", "off", func(w *Switches) { w.HealthCheckEnabled = false })
	f("healthCheckEnabled", "no", func(w *Switches) { w.HealthCheckEnabled = false })
	f("pushEnabled", "0", func(w *Switches) { w.PushEnabled = false })
	f("pushEnabled", "1", func(*Switches) {})
	f("serviceStatusSynchronizationPeriodMillis", "6000", func(w *Switches) { w.ServiceStatusMillis = 6000 })
	f("serverStatusSynchronizationPeriodMillis", "1000", func(w *Switches) { w.ServerStatusMillis = 1000 })
	f("healthCheckTimes", "5", func(w *Switches) { w.CheckTimes = 5 })
	f("disableAddIP", "TRUE", func(w *Switches) { w.DisableAddIP = true })
	f("sendBeatOnly", "yes", func(w *Switches) { w.SendBeatOnly = true })
	f("limitedUrlMap", "/a:403,/b:503:x,", func(w *Switches) { w.LimitedURLs = map[string]int{"/a": 403, "/b": 503} })
	f("limitedUrlMap", "", func(*Switches) {})
	f("enableStandalone", "false", func(w *Switches) { w.EnableStandalone = false })
	f("enableStandalone", "", func(*Switches) {})
	f("overriddenServerStatus", "DOWN", func(w *Switches) { w.OverriddenStatus = new("DOWN") })
	f("overriddenServerStatus", "null", func(w *Switches) { w.OverriddenStatus = new("") })
	f("defaultInstanceEphemeral", "false", func(w *Switches) { w.EphemeralByDefault = false })
	f("distroServerExpiredMillis", "1", func(w *Switches) { w.DistroExpiredMillis = 1 })
	f("lightBeatEnabled", "false", func(w *Switches) { w.LightBeatEnabled = false })
	f("autoChangeHealthCheckEnabled", "f", func(w *Switches) { w.AutoChangeHealth = false })
	f("httpHealthParams", `{"max":3000,"min":500,"factor":1}`, func(w *Switches) { w.HTTPHealth = HealthParams{3000, 500, 1} })
	f("tcpHealthParams", `{"max":9000}`, func(w *Switches) { w.TCPHealth.Max = 9000 })
	f("mysqlHealthParams", `{"max":1,"min":1,"factor":9}`, func(w *Switches) { w.MySQLHealth = HealthParams{1, 1, 9} })
}

func TestSetSwitchRefuses(t *testing.T) {
	f := func(entry, value, want string) {
		t.Helper()
		s, log := logged()
		err := s.SetSwitch(t.Context(), entry, value)
		if err == nil || err.Error() != want || !errors.Is(err, ErrRefused) {
			t.Errorf("%s=%s: got %v, want %s", entry, value, err, want)
		}
		if diff := cmp.Diff(defaultSwitches(), s.Switches()); diff != "" || len(log.commands) > 0 {
			t.Errorf("%s=%s changed something: %s", entry, value, diff)
		}
	}
	f("distroThreshold", "0", "distroThreshold can not be zero or negative: 0.0")
	f("distroThreshold", "-0.5", "distroThreshold can not be zero or negative: -0.5")
	f("distroThreshold", "x", `For input string: "x"`)
	f("distroThreshold", "NaN", `For input string: "NaN"`)
	f("distroThreshold", "", "empty String")
	f("clientBeatInterval", "5s", `For input string: "5s"`)
	f("clientBeatInterval", "", `For input string: ""`)
	f("pushVersion", "java", "illegal format, must be 'type:version', but got: java")
	f("pushVersion", "java:1.0", `illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+`)
	f("pushVersion", "rust:1.0.0", "unsupported client type: rust")
	f("pushCacheMillis", "9999", "min cache time for http or tcp is too small(<10000)")
	f("defaultCacheMillis", "999", "min default cache time  is too small(<1000)")
	f("serviceStatusSynchronizationPeriodMillis", "4999", "serviceStatusSynchronizationPeriodMillis is too small(<5000)")
	f("serverStatusSynchronizationPeriodMillis", "999", "serverStatusSynchronizationPeriodMillis is too small(<15000)")
	f("healthCheckTimes", "99999999999", `For input string: "99999999999"`)
	f("limitedUrlMap", "/a", "invalid input for limited urls")
	f("limitedUrlMap", ":403", "url can not be empty, url: ")
	f("limitedUrlMap", "/a:0", "illegal normal status code: 0")
	f("limitedUrlMap", "/a:x", `For input string: "x"`)
	f("httpHealthParams", "{", "json param invalid.")
	f("httpHealthParams", `{"min":499}`, "min check time for http or tcp is too small(<500)")
	f("tcpHealthParams", `{"max":2999}`, "max check time for http or tcp is too small(<3000)")
	f("tcpHealthParams", `{"factor":1.5}`, "malformed factor")
}

// A switch set for this process only is gone after a restart, one set for good
// is not; setting another for good does not end it.
func TestTrySwitch(t *testing.T) {
	s := NewStore()
	if err := s.TrySwitch("check", "false"); err != nil {
		t.Fatal(err)
	}
	if err := s.TrySwitch("check", "false"); err != nil {
		t.Fatal(err)
	}
	if err := s.TrySwitch("pushCacheMillis", "1"); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := s.SetSwitch(t.Context(), "pushEnabled", "false"); err != nil {
		t.Fatal(err)
	}
	if w := s.Switches(); w.HealthCheckEnabled || w.PushEnabled {
		t.Errorf("got check %v push %v, want neither", w.HealthCheckEnabled, w.PushEnabled)
	}
	if w := restored(t, snapshot(t, s)).Switches(); !w.HealthCheckEnabled || w.PushEnabled {
		t.Errorf("after a restart: got check %v push %v, want check only", w.HealthCheckEnabled, w.PushEnabled)
	}
}

// The recording 08-switch-effects: nothing happens while check is off, and all
// that is overdue happens in one pass when it is on again.
func TestCheckOff(t *testing.T) {
	live(t, func(l life) {
		l.ok(l.SetSwitch(l.Context(), "check", "false"))
		quick, long := eph("swx", "1"), eph("swx", "2")
		quick.Metadata = map[string]string{KeyBeatInterval: "1000", KeyBeatTimeout: "3000", KeyDeleteTimeout: "6000"}
		long.Metadata = map[string]string{KeyDeleteTimeout: "400000"}
		l.register(quick, long, eph("swx", "3"), eph("swx", "4"))
		l.pass(14 * time.Second)
		l.is(quick.Key, "up")
		l.ok(l.SetSwitch(l.Context(), "check", "true"))
		l.pass(time.Second)
		l.is(quick.Key, "gone")
		l.pass(2 * time.Second)
		l.is(long.Key, "down")

		// Off again: what is down stays down, and a beat still heals.
		l.ok(l.SetSwitch(l.Context(), "check", "false"))
		calm := eph("swx", "5")
		calm.Metadata = long.Metadata
		l.register(calm)
		l.pass(60 * time.Second)
		l.is(eph("swx", "3").Key, "down")
		l.beat(eph("swx", "3"))
		l.is(eph("swx", "3").Key, "up")
		// Silence of 180 s ends even that, unless the instance asked for more.
		l.pass(102 * time.Second)
		l.is(eph("swx", "4").Key, "down")
		l.pass(2 * time.Second)
		l.is(eph("swx", "4").Key, "gone")
		l.is(eph("swx", "3").Key, "up")
		l.pass(77 * time.Second)
		l.is(eph("swx", "3").Key, "gone")
		l.is(long.Key, "down")
		l.is(calm.Key, "up")
		l.pass(165 * time.Second)
		l.is(long.Key, "gone")
		l.is(calm.Key, "gone")
		if n := l.Counts(); n.Unhealthy != 0 || n.Expiries != 5 {
			l.Errorf("got %+v", n)
		}
	})
}

func TestDisableAddIP(t *testing.T) {
	live(t, func(l life) {
		l.register(eph("a", "1"), per("b", "1"))
		l.ok(l.SetSwitch(l.Context(), "disableAddIP", "true"))
		l.register(eph("a", "1"), per("b", "1")) // as they were
		again := per("b", "1")
		again.Weight = 2
		l.register(again)
		for _, one := range []Instance{eph("a", "2"), eph("c", "1"), per("b", "2"), per("d", "1")} {
			err := l.Register(l.Context(), one)
			if !errors.Is(err, ErrRefused) || err.Error() != "Adding IP for dom is forbidden now." {
				l.Errorf("%s: got %v", one.Key, err)
			}
			l.is(one.Key, "gone")
		}
		if got := l.Services("", ""); len(got) != 2 {
			l.Errorf("got services %v, want two", got)
		}
		if err := l.Mark(l.Context(), per("b", "2")); !errors.Is(err, ErrNotFound) {
			l.Errorf("mark: got %v, want not found", err)
		}
		l.ok(l.SetSwitch(l.Context(), "disableAddIP", "false"))
		l.register(eph("a", "2"), per("b", "2"))
	})
}

func TestClientBeatInterval(t *testing.T) {
	live(t, func(l life) {
		own := eph("pace", "2")
		own.Metadata = map[string]string{KeyBeatInterval: "5000"}
		l.register(eph("pace", "1"), own)
		f := func(value string, want time.Duration) {
			l.Helper()
			l.ok(l.SetSwitch(l.Context(), "clientBeatInterval", value))
			if got, err := l.Beat(l.Context(), eph("pace", "1")); got != want || err != nil {
				l.Errorf("switch %s: got %v %v, want %v", value, got, err, want)
			}
			if got, err := l.Beat(l.Context(), eph("pace", "9")); got != want || !errors.Is(err, ErrNotFound) {
				l.Errorf("switch %s, unknown: got %v %v, want %v", value, got, err, want)
			}
			if got, _ := l.Beat(l.Context(), own); got != 5*time.Second {
				l.Errorf("switch %s: its own pace became %v", value, got)
			}
		}
		f("5000", 5*time.Second)
		f("7000", 7*time.Second)
		f("-1", 0)
		f("9223372036854775807", 9223372036854*time.Millisecond)
		l.ok(l.SetSwitch(l.Context(), "clientBeatInterval", "7000"))
		l.pass(16 * time.Second)
		l.is(eph("pace", "1").Key, "down")
		if got, _ := l.Beat(l.Context(), eph("pace", "1")); got != 7*time.Second {
			l.Errorf("a beat that heals: got %v, want 7 s", got)
		}
	})
}

func TestRefreshAllocatesNothing(t *testing.T) {
	s := NewStore()
	if err := s.Register(t.Context(), eph("orders", "1")); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSwitch(t.Context(), "clientBeatInterval", "7000"); err != nil {
		t.Fatal(err)
	}
	name, ip := []byte("orders"), []byte("10.0.0.1")
	allocs := testing.AllocsPerRun(100, func() {
		if pace, known := s.Refresh(nil, nil, name, ip, 8080); !known || pace != 7*time.Second {
			t.Fatalf("got %v %v", pace, known)
		}
	})
	if allocs != 0 {
		t.Errorf("a beat allocates %v times", allocs)
	}
}
