package prober

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

func TestRefusedWriteIsSaidOnceAndTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.link.refuse = fmt.Errorf("health check is still working: %w", registry.ErrRefused)
		w.run(false)
		w.pass(3 * time.Minute)
		if n := w.said("refuses the health"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
		w.link.change(func(l *link) { l.refuse = nil })
		w.until("marked", 25*time.Second, func() bool { return !w.healthy(key) })
	})
}

func TestFailedWriteIsMadeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.link.refuse = fmt.Errorf("cannot write: %w", registry.ErrUnavailable)
		w.run(false)
		w.pass(3 * time.Minute)
		if n := w.said("cannot write health"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
		w.link.change(func(l *link) { l.refuse = nil })
		w.until("marked", backoffMost+time.Second, func() bool { return !w.healthy(key) })
		if n := w.said("can be written again"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
	})
}

// stale says a few times that the instance has changed since it was read.
type stale struct {
	*link
	left int
}

func (s *stale) SetHealth(ctx context.Context, seen registry.Instance, healthy bool) error {
	if s.left > 0 {
		s.left--
		return registry.ErrStale
	}
	return s.link.SetHealth(ctx, seen, healthy)
}

func TestStaleIsReadAgain(t *testing.T) {
	for _, times := range []int{1, 2, 7} {
		most := 3 * time.Second // no longer than without
		if times > staleTries {
			most += backoffMost
		}
		inWorld(t, func(w *world) {
			key := w.register(instance(1))
			w.network.set(key.Address(), refusing)
			p, err := New(w.cfg, &stale{w.link, times}, w.network, w.logger)
			if err != nil {
				t.Fatal(err)
			}
			w.start(p)
			w.firstAsked("tcp://")
			w.until("marked", most, func() bool { return !w.healthy(key) })
		})
	}
}

// cutter does something between the prober's reading and its writing.
type cutter struct {
	*registry.Store
	between func()
}

func (c *cutter) Get(ctx context.Context, key registry.Key) (registry.Instance, error) {
	seen, err := c.Store.Get(ctx, key)
	if err == nil {
		c.between()
	}
	return seen, err
}

// An instance is deleted at any moment around the prober's reading and writing,
// in every other round exactly in between: it never comes back.
func TestDeleteRacingWithWrites(t *testing.T) {
	const rounds = 10_000
	store := &cutter{Store: registry.NewStore()}
	p, err := New(usualConfig(), store, &network{t: t}, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	p.with(func(c *core, now time.Duration) { c.observe(now, false) })
	key := instance(1).Key
	remove := func() {
		if err := store.Deregister(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	for round := range rounds {
		if err := store.Register(t.Context(), instance(1)); err != nil {
			t.Fatal(err)
		}
		w := downWrite(p)
		var running sync.WaitGroup
		if store.between = func() {}; round%2 == 0 {
			store.between = remove
		} else {
			running.Go(remove)
		}
		o, err := p.perform(t.Context(), w)
		running.Wait()
		if _, found := store.Store.Get(t.Context(), key); !errors.Is(found, registry.ErrNotFound) {
			t.Fatalf("round %d: came back from the dead after %v %v", round, o, err)
		}
		p.with(func(c *core, now time.Duration) { c.wrote(now, w, o, err) })
	}
	if gone := p.core.tally.writes[gone]; gone < rounds/2 || p.core.table.n > 1 {
		t.Errorf("%d writes found the instance gone, want half at least; %d targets left", gone, p.core.table.n)
	}
}

// downWrite lists the one instance and wants it marked down.
func downWrite(p *Prober) (w write) {
	p.with(func(c *core, now time.Duration) {
		c.begin(now)
		c.page(now, registry.Page{Instances: []registry.Instance{instance(1)}})
		i := c.table.find(instance(1).Key)
		c.tally.leave(c.table.at(i))
		c.table.at(i).opinion.Verdict = health.Down
		c.tally.enter(c.table.at(i))
		w = write{ref: c.table.ref(i), epoch: c.epoch, key: instance(1).Key}
	})
	return w
}

// Reading one instance before a write fails while lists come through: that is
// no contact either, and needs a fresh answer afterwards.
func TestReadingFails(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		r := &unread{link: w.link}
		r.broken.Store(true)
		p, err := New(w.cfg, r, w.network, w.logger)
		if err != nil {
			t.Fatal(err)
		}
		w.start(p)
		w.pass(time.Minute)
		w.network.set(key.Address(), cannot)
		w.pass(25 * time.Second)
		r.broken.Store(false)
		w.pass(backoffMost + time.Second)
		if !w.healthy(key) {
			t.Error("marked without an answer after the registry could be read again")
		}
	})
}

type unread struct {
	*link
	broken atomic.Bool
}

func (u *unread) Get(ctx context.Context, key registry.Key) (registry.Instance, error) {
	if u.broken.Load() {
		return registry.Instance{}, errCut
	}
	return u.link.Get(ctx, key)
}

// What somebody else has written meanwhile is not written again.
func TestWhatIsSoAlreadyIsNotWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.register(instance(1))
		w.network.set(key.Address(), refusing)
		w.run(false)
		w.firstAsked("tcp://")
		seen, _ := w.store.Get(t.Context(), key)
		if err := w.store.SetHealth(t.Context(), seen, false); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if len(w.link.made()) > 0 {
			t.Errorf("wrote %v", w.link.made())
		}
	})
}

// A list that was read before our write does not undo it.
func TestAnOldListSaysNothing(t *testing.T) {
	c, r := coreWithOne()
	row := c.table.get(r)
	old := registry.Page{Instances: []registry.Instance{instance(1)}}
	row.decided, row.opinion.Verdict, row.asking = true, health.Down, false
	c.begin(time.Second)
	c.wrote(2*time.Second, write{ref: r, key: instance(1).Key}, written, nil)
	c.page(3*time.Second, old)
	if row.believed || row.asking {
		t.Errorf("believed healthy %v, asked again %v: the list is older than the write", row.believed, row.asking)
	}
	c.begin(4 * time.Second)
	c.page(4*time.Second, old)
	if !row.believed || !row.asking {
		t.Error("a newer list must be believed, and the target asked")
	}
}
