package registry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard notes what a watcher was told, and when.
type heard struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func (h *heard) note(changed []Service) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, service := range changed {
		names = append(names, service.Name)
	}
	h.lines = append(h.lines, fmt.Sprintf("%v %s", time.Since(h.start), strings.Join(names, " ")))
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, ", ")
}

// watched plays with a store that somebody watches; slow is how long each tell
// takes.
func watched(t *testing.T, slow time.Duration, f func(l life, h *heard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, h := life{t, NewStore()}, &heard{start: time.Now()}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- l.Watch(ctx, func(changed []Service) { h.note(changed); time.Sleep(slow) })
		}()
		synctest.Wait()
		f(l, h)
		stop()
		if err := <-done; err != context.Canceled {
			t.Errorf("got %v", err)
		}
		if n := len(l.watchers.all); n != 0 || l.watchers.some.Load() != 0 {
			t.Errorf("%d watchers are left", n)
		}
	})
}

func (l life) hears(h *heard, want string) {
	l.Helper()
	synctest.Wait()
	if got := h.all(); got != want {
		l.Errorf("heard %q, want %q", got, want)
	}
}

func TestWatchTellsTheFirstAtOnceAndMergesTheRest(t *testing.T) {
	watched(t, 0, func(l life, h *heard) {
		time.Sleep(time.Second)
		l.register(eph("b", "1"))
		l.hears(h, "1s b")
		for i := range 5 {
			time.Sleep(10 * time.Millisecond)
			l.register(eph("a", fmt.Sprint(i)), eph("c", fmt.Sprint(i)))
		}
		l.hears(h, "1s b")
		time.Sleep(80 * time.Millisecond)
		l.hears(h, "1s b, 1.1s a c")
		time.Sleep(10 * time.Second)
		l.hears(h, "1s b, 1.1s a c")
		l.register(eph("b", "2"))
		l.hears(h, "1s b, 1.1s a c, 11.13s b")
	})
}

func TestWatchHearsOfEveryKindOfChangeAndOfNothingElse(t *testing.T) {
	watched(t, 0, func(l life, h *heard) {
		f := func(what string, do func(), want bool) {
			l.Helper()
			synctest.Wait()
			before := h.all()
			do()
			synctest.Wait()
			if got := h.all() != before; got != want {
				l.Errorf("%s: told %v, want %v", what, got, want)
			}
			time.Sleep(watchPeriod)
		}
		one, db := eph("orders", "1"), per("db", "1")
		f("register", func() { l.register(one) }, true)
		f("the same again", func() { l.register(one) }, false)
		f("beat", func() { l.beat(one) }, false)
		f("quiet", func() { l.pass(14 * time.Second) }, false)
		f("silence", func() { l.pass(2 * time.Second) }, true)
		f("healing beat", func() { l.beat(one) }, true)
		f("mark", func() { one.Healthy = false; l.ok(l.Mark(l.Context(), one)) }, true)
		f("overlay", func() { l.ok(l.Override(l.Context(), one.Key, Overlay{Weight: new(2.0)})) }, true)
		f("deleted for silence", func() { l.pass(31 * time.Second) }, true)
		f("deregister unknown", func() { l.ok(l.Deregister(l.Context(), one.Key)) }, false)
		f("cleaned", func() { l.pass(61 * time.Second) }, true)
		f("persistent", func() { l.register(db) }, true)
		f("the same again", func() { l.register(db) }, false)
		f("health", func() { l.ok(l.SetHealth(l.Context(), db, false)) }, true)
		f("the same health", func() { l.ok(l.SetHealth(l.Context(), db, false)) }, false)
		f("cluster", func() { l.ok(l.SetCluster(l.Context(), ClusterConfig{Cluster: Cluster{db.Service, "C"}})) }, true)
		f("service", func() { l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: db.Service, ProtectThreshold: 0.5})) }, true)
		f("deregister", func() { l.ok(l.Deregister(l.Context(), db.Key)) }, true)
		f("delete", func() { l.ok(l.DeleteService(l.Context(), db.Service)) }, true)
		image := snapshot(l, l.Store)
		l.register(db)
		time.Sleep(watchPeriod)
		f("restore", func() { l.ok(l.Restore(strings.NewReader(string(image)))) }, true)
	})
}

// A watcher that takes 10 s for each batch loses nothing and holds up nobody.
func TestSlowWatcher(t *testing.T) {
	watched(t, 10*time.Second, func(l life, h *heard) {
		for i := range 30 {
			l.register(eph("a", fmt.Sprint(i)))
			time.Sleep(time.Second)
			l.register(eph(fmt.Sprintf("s%02d", i), "1"))
		}
		if time.Since(h.start) != 30*time.Second {
			l.Errorf("the changes took %v", time.Since(h.start))
		}
		time.Sleep(20 * time.Second)
		l.hears(h, "0s a, 10.1s a s00 s01 s02 s03 s04 s05 s06 s07 s08 s09, "+
			"20.2s a s10 s11 s12 s13 s14 s15 s16 s17 s18 s19, 30.3s a s20 s21 s22 s23 s24 s25 s26 s27 s28 s29")
	})
}

// What a watcher reads when it is told is at least as new as the change, and it
// may use the store while it is told.
func TestWatcherMayUseTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := life{t, NewStore()}
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		var told [3]int
		for w := range told {
			watching.Go(func() {
				l.Watch(ctx, func(changed []Service) {
					for _, service := range changed {
						told[w] += len(l.View(service, Query{}).Instances)
						if w == 0 && service.Name == "a" {
							l.register(per("b", "1"))
						}
					}
				})
			})
		}
		synctest.Wait()
		l.register(eph("a", "1"))
		time.Sleep(time.Second)
		stop()
		watching.Wait()
		if told != [3]int{2, 2, 2} {
			t.Errorf("got %v", told)
		}
	})
}
