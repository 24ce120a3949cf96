package prober

import (
	"net"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// lamps are targets of their own that can go dark.
func lamps(t *testing.T, store *registry.Store, name string, n int) (keys []registry.Key, dark func()) {
	t.Helper()
	var all []net.Listener
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		all = append(all, ln)
		keys = append(keys, at(t, store, name, ln.Addr().String(), nil))
	}
	return keys, func() {
		for _, ln := range all {
			ln.Close()
		}
	}
}

// Half of the targets, then all of them, stop listening within a moment: the
// brake holds the marks for a period, because that is more often the fault of
// the prober, then lets them through one a second; who answers is never marked.
func TestTargetsGoDark(t *testing.T) {
	f := func(name string, dark, lit int) {
		t.Run(name, func(t *testing.T) { t.Parallel(); goesDark(t, dark, lit) })
	}
	f("half", 10, 10)
	f("all", 20, 0)
}

func goesDark(t *testing.T, dark, lit int) {
	store := registry.NewStore()
	_, goDark := lamps(t, store, "dark", dark)
	_, stop := lamps(t, store, "lit", lit)
	defer stop()
	p := real(t, store, netpolicy.Prober(true), patient)
	wait := func(what string, so func(Status) bool) {
		t.Helper()
		for end := time.Now().Add(40 * time.Second); !so(p.Status().(Status)); run.Wait(t.Context(), 5*time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d dark, %d lit: not %s: %+v", dark, lit, what, p.Status())
			}
			if marked := unhealthyIn(store, "lit"); len(marked) > 0 {
				t.Fatalf("%v marked", marked)
			}
		}
	}
	wait("all up", func(s Status) bool { return s.Up == dark+lit })
	goDark()
	began := time.Now()
	wait("held", func(s Status) bool { return s.Held > 0 })
	if n := len(unhealthyIn(store, "dark")); n > (dark+lit)/2 {
		t.Errorf("%d of %d were marked before the brake held", n, dark+lit)
	}
	wait("all dark ones marked", func(Status) bool { return len(unhealthyIn(store, "dark")) == dark })
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("all were marked after %v: nothing held them", took)
	}
}
