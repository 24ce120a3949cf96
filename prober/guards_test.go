package prober

import (
	"errors"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

var errCut = errors.New("connection refused")

func TestNothingIsMarkedDownWhileTheRegistryIsAway(t *testing.T) {
	inWorld(t, func(w *world) {
		dead, back := w.register(instance(1)), w.register(instance(2))
		w.run(false)
		w.pass(21 * time.Second)
		w.link.change(func(l *link) { l.fail = errCut })
		w.network.setAll(refusing) // our own network is gone with it
		w.pass(5 * time.Minute)
		if got := w.target(dead); got.Write != "waiting" {
			t.Fatalf("got %+v, want a write that waits", got)
		}
		w.network.setAll(nil)
		w.network.set(dead.Address(), refusing)
		cut := time.Now()
		w.link.change(func(l *link) { l.fail = nil })
		w.until("marked", 30*time.Second, func() bool { return !w.healthy(dead) })
		if n := len(w.network.since(cut, "tcp://"+dead.Address())); n == 0 {
			t.Error("marked without another answer after the registry was back")
		}
		w.pass(time.Minute)
		if !w.healthy(back) || len(w.link.made()) != 1 {
			t.Errorf("what came back was marked: %v", w.link.made())
		}
		if w.said("cannot be read") != 1 || w.said("is read again") != 1 {
			t.Errorf("not said once each:\n%s", w.log.String())
		}
	})
}

func TestRegistryAnswersRubbish(t *testing.T) {
	f := func(what string, spoil func(registry.Page) registry.Page) {
		t.Helper()
		inWorld(t, func(w *world) {
			keys := w.fleet(10)
			w.run(false)
			w.pass(21 * time.Second)
			w.link.change(func(l *link) { l.spoil = spoil })
			w.pass(2 * time.Minute)
			if len(w.link.made()) > 0 {
				t.Errorf("%s: wrote %v", what, w.link.made())
			}
			w.link.change(func(l *link) { l.spoil = nil })
			w.network.set(keys[3].Address(), refusing)
			w.until("marked", 60*time.Second, func() bool { return !w.healthy(keys[3]) })
		})
	}
	pages := 0
	f("a circle of pages", func(p registry.Page) registry.Page { pages++; p.Next = "x"; return p })
	if pages > 300 {
		t.Errorf("read %d pages in 2 min of a list that goes in a circle", pages)
	}
	f("instances without address", func(p registry.Page) registry.Page {
		for i := range p.Instances {
			p.Instances[i].IP, p.Instances[i].Port = "", 0
		}
		return p
	})
	f("ephemeral ones", func(p registry.Page) registry.Page {
		for i := range p.Instances {
			p.Instances[i].Ephemeral = true
		}
		return p
	})
	f("nothing read", func(p registry.Page) registry.Page {
		return registry.Page{Failed: []registry.Service{instance(0).Service}}
	})
}

func TestServicesThatCouldNotBeReadAreKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(10)
		w.run(false)
		w.link.change(func(l *link) {
			l.spoil = func(registry.Page) registry.Page {
				return registry.Page{Failed: []registry.Service{instance(0).Service}}
			}
		})
		w.pass(2 * time.Minute)
		if n := w.prober.Targets(0, 0).Total; n != 10 {
			t.Errorf("%d targets left, want all 10", n)
		}
	})
}

func TestEmptyListIsBelievedTheSecondTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(10)
		w.run(false)
		total := func() int { return w.prober.Targets(0, 0).Total }
		w.link.change(func(l *link) { l.empty = true })
		w.pass(11 * time.Second) // one listing
		if n := total(); n != 10 {
			t.Errorf("%d targets after one empty list, want 10", n)
		}
		w.link.change(func(l *link) { l.empty = false })
		w.pass(10 * time.Second)
		w.link.change(func(l *link) { l.empty = true })
		w.pass(10 * time.Second)
		if n := total(); n != 10 {
			t.Errorf("%d targets after another single empty list, want 10", n)
		}
		w.pass(10 * time.Second)
		if n := total(); n != 0 {
			t.Errorf("%d targets after two empty lists, want none", n)
		}
		from := time.Now()
		w.pass(time.Minute)
		if n := len(w.network.since(from, "")); n > 0 {
			t.Errorf("%d questions about targets that are gone", n)
		}
	})
}

