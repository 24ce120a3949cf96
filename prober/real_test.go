package prober

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// real runs a prober over real sockets and real time: a period of one second.
func real(t *testing.T, store *registry.Store, policy netpolicy.Policy, changes ...func(*Config)) *Prober {
	t.Helper()
	cfg := usualConfig()
	cfg.ProbeInterval, cfg.ProbeTimeout, cfg.ProbeFall, cfg.ProbeRise = time.Second, 300*time.Millisecond, 1, 1
	for _, change := range changes {
		change(&cfg)
	}
	asker := check.NewAsker(policy)
	p, err := New(cfg, store, asker, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	p.Changed = store.Watch
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		asker.Close()
	})
	return p
}

// at registers an instance where the listener is.
func at(t *testing.T, store *registry.Store, name, address string, metadata map[string]string) registry.Key {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	in := instance(0)
	in.Name, in.IP, in.Port, in.Metadata = name, host, uint16(n), metadata
	if err := store.Register(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return in.Key
}

// becomes polls the real registry; there is no fake time over real sockets.
func becomes(t *testing.T, store *registry.Store, key registry.Key, healthy bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; run.Wait(t.Context(), 5*time.Millisecond) {
		in, err := store.Get(t.Context(), key)
		if err == nil && in.Healthy == healthy {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s did not become healthy=%v: %+v %v", key, healthy, in, err)
		}
	}
}

func TestRealSockets(t *testing.T) {
	store := registry.NewStore()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var status atomic.Int32
	status.Store(http.StatusOK)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/alive" {
			w.WriteHeader(int(status.Load()))
		}
	}))
	defer app.Close()
	bare := at(t, store, "bare", listener.Addr().String(), nil)
	web := at(t, store, "web", app.Listener.Addr().String(), map[string]string{metaCheck: "http:///alive"})
	p := real(t, store, netpolicy.Prober(true))

	listener.Close()
	becomes(t, store, bare, false)
	status.Store(http.StatusServiceUnavailable)
	becomes(t, store, web, false)
	status.Store(http.StatusOK)
	becomes(t, store, web, true)
	if listener, err = net.Listen("tcp", bare.Address()); err != nil {
		t.Skip("the port was taken by another process meanwhile")
	}
	defer listener.Close()
	becomes(t, store, bare, true)
	for _, one := range p.Targets(0, 0).Targets {
		for _, answer := range one.Answers {
			if answer.Kind == check.Unknown {
				t.Errorf("%s: %+v", one.Address, answer)
			}
		}
	}
}

// A-11 and the rule for registered addresses: what only the prober itself may
// reach is never contacted, not even by way of a redirect.
func TestForbiddenAddressesAreNeverContacted(t *testing.T) {
	store := registry.NewStore()
	var hits atomic.Int32
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer canary.Close()
	key := at(t, store, "canary", canary.Listener.Addr().String(), map[string]string{metaCheck: "http:///"})
	at(t, store, "metadata", "169.254.169.254:80", nil)
	p := real(t, store, netpolicy.Prober(false))
	var once sync.Once
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); run.Wait(t.Context(), 5*time.Millisecond) {
		answered := 0
		for _, one := range p.Targets(0, 0).Targets {
			if len(one.Answers) >= 2 {
				answered++
			}
			for _, answer := range one.Answers {
				if answer.Kind != check.Unknown {
					once.Do(func() { t.Errorf("%s: %+v", one.Address, answer) })
				}
			}
		}
		if answered == 2 {
			break
		}
	}
	if in, err := store.Get(t.Context(), key); err != nil || !in.Healthy || hits.Load() != 0 {
		t.Errorf("got %+v %v with %d hits", in, err, hits.Load())
	}
}
