package registry

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// eph is an ephemeral instance of the service on 10.0.0.x.
func eph(service, last string) Instance {
	return Instance{
		Key: Key{
			Service: Service{DefaultNamespace, DefaultGroup, service}, Cluster: DefaultCluster,
			IP: "10.0.0." + last, Port: 8080, Ephemeral: true,
		},
		Weight: 1, Enabled: true, Healthy: true, Metadata: map[string]string{},
	}
}

func per(service, last string) Instance {
	one := eph(service, last)
	one.Ephemeral = false
	return one
}

// life is a store in a bubble whose sweeps the test does itself.
type life struct {
	testing.TB
	*Store
}

func live(t *testing.T, f func(l life)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(life{t, NewStore()}) })
}

func (l life) register(all ...Instance) {
	l.Helper()
	for _, one := range all {
		if err := l.Register(l.Context(), one); err != nil {
			l.Fatal(err)
		}
	}
}

// pass lets time go by with the sweeps and cleanings that belong to it.
func (l life) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(sweepPeriod, time.Until(end)))
		l.sweep()
		l.clean(l.Context())
	}
}

// is checks what the store believes: "up", "down" or "gone".
func (l life) is(k Key, want string) {
	l.Helper()
	got := "gone"
	if one, err := l.Get(l.Context(), k); err == nil && one.Healthy {
		got = "up"
	} else if err == nil {
		got = "down"
	}
	if got != want {
		l.Errorf("at %v %s is %s, want %s", time.Duration(l.clock.now())*time.Millisecond, k, got, want)
	}
}

func (l life) beat(one Instance) {
	l.Helper()
	if _, err := l.Beat(l.Context(), one); err != nil {
		l.Error(err)
	}
}

// Strictly later than the timeout, not at it.
func TestSilenceIsComparedStrictly(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		l.pass(15 * time.Second)
		l.is(one.Key, "up")
		l.pass(sweepPeriod)
		l.is(one.Key, "down")
		l.pass(15*time.Second - sweepPeriod)
		l.is(one.Key, "down")
		l.pass(sweepPeriod)
		l.is(one.Key, "gone")
		if c := l.Counts(); c != (Counts{Services: 1, Expiries: 1}) {
			l.Errorf("got %+v", c)
		}
	})
}

func TestPeriods(t *testing.T) {
	f := func(interval, timeout, expire string, up, down time.Duration) {
		t.Helper()
		live(t, func(l life) {
			l.Helper()
			one := eph("orders", "1")
			for name, value := range map[string]string{KeyBeatInterval: interval, KeyBeatTimeout: timeout, KeyDeleteTimeout: expire} {
				if value != "-" {
					one.Metadata[name] = value
				}
			}
			l.register(one)
			l.pass(up - 600*time.Millisecond)
			l.is(one.Key, "up")
			l.pass(1200 * time.Millisecond)
			if up != down {
				l.is(one.Key, "down")
			}
			l.pass(down - up - 1200*time.Millisecond)
			if up != down {
				l.is(one.Key, "down")
			}
			l.pass(1200 * time.Millisecond)
			l.is(one.Key, "gone")
		})
	}
	f("-", "-", "-", 15*time.Second, 30*time.Second)
	f("1000", "3000", "6000", 3*time.Second, 6*time.Second)
	f("1000", "60000", "6000", 6*time.Second, 6*time.Second) // deleted though it never was unhealthy
	f("3000", "3000", "3000", 3*time.Second, 3*time.Second)
	f("-", "15s", "-20000", 15*time.Second, 30*time.Second) // no plain numbers
	f("-", "", " 20000", 15*time.Second, 30*time.Second)
	f("0", "0", "10000", 500*time.Millisecond+sweepPeriod/2, 10*time.Second) // a sweep is the least
}

func TestReadPeriod(t *testing.T) {
	f := func(text string, want uint32) {
		t.Helper()
		if got := readPeriod("x", 7000, nil, map[string]string{"x": text}); got != want {
			t.Errorf("%q: got %d ms, want %d", text, got, want)
		}
	}
	f("3000", 3000)
	f("0", 500) // a sweep
	f("1", 500)
	f("4294967295", 4294967295) // 49 days
	f("4294967296", 4294967295)
	f("99999999999999999999999", 4294967295)
	f("", 7000)
	f("-1", 7000)
	f("+1", 7000)
	f("15s", 7000)
	f(" 15000", 7000)
	f("1e3", 7000)
	f("٣٠٠٠", 7000)
	if got := readPeriod("x", 7000, map[string]string{"x": "junk"}, map[string]string{"x": "3000"}); got != 7000 {
		t.Errorf("an overlay that is no number: got %d, want the default", got)
	}
}

func TestOddPeriodIsSaidOnce(t *testing.T) {
	live(t, func(l life) {
		var said []string
		l.OnOddPeriod(func(k Key, name, value string) { said = append(said, k.IP+" "+name+" "+value) })
		for _, last := range []string{"1", "2", "3"} {
			one := eph("orders", last)
			one.Metadata = map[string]string{KeyBeatTimeout: "15s", KeyDeleteTimeout: "30000"}
			l.register(one, one)
		}
		if len(said) != 1 || said[0] != "10.0.0.1 preserved.heart.beat.timeout 15s" {
			l.Errorf("got %q", said)
		}
	})
}

