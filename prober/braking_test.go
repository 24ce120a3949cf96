package prober

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

func TestBrakeHoldsAndLetsGo(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 300
		w.fleet(n)
		w.network.set(address(299), refusing)
		w.run(false)
		w.until("marked", 30*time.Second, func() bool { return w.unhealthy() == 1 })
		w.pass(30 * time.Second)
		for i := range 200 {
			w.network.set(address(i), refusing)
		}
		w.network.set(address(299), well)
		start := time.Now()
		w.pass(20 * time.Second)
		early := w.unhealthy()
		if n := w.tally().held; early > 120 || n < 50 {
			t.Errorf("after one period %d of 200 marked, %d held", early, n)
		}
		if !w.healthy(instance(299).Key) {
			t.Error("an up-write was held")
		}
		if state := w.prober.Targets(0, 1).State; !strings.Contains(state, "held") {
			t.Errorf("the state is %q", state)
		}
		held := map[registry.Key]time.Time{}
		w.prober.with(func(c *core, _ time.Duration) {
			for i := range c.table.size() {
				if row := c.table.at(i); row.live && row.heldAt > 0 {
					held[row.key()] = w.prober.start.Add(row.heldAt)
				}
			}
		})
		// 1 % of 300 targets: 3 a second.
		before := w.unhealthy()
		for range 60 {
			w.pass(time.Second)
			now := w.unhealthy()
			if now-before > 4 {
				t.Errorf("%d marked within one second, want 3", now-before)
			}
			before = now
		}
		w.until("all marked", 3*time.Minute, func() bool { return w.unhealthy() == 200 })
		for key, at := range held {
			asked := w.network.since(at.Add(tick100), "tcp://"+key.Address())[0].Sub(at)
			if asked < w.cfg.ProbeInterval || asked > w.cfg.ProbeInterval+tick100 {
				t.Errorf("%s was asked again %v after it was held, want one period", key, asked)
			}
		}
		t.Logf("%d marked before the brake, all after %v", early, time.Since(start))
		if w.said("is held") != 1 {
			t.Errorf("said %d times that the brake is on", w.said("is held"))
		}
		// It has let go: a single failure later is written at once.
		w.pass(2 * time.Minute)
		w.network.set(address(250), refusing)
		first := w.firstAsked("tcp://" + address(250))
		w.until("marked", 5*time.Second, func() bool { return !w.healthy(instance(250).Key) })
		if took := time.Since(first); took > 3*time.Second {
			t.Errorf("marked after %v, want within 3 s", took)
		}
	})
}

func TestBrakeForgetsWhoRecovers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(60)
		w.run(false)
		w.pass(30 * time.Second)
		w.network.setAll(refusing)
		w.pass(15 * time.Second)
		w.network.setAll(nil)
		w.pass(time.Minute)
		if got := w.unhealthy(); got != 0 {
			t.Errorf("%d stay marked although all are back", got)
		}
		w.prober.with(func(c *core, _ time.Duration) {
			if sum := c.brake.sum; sum.failing != 0 || sum.fallen != 0 {
				t.Errorf("%+v still weigh although all are back", sum)
			}
		})
		if held := w.tally().held; held != 0 {
			t.Errorf("%d are held although all are back", held)
		}
		w.pass(3 * time.Minute)
		for _, write := range w.link.made()[len(w.link.made())/2:] {
			if strings.HasSuffix(write, "false") {
				t.Errorf("a held write came late: %s", write)
			}
		}
	})
}

func TestBurstsArePacedAndUpComesFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cfg.ProbeWriteRate = 10
		w.cfg.ProbeFall = 1
		const n = 1000
		w.fleet(n)
		in := instance(5000)
		in.Healthy = false
		up := w.register(in)
		w.network.set(up.Address(), blackHole)
		w.run(false)
		w.pass(30 * time.Second)
		for i := range 300 {
			w.network.set(address(i), refusing)
		}
		w.pass(10 * time.Second)
		before := len(w.link.made())
		w.pass(5 * time.Second)
		if got := len(w.link.made()) - before; got > 52 || got < 48 {
			t.Errorf("%d writes in 5 s, want 50", got)
		}
		w.network.set(up.Address(), well)
		w.until("up", 23*time.Second, func() bool { return w.healthy(up) })
		if w.unhealthy() >= 300 {
			t.Error("the up-write came after all down-writes")
		}
	})
}

// Nine of thirty are not more than a third, however many of them are down by
// the time the others fail.
func TestBrakeLeavesLessThanAThirdAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(30)
		w.run(false)
		w.pass(30 * time.Second)
		for i := range 9 {
			w.network.set(address(i), refusing)
		}
		w.pass(23 * time.Second)
		if got := w.unhealthy(); got != 9 {
			t.Errorf("%d marked, want 9", got)
		}
		if w.said("is held") > 0 {
			t.Error("the brake was on")
		}
	})
}

// Single failures that pass, as lost packets make them, do not add up.
func TestBrakeIgnoresWhatPasses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(60)
		w.run(false)
		w.pass(30 * time.Second)
		for i := range 60 {
			var once sync.Once
			w.network.set(address(i), func(ctx context.Context) check.Answer {
				how := well
				once.Do(func() { how = refusing })
				return how(ctx)
			})
		}
		w.pass(21 * time.Second)
		if w.said("is held") > 0 || w.unhealthy() > 0 {
			t.Errorf("%d marked; the log:\n%s", w.unhealthy(), w.log.String())
		}
	})
}
