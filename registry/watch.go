package registry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// watchPeriod is the least time between two batches for one watcher.
const watchPeriod = 100 * time.Millisecond

type watchers struct {
	some atomic.Int32 // spares the lock while nobody watches
	mu   sync.RWMutex
	all  map[*watcher]struct{}
}

// watcher gathers what changed since it was told last. It is never longer than
// the list of services, however slow its owner is.
type watcher struct {
	mu      sync.Mutex
	changed map[Service]struct{}
	bell    run.Bell
}

// Watch tells which services changed until ctx ends: the first change at once,
// then at most one batch each 100 ms, sorted. tell runs in the caller's
// goroutine with no lock held; while it runs, changes gather and none is lost.
// A change is anything that Get, View, Describe or Services shows; beats are
// none. What changed before the call is not told.
func (s *Store) Watch(ctx context.Context, tell func(changed []Service)) error {
	w := &watcher{changed: map[Service]struct{}{}, bell: run.NewBell()}
	s.watchers.add(w)
	defer s.watchers.remove(w)
	for {
		select {
		case <-w.bell:
		case <-ctx.Done():
			return ctx.Err()
		}
		if changed := w.take(); len(changed) > 0 {
			tell(changed)
			if err := run.Wait(ctx, watchPeriod); err != nil {
				return err
			}
		}
	}
}

func (w *watcher) take() []Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := slices.SortedFunc(maps.Keys(w.changed), Service.Compare)
	clear(w.changed)
	return changed
}

func (w *watcher) note(changed []Service) {
	w.mu.Lock()
	for _, service := range changed {
		w.changed[service] = struct{}{}
	}
	w.mu.Unlock()
	w.bell.Ring()
}

// tell passes changes on to all watchers. The caller holds no lock, and what
// changed can be read already.
func (s *Store) tell(changed ...Service) {
	s.renew(changed)
	if len(changed) == 0 || s.watchers.some.Load() == 0 {
		return
	}
	s.watchers.mu.RLock()
	defer s.watchers.mu.RUnlock()
	for w := range s.watchers.all {
		w.note(changed)
	}
}

func (a *watchers) add(w *watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[*watcher]struct{}{}
	}
	a.all[w] = struct{}{}
	a.some.Add(1)
}

func (a *watchers) remove(w *watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, w)
	a.some.Add(-1)
}