func TestBeatHealsAtOnceAndStartsAnew(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		l.pass(20 * time.Second)
		l.is(one.Key, "down")
		before, _ := l.Get(l.Context(), one.Key)
		l.beat(one)
		l.is(one.Key, "up")
		if after, _ := l.Get(l.Context(), one.Key); after.Revision <= before.Revision {
			l.Errorf("revision went from %d to %d", before.Revision, after.Revision)
		}
		l.pass(14 * time.Second)
		l.is(one.Key, "up")
		l.pass(3 * time.Second)
		l.is(one.Key, "down")
	})
}

// Health that is written says nothing about when the instance was heard of.
func TestSetHealthIsNoSignOfLife(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		l.pass(12 * time.Second)
		l.ok(l.SetHealth(l.Context(), one, false))
		l.is(one.Key, "down")
		l.pass(2 * time.Second)
		l.ok(l.SetHealth(l.Context(), one, true))
		l.is(one.Key, "up")
		l.pass(2 * time.Second)
		l.is(one.Key, "down")
		l.ok(l.SetHealth(l.Context(), one, true)) // too late: the next sweep takes it back
		l.pass(2 * time.Second)
		l.is(one.Key, "down")
		l.pass(11 * time.Second)
		l.is(one.Key, "down")
		l.pass(3 * time.Second)
		l.is(one.Key, "gone")
	})
}

// A revision that was seen before a restart fits nothing after it.
func TestRevisionsOfTwoLivesDiffer(t *testing.T) {
	first, second := NewStore(), NewStore()
	l, m := life{t, first}, life{t, second}
	one := eph("orders", "1")
	l.register(one)
	m.register(one)
	seen, _ := l.Get(t.Context(), one.Key)
	if err := m.SetHealth(t.Context(), seen, false); !errors.Is(err, ErrStale) || seen.Revision >= 1<<53 {
		t.Errorf("revision %d: got %v", seen.Revision, err)
	}
}

// The process was stopped: whatever beats it missed, nobody is to blame. After
// it, silence counts on from where it was.
func TestOwnSleepIsForgiven(t *testing.T) {
	live(t, func(l life) {
		fresh, silent := eph("orders", "1"), eph("orders", "2")
		l.register(silent)
		l.pass(10 * time.Second)
		l.register(fresh)
		time.Sleep(40 * time.Second) // SIGSTOP: no sweep
		l.sweep()
		l.is(fresh.Key, "up")
		l.is(silent.Key, "up")
		l.pass(4 * time.Second)
		l.is(silent.Key, "up")
		l.pass(2 * time.Second)
		l.is(silent.Key, "down")
		l.is(fresh.Key, "up")
		l.pass(8 * time.Second)
		l.is(fresh.Key, "up")
		l.pass(2 * time.Second)
		l.is(fresh.Key, "down")
	})
}

// A beat that is read before the sweep notices the gap gains nothing by it.
func TestBeatBeforeTheLateSweep(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		time.Sleep(time.Hour)
		l.beat(one)
		l.sweep()
		l.pass(14 * time.Second)
		l.is(one.Key, "up")
		l.pass(2 * time.Second)
		l.is(one.Key, "down")
	})
}

// A sweep that is a little late, on a busy machine, hides no silence.
func TestSlowSweepsCount(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		for range 8 {
			time.Sleep(2 * time.Second)
			l.sweep()
		}
		l.is(one.Key, "down")
	})
}

// The slot of an instance goes to the next one while a beat is on its way.
func TestLateBeatDoesNotTouchTheNextTenant(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		h := l.shard(one.Service)
		late, found := h.ticket(publicBytes, groupBytes, []byte("orders"), []byte("10.0.0.1"), 8080)
		if !found {
			l.Fatal("no ticket")
		}
		if err := l.Deregister(l.Context(), one.Key); err != nil {
			l.Fatal(err)
		}
		if late.beat(never - 1) {
			l.Error("a free slot took a beat")
		}
		next := eph("orders", "2")
		l.register(next) // in the same millisecond: but for the generation, the same word
		if w := &h.slots.words[0][0]; late.word != w {
			l.Fatal("the slot was not used again: this test shows nothing")
		}
		if late.beat(never - 1) {
			l.Error("the next tenant took the beat")
		}
		l.pass(17 * time.Second)
		l.is(next.Key, "down")
	})
}

// Very many at once, as when a rack loses its network.
func TestMassExpiry(t *testing.T) {
	live(t, func(l life) {
		const n = 20_000
		for i := range n {
			l.register(typical(i, true))
		}
		l.pass(16 * time.Second)
		if c := l.Counts(); c.Unhealthy != n || c.Ephemeral != n {
			l.Errorf("got %+v", c)
		}
		l.pass(15 * time.Second)
		if c := l.Counts(); c.Ephemeral != 0 || c.Unhealthy != 0 || c.Expiries != n {
			l.Errorf("got %+v", c)
		}
		l.pass(61 * time.Second)
		if c := l.Counts(); c.Services != 0 {
			l.Errorf("got %+v", c)
		}
		for i := range l.shards {
			h := &l.shards[i]
			if len(h.numbers) != len(h.numbered) || len(h.index) != 0 || len(h.metadata.numbers) != 0 || len(h.idle) != 0 {
				l.Errorf("shard %d keeps something", i)
			}
		}
	})
}
