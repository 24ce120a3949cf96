package prober

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

func TestRefusedIsMarkedWithin3Seconds(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.run(false)
		first := w.firstAsked("tcp://" + key.Address())
		w.until("marked", 5*time.Second, func() bool { return !w.healthy(key) })
		if took := time.Since(first); took > 3*time.Second || took < 2*time.Second {
			t.Errorf("marked %v after the first missed probe, want 2 to 3 s", took)
		}
		if got := w.target(key); got.Verdict != health.Down || !got.Own || got.Write != "unhealthy" || got.Answers[0].Reason != "refused" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestBlackHoleIsMarkedWithin12Seconds(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), blackHole)
		w.run(false)
		first := w.firstAsked("tcp://" + key.Address())
		w.until("marked", 15*time.Second, func() bool { return !w.healthy(key) })
		if took := time.Since(first); took > 12*time.Second || took < 9*time.Second {
			t.Errorf("marked %v after the first missed probe began, want under 12 s", took)
		}
	})
}

func TestRecoveryIsConfirmedASecondAfterTheFirstGoodAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.run(false)
		w.until("marked", 30*time.Second, func() bool { return !w.healthy(key) })
		w.network.set(key.Address(), well)
		first := w.firstAsked("tcp://" + key.Address())
		w.until("healthy", 5*time.Second, func() bool { return w.healthy(key) })
		if took := time.Since(first); took < time.Second || took > 1200*time.Millisecond {
			t.Errorf("healthy %v after the first good answer, want 1 s", took)
		}
	})
}

// envoyproxy/envoy#7171: every kind of failure counts alike.
func TestEveryKindOfFailureCountsAlike(t *testing.T) {
	sick := func(reason string) target {
		return func(context.Context) check.Answer { return check.Answer{Kind: check.Sick, Reason: reason} }
	}
	rounds := []target{
		well, sick("404 Not Found"), well, sick("503 Service Unavailable"), sick("404 Not Found"), well,
		blackHole, sick("404 Not Found"), sick("reset"), well, well,
	}
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		round := make(chan target)
		w.network.set(key.Address(), func(ctx context.Context) check.Answer { return (<-round)(ctx) })
		w.run(false)
		var got strings.Builder
		for _, how := range rounds {
			round <- how
			w.pass(4 * time.Second)
			got.WriteString(w.target(key).Verdict.String()[:1])
		}
		if got.String() != "uuuuuuuuddu" {
			t.Errorf("verdicts %s, want down after round 9 and up after round 11", got.String())
		}
		close(round)
	})
}

func TestUnknownNeverCounts(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), cannot)
		w.run(false)
		w.pass(5 * time.Minute)
		if !w.healthy(key) {
			t.Error("marked although nothing could be asked")
		}
		if n := len(w.network.since(time.Time{}, "tcp://")); n < 14 || n > 15 {
			t.Errorf("asked %d times in 5 min, want 15: unknown is no reason to hurry", n)
		}
		// Nor does it break a row of failures.
		w.network.set(key.Address(), refusing)
		w.firstAsked("tcp://")
		w.network.set(key.Address(), cannot)
		w.pass(2 * time.Second)
		w.network.set(key.Address(), refusing)
		w.until("marked", 23*time.Second, func() bool { return !w.healthy(key) })
	})
}

func TestRestartKeepsPhaseAndFlipsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 50
		for i := range n {
			in := instance(i)
			in.Healthy = i%2 == 0
			w.register(in)
			if !in.Healthy {
				w.network.set(address(i), refusing)
			}
		}
		phases := func() map[int]time.Duration {
			from := time.Now()
			w.pass(20 * time.Second)
			all := map[int]time.Duration{}
			for i := range n {
				for _, at := range w.network.since(from, "tcp://"+address(i)) {
					all[i] = time.Duration(at.UnixNano()) % w.cfg.ProbeInterval
				}
			}
			return all
		}
		w.run(false)
		before := phases()
		w.end()
		w.pass(7777 * time.Millisecond)
		w.run(false)
		later := phases()
		for i := range n {
			if d := (later[i] - before[i]).Abs(); len(before) != n || d > tickMost {
				t.Errorf("%s: phase moved by %v", address(i), d)
			}
		}
		w.pass(time.Minute)
		if len(w.link.made()) != 0 || w.said("target is") != 0 {
			t.Errorf("the restart flipped %v", w.link.made())
		}
	})
}

// consul-esm#119: one probe per period whatever is registered again.
func TestRegisteredAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		in := instance(1)
		w.register(in)
		w.run(true)
		again := func(what string, do func()) {
			do()
			w.pass(time.Second)
			from := time.Now()
			w.pass(3 * time.Minute)
			if n := len(w.network.since(from, "")); n != 9 {
				t.Errorf("%s: asked %d times in 3 min, want 9", what, n)
			}
		}
		again("same", func() { w.register(in) })
		again("weight", func() { in.Weight = 5; w.register(in) })
		again("deleted and added", func() {
			if err := w.store.Deregister(w.Context(), in.Key); err != nil {
				t.Error(err)
			}
			w.pass(100 * time.Millisecond)
			w.register(in)
		})
		again("another check", func() { in.Metadata = map[string]string{metaCheck: "http://:9000/new"}; w.register(in) })
		from := time.Now()
		w.pass(20 * time.Second)
		if n := len(w.network.since(from, "http://10.0.0.1:9000/new")); n != 1 {
			t.Errorf("the new check was asked %d times in a period", n)
		}
	})
}

