// Package admin is every binary's own small HTTP: health, readiness, status
// and metrics, on loopback unless set otherwise.
package admin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// Off is the address that switches the server off.
const Off = "off"

const (
	bodyMost    = 64 << 10 // bytes of a request's body; ours are a few words
	concurrency = 64       // connections at once; more are refused with 503
)

// Server answers
//
//	GET /healthz  200 "ok", or 503 with the reason: does the program work
//	GET /readyz   the same for: may it be counted on
//	GET /status   JSON for people and scripts
//	GET /metrics  Prometheus text: the program's own, then those of Go and of the process
//
// and what Routes adds. It listens on loopback unless set otherwise, refuses
// what a web page sends (a browser adds an Origin; behind a loopback address
// the Host must be an address or localhost), and never repeats what it was
// sent. Everybody who reaches it may read; a POST needs the token when there
// is one, and is refused without one when it listens elsewhere. Run it once.
type Server struct {
	Address string       // host:port, port 0 for any; "off": do not listen
	Healthy func() error // nil: always
	Ready   func() error // nil: always
	Status  func() any   // what /status marshals; nil: not found
	Metrics func(io.Writer)
	TLS     *tls.Config            // nil: plain HTTP
	Token   func() (string, error) // asked with each POST; nil or "": there is none
	Pprof   bool                   // GET /debug/pprof/NAME, for whom a POST is open
	Version string                 // for sidebeat_build_info in /metrics
	LogLost func() uint64          // how many lines of the log were lost, for /metrics; nil: not counted

	// Routes maps "POST /drain" to its handler; only GET and POST exist, and
	// only POST may change anything. A path that ends in "/" stands for all
	// paths under it; the longest match wins. A handler must not keep what the
	// request holds, and needs a deadline of its own.
	Routes map[string]fasthttp.RequestHandler

	Log *logrus.Logger

	listener net.Listener
	bound    atomic.Value // string
	local    bool         // listens on loopback
}

// Listen binds the address, so that Bound tells the port before Run serves.
func (s *Server) Listen(ctx context.Context) error {
	if err := s.checkRoutes(); err != nil {
		return err
	}
	ln, err := run.Listen(ctx, s.Address)
	if err != nil {
		return fmt.Errorf("cannot offer the admin endpoint: %w", err)
	}
	s.listener, s.local = ln, loopback(ln.Addr())
	s.bound.Store(ln.Addr().String())
	if token, err := s.token(); !s.local && token == "" && err == nil {
		s.Log.WithField("address", s.Bound()).Warn("the admin endpoint is reachable from other machines: anybody may read it, and POST is refused until SIDEBEAT_ADMIN_TOKEN is set")
	}
	return nil
}

// Bound gives the address that is really listened on, with its port; "" before
// Listen and when the server is off.
func (s *Server) Bound() string {
	address, _ := s.bound.Load().(string)
	return address
}

// Run serves until the context ends. It binds the address when Listen was not
// called; an address in use is its error.
func (s *Server) Run(ctx context.Context) error {
	if s.Address == Off {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	listener := s.listener
	if s.TLS != nil {
		listener = tls.NewListener(listener, s.TLS)
	}
	return run.Serve(ctx, listener, &fasthttp.Server{
		Handler:               s.handle,
		ReadTimeout:           5 * time.Second,
		WriteTimeout:          10 * time.Second, // counts from the end of the handler
		IdleTimeout:           30 * time.Second,
		MaxRequestBodySize:    bodyMost,
		Concurrency:           concurrency,
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		Logger:                quiet{},
		ErrorHandler:          func(ctx *fasthttp.RequestCtx, _ error) { answer(ctx, fasthttp.StatusBadRequest, "bad request") },
	})
}

// quiet drops fasthttp's lines: a stranger's broken request is none of ours.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func loopback(addr net.Addr) bool {
	at, err := netip.ParseAddrPort(addr.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.WithField("cause", fmt.Sprintf("%v\n%s", p, debug.Stack())).Error("cannot answer on the admin endpoint: panic")
			ctx.ResetBody()
			answer(ctx, fasthttp.StatusInternalServerError, "internal error")
		}
	}()
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	if reason := s.foreign(ctx); reason != "" {
		answer(ctx, fasthttp.StatusForbidden, reason)
		return
	}
	if !ctx.IsGet() && !ctx.IsHead() && !s.admitted(ctx) {
		return
	}
	s.route(ctx)
}

