package nacos

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/prober"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/raftlog"
	"github.com/sidebeat/sidebeat/run"
)

// stageOf plays a recording where it belongs: most under fake time on a store
// of their own, restarts on files, checks with a real prober.
func stageOf(t *testing.T, r recording, c *score) {
	t.Helper()
	checkListed(t, r)
	switch {
	case r.Scenario == "04-restart":
		playRestart(t, r, c)
	case strings.HasPrefix(r.Scenario, "11-"), r.Scenario == "04-persistent-stays":
		playChecks(t, r, c)
	case r.Scenario == "12-udp-push":
		synctest.Test(t, func(t *testing.T) { playPush(t, r, c) })
	case withAccess(r):
		synctest.Test(t, func(t *testing.T) { playAccess(t, r, c) })
	default:
		synctest.Test(t, func(t *testing.T) { play(t, r, c) })
	}
}

func play(t *testing.T, r recording, c *score) {
	serve := startServer(t, &Server{Store: registry.NewStore(), Log: silentLog()})
	began := time.Now()
	for n, s := range r.Steps {
		if s.Request == nil {
			continue
		}
		reach(t, serve, r, n, began)
		if got := ask(t, serve, s); r.compared(s) {
			c.judge(t, r, n, got)
		}
	}
}

// reach waits for the time of step n and repeats meanwhile what has to be.
func reach(t *testing.T, serve dialer, r recording, n int, began time.Time) {
	t.Helper()
	repeat(t, serve, r, n, began)
	time.Sleep(time.Until(began.Add(time.Duration(r.Steps[n].AtMillis) * time.Millisecond)))
}

// repeats are requests that were sent again and again while only the first or
// the last of them was written down.
var repeats = map[string][]struct{ step, from, to, every int }{
	"12-udp-push":      {{1, 5024, 40100, 5000}},
	"03-expiry-beaten": {{1, 100, 6100, 1000}},
	"02-beat-name-mismatch": {
		{6, 1607, 22000, 1000}, {8, 1776, 22000, 1000}, {10, 1829, 22000, 1000},
		{12, 1978, 22000, 1000}, {14, 2057, 22000, 1000}, {16, 2159, 22000, 1000},
	},
}

// repeat sends what has to be repeated between the step before n and n.
func repeat(t *testing.T, serve dialer, r recording, n int, began time.Time) {
	t.Helper()
	type due struct{ at, step int }
	var queue []due
	for _, again := range repeats[r.key()] {
		for at := again.from; at <= again.to; at += again.every {
			if at < r.Steps[n].AtMillis && (n == 0 || at >= r.Steps[n-1].AtMillis) {
				queue = append(queue, due{at, again.step})
			}
		}
	}
	slices.SortFunc(queue, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	for _, d := range queue {
		time.Sleep(time.Until(began.Add(time.Duration(d.at) * time.Millisecond)))
		if got := ask(t, serve, r.Steps[d.step]); got.Status != http.StatusOK {
			t.Fatalf("repeated step %d: %v", d.step, got)
		}
	}
}

// playRestart plays on a store whose log is on disk and starts both anew where
// the recording says that the server refuses connections. Nothing in it waits
// for time to pass, so that it goes as fast as it can.
func playRestart(t *testing.T, r recording, c *score) {
	folder := t.TempDir()
	serve, stop := startDurable(t, folder)
	defer func() { stop() }()
	for n, s := range r.Steps {
		if strings.Contains(s.Event, "refuses connections") {
			stop()
			serve, stop = startDurable(t, folder)
		}
		if s.Request == nil {
			continue
		}
		if got := ask(t, serve, s); r.compared(s) {
			c.judge(t, r, n, got)
		}
	}
}

// startDurable serves from the files in the folder until stop is called.
func startDurable(t *testing.T, folder string) (serve dialer, stop func()) {
	t.Helper()
	store := registry.NewStore()
	log, err := raftlog.Open(raftlog.Config{Folder: folder, Log: silentLog()}, store)
	if err != nil {
		t.Fatal(err)
	}
	store.UseLog(log)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	if err := log.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	serve, stopServer := serveUntil(t, &Server{Store: store, Log: silentLog(), Writable: log.Writable})
	return serve, func() {
		stopServer()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("log ended with %v", err)
		}
	}
}

// playChecks plays with a real prober beside the store and a real listener that
// it probes. What counts is the order in which things happen, not when: a read
// that waited for a change is asked again until the change is there.
func playChecks(t *testing.T, r recording, c *score) {
	r, target := onFreePort(t, r)
	defer func() { target.Close() }()
	if first := slices.IndexFunc(r.Steps, func(s step) bool { return strings.HasPrefix(s.Event, "listener ") }); first < 0 ||
		!strings.HasPrefix(r.Steps[first].Event, "listener stopped") {
		target.Close() // nothing listens at first
	}
	synctest.Test(t, func(t *testing.T) {
		store := registry.NewStore()
		serve := startServer(t, &Server{Store: store, Log: silentLog(), ProberInside: true})
		startProber(t, store)
		began := time.Now()
		for n, s := range r.Steps {
			switch {
			case strings.HasPrefix(s.Event, "listener stopped"):
				target.Close()
			case strings.HasPrefix(s.Event, "listener started"):
				target = listenOn(t, target.Addr().String())
			}
			if s.Request == nil {
				continue
			}
			time.Sleep(time.Until(began.Add(time.Duration(s.AtMillis) * time.Millisecond)))
			got := ask(t, serve, s)
			waited := strings.Contains(s.Note, ": seen ") || s.Note == "changed"
			for deadline := time.Now().Add(time.Minute); waited && got != s.want(t) && time.Now().Before(deadline); {
				time.Sleep(100 * time.Millisecond)
				got = ask(t, serve, s)
			}
			if r.compared(s) {
				c.judge(t, r, n, got)
			}
		}
	})
}

// onFreePort gives the recording with a port that is free here in place of the
// recorded one, and a listener on it. Nobody accepts: the kernel does.
func onFreePort(t *testing.T, r recording) (recording, net.Listener) {
	t.Helper()
	target := listenOn(t, "127.0.0.1:0")
	_, here, err := net.SplitHostPort(target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there := r.Steps[0].Request.Form[paramPort]
	for n, s := range r.Steps {
		if s.Request == nil {
			continue
		}
		for _, m := range []map[string]string{s.Request.Form, s.Request.Query} {
			if m[paramPort] == there {
				m[paramPort] = here
			}
		}
		r.Steps[n].Response.Body = strings.ReplaceAll(s.Response.Body, there, here)
	}
	return r, target
}

func listenOn(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startProber probes the store until the test ends, at the pace of the TCP
// checks of Nacos: each second, and three good answers make healthy.
func startProber(t *testing.T, store *registry.Store) {
	t.Helper()
	asker := check.NewAsker(netpolicy.Prober(true))
	config := prober.Config{Probe: prober.Probe{
		ProbeInterval: time.Second, ProbeTimeout: 500 * time.Millisecond, ProbeRise: 3, ProbeFall: 3,
		ProbeAllowLoopback: true, ProbeInFlight: 10, ProbeWriteRate: 10,
	}}
	p, err := prober.New(config, store, asker, silentLog())
	if err != nil {
		t.Fatal(err)
	}
	p.Changed = store.Watch
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run.All(ctx, p.Run) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("prober ended with %v", err)
		}
		asker.Close()
	})
}