func TestLoadIsFlatAndNobodyIsLeftOut(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 2000
		w.fleet(n)
		w.run(false)
		w.pass(20 * time.Second)
		from := time.Now()
		w.pass(20 * time.Second)
		var perSecond [20]int
		for i := range n {
			at := w.network.since(from, "tcp://"+address(i))
			if len(at) != 1 {
				t.Fatalf("%s was asked %d times in a period", address(i), len(at))
			}
			perSecond[min(19, at[0].Sub(from)/time.Second)]++
		}
		for s, got := range perSecond {
			if got < 50 || got > 150 {
				t.Errorf("second %d: %d questions, want about 100", s, got)
			}
		}
	})
}

func TestRiseAndFallOfAService(t *testing.T) {
	inWorld(t, func(w *world) {
		in := instance(1)
		in.Metadata = map[string]string{metaRise: "1", metaFall: "1"}
		quick := w.register(in)
		in = instance(2)
		in.Metadata = map[string]string{metaFall: "none at all"}
		wrong := w.register(in)
		w.network.set(quick.Address(), refusing)
		w.network.set(wrong.Address(), refusing)
		w.run(false)
		w.until("marked", 21*time.Second, func() bool { return !w.healthy(quick) })
		if n := len(w.network.since(time.Time{}, "tcp://"+quick.Address())); n != 1 {
			t.Errorf("marked after %d answers, want 1", n)
		}
		w.until("marked", 25*time.Second, func() bool { return !w.healthy(wrong) })
		if n := len(w.network.since(time.Time{}, "tcp://"+wrong.Address())); n != 3 {
			t.Errorf("marked after %d answers, want 3", n)
		}
		w.pass(time.Minute)
		if n := w.said(`metadata sidebeat.fall=`); n != 1 {
			t.Errorf("the bad value was said %d times, want once:\n%s", n, w.log.String())
		}
	})
}

func TestNoneIsNotAskedAndLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		cluster := registry.Cluster{Service: key.Service, Name: "DEFAULT"}
		none := registry.ClusterConfig{Cluster: cluster, Checker: registry.Checker{Type: "NONE", UseInstancePort: true}}
		if err := w.store.SetCluster(t.Context(), none); err != nil {
			t.Fatal(err)
		}
		w.network.set(key.Address(), refusing)
		w.run(true)
		w.pass(2 * time.Minute)
		if n := len(w.network.since(time.Time{}, "")); n != 0 || !w.healthy(key) {
			t.Errorf("asked %d times, healthy %v", n, w.healthy(key))
		}
		none.Checker = registry.Checker{Type: "HTTP", Path: "/h", Port: 81}
		if err := w.store.SetCluster(t.Context(), none); err != nil {
			t.Fatal(err)
		}
		w.until("asked by HTTP", 31*time.Second, func() bool { return len(w.network.since(time.Time{}, "http://10.0.0.1:81/h")) > 0 })
	})
}

func TestWhatTheRegistryForgotIsRepaired(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.run(false)
		w.until("marked", 30*time.Second, func() bool { return !w.healthy(key) })
		w.register(instance(1)) // says healthy again
		took := w.until("marked again", 11*time.Second, func() bool { return !w.healthy(key) })
		t.Logf("repaired after %v", took)
		// And the other way round.
		w.network.set(key.Address(), well)
		w.until("healthy", 30*time.Second, func() bool { return w.healthy(key) })
		seen, _ := w.store.Get(t.Context(), key)
		if err := w.store.SetHealth(t.Context(), seen, false); err != nil {
			t.Fatal(err)
		}
		w.until("healthy again", 11*time.Second, func() bool { return w.healthy(key) })
	})
}

// An app that comes back and registers itself is asked before it is marked.
func TestWhoRegistersAgainIsAskedFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.run(true)
		w.until("marked", 30*time.Second, func() bool { return !w.healthy(key) })
		writes := len(w.link.made())
		w.network.set(key.Address(), well)
		w.register(instance(1))
		w.pass(30 * time.Second)
		if len(w.link.made()) != writes || !w.healthy(key) {
			t.Errorf("the old verdict was written: %v", w.link.made())
		}
	})
}

func TestOnlyHealthIsWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		in := instance(1)
		in.Weight, in.Enabled, in.Metadata = 7, false, map[string]string{"zone": "a"}
		key := w.register(in)
		w.network.set(key.Address(), refusing)
		w.run(false)
		w.until("marked", 30*time.Second, func() bool { return !w.healthy(key) })
		got, err := w.store.Get(t.Context(), key)
		if err != nil || got.Weight != 7 || got.Enabled || got.Metadata["zone"] != "a" || got.Ephemeral {
			t.Errorf("got %+v %v", got, err)
		}
		w.pass(5 * time.Minute)
		if n := len(w.link.made()); n != 1 {
			t.Errorf("%d writes for one change: %v", n, w.link.made())
		}
	})
}

func TestObserverWritesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		var inside atomic.Bool
		inside.Store(true)
		p, err := New(w.cfg, w.link, w.network, w.logger)
		if err != nil {
			t.Fatal(err)
		}
		p.Observe = func(context.Context) (bool, error) { return inside.Load(), nil }
		w.start(p)
		w.pass(2 * time.Minute)
		if len(w.link.made()) != 0 || !w.healthy(key) {
			t.Errorf("an observer wrote %v", w.link.made())
		}
		page := w.prober.Targets(0, 0)
		if !page.Observing || page.Targets[0].Verdict != health.Down || w.prober.Ready() != nil {
			t.Errorf("got %+v, ready %v", page, w.prober.Ready())
		}
		if n := w.said("observes and writes nothing"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
		inside.Store(false)
		w.until("marked", 31*time.Second, func() bool { return !w.healthy(key) })
	})
}

// An agent owns the health of what it signed, until the registry has listed as
// healthy for a whole period what the prober sees down.
func TestSignedInstanceIsTakenOverLate(t *testing.T) {
	inWorld(t, func(w *world) {
		in := instance(1)
		in.Metadata = map[string]string{metaBy: "agent"}
		key := w.register(in)
		in = instance(2)
		in.Metadata, in.Healthy = map[string]string{metaBy: "agent"}, false
		own := w.register(in) // up for us, but its agent knows better
		w.network.set(key.Address(), refusing)
		w.run(false)
		w.until("judged", 30*time.Second, func() bool { return w.target(key).Verdict == health.Down })
		took := w.until("taken over", 45*time.Second, func() bool { return !w.healthy(key) })
		if took < w.cfg.ProbeInterval {
			t.Errorf("taken over after %v, want a period at least", took)
		}
		w.network.set(key.Address(), well)
		w.until("given back", 30*time.Second, func() bool { return w.healthy(key) })
		w.pass(2 * time.Minute)
		if w.healthy(own) {
			t.Error("the agent's word was overwritten")
		}
	})
}

func TestScopeIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cfg.ProbeExclude = []string{"*/*/orders"}
		w.register(instance(1))
		other := instance(2)
		other.Name = "payments"
		w.register(other)
		w.run(false)
		w.pass(time.Minute)
		if n := w.prober.Targets(0, 0).Total; n != 1 || len(w.network.since(time.Time{}, "tcp://"+address(1))) > 0 {
			t.Errorf("%d targets, want 1", n)
		}
	})
}

func TestTargetsArePaged(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(250)
		w.run(false)
		seen := map[string]bool{}
		pages := 0
		for from := 0; pages == 0 || from > 0; pages++ {
			page := w.prober.Targets(from, 0)
			for _, one := range page.Targets {
				seen[one.Address] = true
			}
			from = page.Next
		}
		if len(seen) != 250 || pages != 3 {
			t.Errorf("%d targets on %d pages, want 250 on 3", len(seen), pages)
		}
		if got := w.prober.Targets(-5, 1e9); len(got.Targets) != 250 {
			t.Errorf("%d targets with odd bounds", len(got.Targets))
		}
		if got := w.prober.Targets(1e9, 10); len(got.Targets) != 0 || got.Next != 0 {
			t.Errorf("got %v past the end", got)
		}
	})
}

// When the round cannot be finished in time everybody waits alike: no
// false verdict, nobody left out, and it is said.
func TestOverloadStretchesThePeriod(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 500
		w.cfg.ProbeInFlight = 20 // 20 in 3 s: 133 a period
		w.fleet(n)
		w.network.setAll(after(3*time.Second, well))
		w.run(false)
		w.pass(5 * time.Minute)
		for i := range n {
			if got := len(w.network.since(time.Time{}, "tcp://"+address(i))); got < 2 || got > 5 {
				t.Fatalf("%s was asked %d times, want about 4 like all", address(i), got)
			}
		}
		if missed := w.tally().missed; w.unhealthy() != 0 || missed == 0 {
			t.Errorf("%d marked, %d slots missed", w.unhealthy(), missed)
		}
	})
}

func TestMetricsAndHealth(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(3)
		w.network.set(address(1), refusing)
		w.run(false)
		w.pass(30 * time.Second)
		var b strings.Builder
		w.prober.Metrics(&b)
		for _, want := range []string{
			"sidebeat_prober_targets 3", "sidebeat_prober_targets_up 2", "sidebeat_prober_targets_down 1",
			`sidebeat_prober_writes_total{result="written"} 1`, "sidebeat_prober_registry_reached 1",
		} {
			if !strings.Contains("\n"+b.String(), "\n"+want+"\n") {
				t.Errorf("no line %q in\n%s", want, b.String())
			}
		}
		if err := w.prober.Healthy(); err != nil {
			t.Error(err)
		}
		w.end()
		w.pass(2 * time.Minute)
		if err := w.prober.Healthy(); err == nil {
			t.Error("healthy although no loop turns")
		}
	})
}
