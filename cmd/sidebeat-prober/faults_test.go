package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// Many targets die at once, too few for the brake, and the registry goes away while that is
// being written, again and again: once it is back for good, all that is dead is
// marked and nothing else, and while it was away nobody was judged anew.
func TestRegistryGoesDuringWrites(t *testing.T) {
	t.Parallel()
	h := build(t, false)
	at, cut := h.between(t)
	h.child.Env = append(h.child.Env, "SIDEBEAT_NACOS=http://"+at, "SIDEBEAT_PROBE_WRITE_RATE=5", "SIDEBEAT_PROBE_FALL=2")
	_, port, _ := net.SplitHostPort(listenAll(t).Addr().String())
	dying := listenAll(t)
	_, mortal, _ := net.SplitHostPort(dying.Addr().String())
	var dead, well []registry.Key
	for i := range 50 {
		well = append(well, h.register(fmt.Sprintf("127.0.3.%d:%s", 1+i, port), nil))
	}
	for i := range 14 {
		dead = append(dead, h.register(fmt.Sprintf("127.0.3.%d:%s", 1+i, mortal), nil))
	}
	h.start()
	h.until("answered by all", func() bool {
		_, body, err := admin.Get(h.Context(), h.admin, "/metrics")
		return err == nil && strings.Contains(string(body), "sidebeat_prober_targets_up 64")
	})
	count := func(keys []registry.Key) (unhealthy int) {
		for _, key := range keys {
			if !h.healthy(key) {
				unhealthy++
			}
		}
		return unhealthy
	}
	dying.Close()
	for goal := 2; goal <= 6; goal += 4 {
		h.until("writing", func() bool { return count(dead) >= goal })
		back := cut()
		before := count(dead)
		run.Wait(t.Context(), time.Second)
		if now := count(dead); now > before+1 { // one may have been on its way
			t.Errorf("%d were written while the registry was away", now-before)
		}
		back()
	}
	h.until("all marked", func() bool { return count(dead) == len(dead) })
	if wrong := count(well); wrong > 0 {
		t.Errorf("%d that live are marked; the log:\n%s", wrong, h.log.String())
	}
}

// between serves the store of the house at one more address, which can be cut
// off: cut takes it away, with all connections, and gives the way back.
func (h *house) between(t *testing.T) (address string, cut func() (back func())) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	serve := func(address string) (at string, stop func()) {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server := (&nacos.Server{Store: h.store, Log: quiet, Version: "test"}).HTTP()
		ctx, gone := context.WithCancel(context.Background())
		inner := server.Handler
		server.Handler = func(r *fasthttp.RequestCtx) {
			if ctx.Err() != nil {
				r.SetStatusCode(http.StatusBadGateway)
				return
			}
			inner(r)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Serve(ctx, ln, server) }()
		return ln.Addr().String(), func() { gone(); <-ended }
	}
	at, stop := serve(freeAddress(t))
	t.Cleanup(func() { stop() })
	return at, func() func() {
		stop()
		stop = func() {}
		return func() { _, stop = serve(at) }
	}
}

// listenAll listens on all addresses of the machine.
func listenAll(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}