func TestDeletionInsideTheProcessIsQuick(t *testing.T) {
	inWorld(t, func(w *world) {
		keys := w.fleet(10)
		w.run(true)
		w.pass(5 * time.Second)
		for _, key := range keys {
			if err := w.store.Deregister(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		took := w.until("forgotten", 5*time.Second, func() bool { return w.prober.Targets(0, 0).Total == 0 })
		t.Logf("forgotten after %v", took)
	})
}

func TestRegistryRestarts(t *testing.T) {
	f := func(what string, keep bool) {
		t.Helper()
		inWorld(t, func(w *world) {
			w.fleet(30)
			w.network.set(address(3), refusing)
			w.run(false)
			w.until("marked", 30*time.Second, func() bool { return w.unhealthy() == 1 })
			old := w.store
			w.link.change(func(l *link) { l.fail = errCut })
			w.pass(15 * time.Second)
			w.store = registry.NewStore()
			w.link.change(func(l *link) { l.fail, l.store = nil, w.store })
			if keep {
				for _, in := range old.All(instance(0).Service) {
					w.register(in)
				}
			}
			w.pass(40 * time.Second)
			if !keep {
				if n := len(w.store.All(instance(0).Service)); n != 0 {
					t.Errorf("%s: %d instances were created", what, n)
				}
				w.fleet(30)
			}
			w.until("marked", 60*time.Second, func() bool { return w.unhealthy() == 1 })
			w.pass(time.Minute)
			if w.unhealthy() != 1 {
				t.Errorf("%s: %d marked, want 1: %v", what, w.unhealthy(), w.link.made())
			}
		})
	}
	f("with its data", true)
	f("empty", false)
}

func TestNothingIsMarkedDownWithoutANetwork(t *testing.T) {
	f := func(what string, n int, how target) {
		t.Helper()
		inWorld(t, func(w *world) {
			w.fleet(n)
			w.run(true) // the registry is inside: it can always be reached
			w.pass(30 * time.Second)
			w.network.setAll(how)
			w.pass(5 * time.Minute)
			if got := w.unhealthy(); got != 0 {
				t.Errorf("%s: %d of %d marked", what, got, n)
			}
			w.network.setAll(nil)
			for range 300 { // what was asked before, and fails only now, counts against nobody
				if w.pass(100 * time.Millisecond); w.unhealthy() > 0 {
					t.Errorf("%s: %d of %d marked as the network came back", what, w.unhealthy(), n)
					break
				}
			}
			w.network.set(address(2), blackHole)
			w.until("the dead one marked", 90*time.Second, func() bool { return !w.healthy(instance(2).Key) })
			w.pass(time.Minute)
			if got := w.unhealthy(); got != 1 {
				t.Errorf("%s: %d marked after the network was back, want 1", what, got)
			}
		})
	}
	f("black holes", 10, blackHole)
	f("black holes", 300, blackHole)
	f("cannot ask", 10, cannot)
	f("cannot ask", 300, cannot)
}

// Most of a fleet answers that it could not be asked while a few time out: the
// prober is short of something, and the few prove nothing.
func TestMostUnknownHoldsTheRest(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(20)
		w.run(true)
		w.pass(21 * time.Second)
		w.network.setAll(cannot)
		w.pass(20 * time.Second)
		w.network.setAll(nil)
		for i := range 20 {
			if w.network.set(address(i), cannot); i < 3 {
				w.network.set(address(i), blackHole)
			}
		}
		w.pass(3 * time.Minute)
		if got := w.unhealthy(); got != 0 {
			t.Errorf("%d marked, want none", got)
		}
	})
}

func TestBlackHolesBesideLiveOnesAreMarked(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(100)
		for i := range 6 {
			w.network.set(address(i), blackHole)
		}
		w.run(false)
		w.pass(45 * time.Second)
		if got := w.unhealthy(); got != 6 {
			t.Errorf("%d marked, want the 6 that are dead", got)
		}
	})
}

