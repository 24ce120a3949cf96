package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sidebeat-prober": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

// house is a registry over HTTP in this process, and one prober program.
type house struct {
	*testing.T
	store *registry.Store
	admin string
	child *exec.Cmd
	log   locked
}

// locked is a buffer that a child writes while the test reads.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// freeAddress gives a loopback address that nobody listens on, below the ports
// that the kernel gives to connections: one of those may be taken again before
// it is used.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(17_000))
		if _, given := givenAddresses.LoadOrStore(address, true); given {
			continue
		}
		if ln, err := net.Listen("tcp", address); err == nil {
			ln.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

var givenAddresses sync.Map // no address is given twice

func build(t *testing.T, inside bool) *house {
	t.Helper()
	h := &house{T: t, store: registry.NewStore()}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	ctx, stop := context.WithCancel(t.Context())
	ln, err := run.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &nacos.Server{Store: h.store, Log: quiet, ProberInside: inside, Version: "test"}
	ended := make(chan error, 1)
	go func() { ended <- run.Serve(ctx, ln, server.HTTP()) }()
	t.Cleanup(func() { stop(); <-ended })

	h.admin = freeAddress(t)
	h.child = exec.Command("sidebeat-prober")
	h.child.Env = append(os.Environ(),
		"SIDEBEAT_NACOS=http://"+ln.Addr().String(), "SIDEBEAT_ADMIN="+h.admin, "SIDEBEAT_PROBE_ALLOW_LOOPBACK=true",
		"SIDEBEAT_PROBE_INTERVAL=1s", "SIDEBEAT_PROBE_TIMEOUT=400ms", "SIDEBEAT_PROBE_FALL=1", "SIDEBEAT_PROBE_RISE=1",
	)
	h.child.Stderr = &h.log
	return h
}

func (h *house) start() {
	h.Helper()
	if err := h.child.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		h.child.Process.Signal(syscall.SIGCONT)
		h.child.Process.Signal(syscall.SIGTERM)
		if err := h.child.Wait(); err != nil {
			h.Errorf("the prober ended with %v:\n%s", err, h.log.String())
		}
	})
}

// register puts a persistent instance at an address into the registry.
func (h *house) register(address string, metadata map[string]string) registry.Key {
	h.Helper()
	host, port, _ := strings.Cut(address, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		h.Fatal(err)
	}
	in := registry.Instance{Weight: 1, Enabled: true, Healthy: true, Metadata: metadata, Key: registry.Key{
		Service: registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "legacy"}, Cluster: "DEFAULT", IP: host, Port: uint16(n),
	}}
	if err := h.store.Register(h.Context(), in); err != nil {
		h.Fatal(err)
	}
	return in.Key
}

// until polls; there is no fake time between processes.
func (h *house) until(what string, so func() bool) {
	h.Helper()
	for end := time.Now().Add(15 * time.Second); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("not %s; the log:\n%s", what, h.log.String())
		}
	}
}

func (h *house) healthy(key registry.Key) bool {
	in, err := h.store.Get(h.Context(), key)
	return err == nil && in.Healthy
}

// targets is GET /targets as a script reads it.
type targets struct {
	Total     int
	Observing bool
	Targets   []struct {
		Verdict, Write string
		Answers        []any
	}
}

func (h *house) targets() (page targets) {
	h.Helper()
	status, body, err := admin.Get(h.Context(), h.admin, "/targets?limit=10")
	if err != nil || status != http.StatusOK {
		return targets{} // it does not listen yet
	}
	if err := json.Unmarshal(body, &page); err != nil {
		h.Fatal(err)
	}
	return page
}

// answers tells whether every target has answered at least once.
func (h *house) answers() bool {
	page := h.targets()
	for _, one := range page.Targets {
		if len(one.Answers) == 0 {
			return false
		}
	}
	return page.Total > 0
}

func TestProbesOverHTTP(t *testing.T) {
	h := build(t, false)
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := h.register(app.Addr().String(), nil)
	h.start()
	h.until("up", h.answers)
	app.Close()
	h.until("marked unhealthy", func() bool { return !h.healthy(key) })
	if app, err = net.Listen("tcp", key.Address()); err != nil {
		t.Skip("the port was taken by another process meanwhile")
	}
	defer app.Close()
	h.until("marked healthy", func() bool { return h.healthy(key) })
	if status, body, err := admin.Get(t.Context(), h.admin, "/readyz"); status != http.StatusOK {
		t.Errorf("not ready: %d %s %v", status, body, err)
	}
	if status, _, _ := admin.Get(t.Context(), h.admin, "/targets?from=many"); status != http.StatusBadRequest {
		t.Errorf("a bad page is answered with %d", status)
	}
}

func TestObservesBesideAProberInside(t *testing.T) {
	h := build(t, true)
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := h.register(app.Addr().String(), nil)
	app.Close()
	h.start()
	h.until("judged", func() bool {
		page := h.targets()
		return page.Observing && len(page.Targets) == 1 && page.Targets[0].Verdict == "down"
	})
	if !h.healthy(key) || h.targets().Targets[0].Write != "none" {
		t.Error("an observer wrote")
	}
	if !strings.Contains(h.log.String(), "observes and writes nothing") {
		t.Errorf("not said:\n%s", h.log.String())
	}
	if status, _, _ := admin.Get(t.Context(), h.admin, "/readyz"); status != http.StatusOK {
		t.Errorf("an observer is ready, got %d", status)
	}
}

// The prober is stopped in the middle of questions for longer than their
// timeout, again and again: nobody is marked, although one failure is enough
// here.
func TestAStoppedProberMarksNobody(t *testing.T) {
	h := build(t, false)
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select { // slow, so that it is caught in flight
		case <-time.After(200 * time.Millisecond):
		case <-r.Context().Done():
		}
	}))
	app.Listener.Close()
	app.Listener = ln
	app.Start()
	defer app.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	var keys []registry.Key
	for n := range 8 {
		keys = append(keys, h.register(fmt.Sprintf("127.0.0.%d:%s", n+1, port), map[string]string{"sidebeat.check": "http:///"}))
	}
	h.start()
	h.until("asked", h.answers)
	const stops = 3
	for range stops {
		h.child.Process.Signal(syscall.SIGSTOP)
		time.Sleep(1200 * time.Millisecond)
		h.child.Process.Signal(syscall.SIGCONT)
		time.Sleep(1300 * time.Millisecond)
	}
	h.until("noticed", func() bool { return strings.Count(h.log.String(), "the prober itself was stopped") >= stops })
	for _, key := range keys {
		if !h.healthy(key) {
			t.Errorf("%s was marked", key)
		}
	}
	if strings.Contains(h.log.String(), "target is down") {
		t.Errorf("somebody was judged down:\n%s", h.log.String())
	}
}
