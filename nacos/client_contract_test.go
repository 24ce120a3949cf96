package nacos

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/registrytest"
	"github.com/sidebeat/sidebeat/run"
)

// site is a registry with its store and a client to it.
type site struct {
	*Client
	store  *registry.Store
	server *Server
}

// openSite starts a store and a server on ln, and a client that dials with
// dial. All of it ends with the test.
func openSite(t *testing.T, ln net.Listener, dial func(context.Context, string, string) (net.Conn, error)) *site {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	store := registry.NewStore()
	server := &Server{Store: store, Log: log, Version: "test", ProberInside: true}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		serve := func(ctx context.Context) error { return run.Serve(ctx, ln, server.HTTP()) }
		if err := run.All(ctx, store.Run, serve); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	c := opened(t, ClientConfig{Servers: []string{"http://" + ln.Addr().String()}, Dial: dial})
	return &site{c, store, server}
}

var ourPromises = registrytest.Can{Revisions: true, CompareAndSet: true, Expiry: true, Enabled: true}

// The client over the server over the store keeps every promise of a registry,
// in the time of a bubble.
func TestContractInMemory(t *testing.T) {
	for _, rule := range registrytest.Rules {
		if !rule.Applies(ourPromises) {
			continue
		}
		t.Run(rule.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rule.Check(t, memorySite(t), ourPromises) })
		})
	}
}

// memorySite is a site without a network, for bubbles: what fasthttp starts
// ends within ten seconds of the last connection.
func memorySite(t *testing.T) *site {
	t.Cleanup(func() { time.Sleep(10 * time.Second) })
	ln := fasthttputil.NewInmemoryListener()
	return openSite(t, named{ln}, func(context.Context, string, string) (net.Conn, error) { return ln.Dial() })
}

// named gives the in-memory listener an address that a URL can hold.
type named struct{ *fasthttputil.InmemoryListener }

func (named) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8848} }

// The same over real TCP, but for what takes real time.
func TestContractOverTCP(t *testing.T) {
	promises := ourPromises
	promises.Expiry = false
	registrytest.Run(t, func(t *testing.T) registrytest.Registry { return realSite(t) }, promises)
}

func realSite(t *testing.T) *site {
	ln, err := run.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return openSite(t, ln, nil)
}