// The process is stopped for a while and goes on: what was in flight fails by
// the clock, and counts against nobody. Time is given to the core by hand,
// because nothing can be stopped in a bubble.
func TestAStopOfTheProcessCountsAgainstNobody(t *testing.T) {
	f := func(stop time.Duration, wallOnly bool) {
		t.Helper()
		c, r := coreWithOne()
		shift := time.Duration(0)
		c.wall = func(now time.Duration) time.Duration { return now + shift }
		now := time.Second
		tick := func(d time.Duration) {
			for end := now + d; now < end; now += tick100 {
				c.tick(now)
			}
		}
		row := c.table.get(r)
		// Two failures: one more would be the third.
		for range 2 {
			tick(row.due - now)
			c.tick(now)
			j, some := c.take(now)
			if !some {
				t.Fatal("nothing to ask")
			}
			c.settle(now, j, check.Answer{Kind: check.Sick, Reason: "refused"})
		}
		tick(row.due - now)
		c.tick(now)
		j, _ := c.take(now)
		if wallOnly {
			shift = stop
		} else {
			now += stop
		}
		// A worker wakes up first and brings a failure of the time in between.
		c.settle(now, j, check.Answer{Kind: check.Sick, Reason: "timeout", Took: stop})
		if _, _, some := c.next(now); some || row.pending {
			t.Errorf("stopped for %v: a down-write follows", stop)
		}
		if c.tally.stops != 1 {
			t.Errorf("stopped for %v: %d stops noticed", stop, c.tally.stops)
		}
		// Two more failures are not three in a row either.
		for range 2 {
			tick(row.due - now)
			c.tick(now)
			j, _ := c.take(now)
			c.settle(now, j, check.Answer{Kind: check.Sick, Reason: "refused"})
		}
		if row.pending {
			t.Errorf("stopped for %v: failures from before the stop were counted", stop)
		}
	}
	f(40*time.Second, false)
	f(5*time.Second, false)
	f(40*time.Second, true)
}

const tick100 = 100 * time.Millisecond

// coreWithOne gives a core whose only target is up and may be marked.
func coreWithOne() (*core, ref) {
	c := newCore(usualConfig().Probe, scope{}, 0)
	c.observe(tick100, false)
	c.begin(tick100)
	c.page(tick100, registry.Page{Instances: []registry.Instance{instance(1)}})
	c.finish(tick100, nil)
	return c, c.table.ref(c.table.find(instance(1).Key))
}

// After a stop the appointments of that time are skipped, not made up for all
// at once.
func TestAfterAStopNotAllAreAskedAtOnce(t *testing.T) {
	c := newCore(usualConfig().Probe, scope{}, 0)
	page := registry.Page{}
	for i := range 1000 {
		page.Instances = append(page.Instances, instance(i))
	}
	c.begin(tick100)
	c.page(tick100, page)
	c.tick(tick100)
	waiting, _ := c.tick(41 * time.Second)
	if waiting != 0 || c.tally.missed != 1000 {
		t.Errorf("%d are asked at once, %d missed", waiting, c.tally.missed)
	}
	for at := 41 * time.Second; at < 61*time.Second; at += tick100 {
		waiting, _ = c.tick(at)
	}
	if waiting < 900 {
		t.Errorf("only %d of 1000 came up within the period after", waiting)
	}
}

// An answer that comes long after its deadline was held up by us.
func TestALateFailureIsOurs(t *testing.T) {
	c, r := coreWithOne()
	row := c.table.get(r)
	for now := tick100; now < 10*time.Minute; now += tick100 {
		c.tick(now)
		if j, some := c.take(now); some {
			for end := now + 8*time.Second; now < end; now += tick100 {
				c.tick(now)
			}
			c.settle(now, j, check.Answer{Kind: check.Sick, Reason: "timeout", Took: 8 * time.Second})
		}
	}
	if row.opinion.Doubted() || row.pending {
		t.Error("late failures were counted")
	}
}

func TestSuspectsStarveNobody(t *testing.T) {
	c := newCore(usualConfig().Probe, scope{}, 0)
	page := registry.Page{}
	for i := range 20 {
		page.Instances = append(page.Instances, instance(i))
	}
	c.begin(tick100)
	c.page(tick100, page)
	for i := range int32(20) {
		if c.table.at(i).asking = true; i < 10 {
			c.urgent.push(c.table.ref(i))
		} else {
			c.ready.push(c.table.ref(i))
		}
	}
	suspects := 0
	for range 10 {
		if j, _ := c.take(tick100); j.ref.row < 10 {
			suspects++
		}
	}
	if suspects != 5 {
		t.Errorf("%d of the first 10 turns went to suspects, want half", suspects)
	}
}

// The silence of what is known to be down is no sign of our own blindness.
func TestLongDeadBlackHolesBlindNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fleet(12)
		for i := range 9 {
			w.network.set(address(i), blackHole)
		}
		w.run(true)
		w.pass(3 * time.Minute)
		if got := w.unhealthy(); got != 9 {
			t.Fatalf("%d marked, want 9", got)
		}
		for range 400 {
			w.pass(100 * time.Millisecond)
			silent := 0
			w.prober.with(func(c *core, _ time.Duration) { silent = c.sight.silent })
			if silent > 0 {
				t.Fatalf("%d count as silent", silent)
			}
		}
	})
}