// foreign tells why a request may come from a web page. A page can send a POST
// anywhere, then with an Origin; and a name of its own that it points at
// loopback makes our answers readable to it.
func (s *Server) foreign(ctx *fasthttp.RequestCtx) string {
	if !ctx.IsGet() && !ctx.IsHead() && len(ctx.Request.Header.Peek("Origin")) > 0 {
		return "requests from web pages are refused"
	}
	if s.local && !ownHost(string(ctx.Host())) {
		return "the Host must be an address or localhost"
	}
	return ""
}

func ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || host == "" || strings.EqualFold(host, "localhost")
}

func (s *Server) route(ctx *fasthttp.RequestCtx) {
	method, path := string(ctx.Method()), string(ctx.Path())
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	if handler := s.find(method, path); handler != nil {
		handler(ctx)
		return
	}
	for _, other := range methods {
		if s.find(other, path) != nil {
			ctx.Response.Header.Set("Allow", other)
			answer(ctx, fasthttp.StatusMethodNotAllowed, "only "+other+" is allowed here")
			return
		}
	}
	answer(ctx, fasthttp.StatusNotFound, "not found")
}

var methods = []string{fasthttp.MethodGet, fasthttp.MethodPost}

// find gives the handler of the exact path, else of the longest folder above.
func (s *Server) find(method, path string) fasthttp.RequestHandler {
	if handler := s.own(method, path); handler != nil {
		return handler
	}
	if handler := s.Routes[method+" "+path]; handler != nil {
		return handler
	}
	for {
		end := strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')
		if end < 0 {
			return nil
		}
		path = path[:end+1]
		if handler := s.Routes[method+" "+path]; handler != nil {
			return handler
		}
	}
}

func (s *Server) own(method, path string) fasthttp.RequestHandler {
	if name, found := strings.CutPrefix(path, pprofPath); found && s.Pprof && method == fasthttp.MethodGet {
		return s.profile(name)
	}
	switch method + " " + path {
	case "GET /healthz":
		return verdict(s.Healthy)
	case "GET /readyz":
		return verdict(s.Ready)
	case "GET /metrics":
		return s.metrics
	case "GET /status":
		if s.Status != nil {
			return s.status
		}
	}
	return nil
}

func (s *Server) checkRoutes() error {
	for route := range s.Routes {
		method, path, _ := strings.Cut(route, " ")
		if method != fasthttp.MethodGet && method != fasthttp.MethodPost || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("cannot offer %q: a route is GET or POST, a blank and a path", route)
		}
	}
	return nil
}

func verdict(ask func() error) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if ask == nil {
			answer(ctx, fasthttp.StatusOK, "ok")
			return
		}
		if err := ask(); err != nil {
			answer(ctx, fasthttp.StatusServiceUnavailable, err.Error())
			return
		}
		answer(ctx, fasthttp.StatusOK, "ok")
	}
}

func (s *Server) status(ctx *fasthttp.RequestCtx) {
	body, err := json.MarshalIndent(s.Status(), "", "  ")
	if err != nil {
		s.Log.WithField("cause", err).Error("cannot give the status")
		answer(ctx, fasthttp.StatusInternalServerError, "internal error")
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(body, '\n'))
}

func (s *Server) metrics(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; version=0.0.4; charset=utf-8")
	if s.Metrics != nil {
		s.Metrics(ctx)
	}
	metrics.WriteGaugeUint64(ctx, fmt.Sprintf("sidebeat_build_info{version=%q,goversion=%q}", s.Version, runtime.Version()), 1)
	if s.LogLost != nil {
		metrics.WriteCounterUint64(ctx, "sidebeat_log_lines_lost_total", s.LogLost())
	}
	metrics.WriteProcessMetrics(ctx)
}

func answer(ctx *fasthttp.RequestCtx, code int, text string) {
	ctx.SetStatusCode(code)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString(text + "\n")
}
