package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/valyala/fasthttp"
)

// serve runs the server on a free port of loopback until the test ends.
func serve(t *testing.T, s *Server) *test.Hook {
	t.Helper()
	if s.Address == "" {
		s.Address = "127.0.0.1:0"
	}
	log, lines := test.NewNullLogger()
	s.Log = log
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	ctx, stop := context.WithCancel(context.Background())
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	return lines
}

// ask sends a request with headers given as name, value, ... and gives the
// answer as "200 body".
func ask(t *testing.T, s *Server, method, path, body string, headers ...string) (string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Bound()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, text), response.Header
}

func TestVerdicts(t *testing.T) {
	var sick error
	s := &Server{Healthy: func() error { return sick }}
	serve(t, s)
	f := func(path, want string) {
		t.Helper()
		if got, _ := ask(t, s, "GET", path, ""); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	f("/healthz", "200 ok\n")
	f("/readyz", "200 ok\n")
	sick = errors.New("the loop of orders has not turned for 30s")
	f("/healthz", "503 the loop of orders has not turned for 30s\n")
	f("/readyz", "200 ok\n")
	f("/status", "404 not found\n")
}

func TestStatusAndMetrics(t *testing.T) {
	s := &Server{
		Status:  func() any { return map[string]string{"app": "orders <1>"} },
		Metrics: func(w io.Writer) { io.WriteString(w, "sidebeat_beats_total 7\n") },
	}
	serve(t, s)
	got, header := ask(t, s, "GET", "/status", "")
	if got != "200 {\n  \"app\": \"orders \\u003c1\\u003e\"\n}\n" || header.Get("Content-Type") != "application/json" || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %s with %v", got, header)
	}
	got, _ = ask(t, s, "GET", "/metrics", "")
	if !strings.HasPrefix(got, "200 sidebeat_beats_total 7\n") || !strings.Contains(got, "\nsidebeat_build_info{version=") || !strings.Contains(got, "\ngo_goroutines ") || !strings.Contains(got, "\nprocess_resident_memory_bytes ") {
		t.Errorf("got %.300s", got)
	}
}

func TestStatusThatCannotBeMarshalled(t *testing.T) {
	s := &Server{Status: func() any { return make(chan int) }}
	lines := serve(t, s)
	if got, _ := ask(t, s, "GET", "/status", ""); got != "500 internal error\n" || len(lines.AllEntries()) != 1 {
		t.Errorf("got %q and %d lines", got, len(lines.AllEntries()))
	}
}

func TestRoutes(t *testing.T) {
	say := func(text string) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString(text) }
	}
	s := &Server{Routes: map[string]fasthttp.RequestHandler{
		"POST /drain": say("drained"), "GET /targets": say("targets"), "POST /push/": say("pushed"), "POST /push/deep/": say("deep"),
	}}
	serve(t, s)
	f := func(request, want string, headers ...string) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		if got, _ := ask(t, s, method, path, "<b>hello", headers...); got != want {
			t.Errorf("%s %q: got %q, want %q", request, headers, got, want)
		}
	}
	f("POST /drain", "200 drained")
	f("GET /drain", "405 only POST is allowed here\n")
	f("DELETE /drain", "405 only POST is allowed here\n")
	f("POST /healthz", "405 only GET is allowed here\n")
	f("HEAD /healthz", "200 ")
	f("GET /targets", "200 targets")
	f("GET /targets/more", "404 not found\n")
	f("POST /push/orders", "200 pushed")
	f("POST /push/deep/er/", "200 deep")
	f("POST /push", "404 not found\n")
	f("GET /<script>", "404 not found\n")
	// A browser names the page that sends; even one that claims to be us.
	f("POST /drain", "403 requests from web pages are refused\n", "Origin", "http://evil.example")
	f("POST /drain", "403 requests from web pages are refused\n", "Origin", "http://"+s.Bound())
	f("POST /drain", "403 requests from web pages are refused\n", "Origin", "null")
	f("GET /targets", "200 targets", "Origin", "http://evil.example")
	// A stranger's name that points at loopback.
	f("GET /targets", "403 the Host must be an address or localhost\n", "Host", "evil.example:9180")
	f("GET /targets", "200 targets", "Host", "localhost")
	f("GET /targets", "200 targets", "Host", "LocalHost:9180")
	f("GET /targets", "200 targets", "Host", "[::1]:9180")
	f("GET /targets", "200 targets", "Host", "127.0.0.1")
}

func TestRoutesThatDoNotExist(t *testing.T) {
	f := func(route string) {
		t.Helper()
		s := &Server{Address: "127.0.0.1:0", Routes: map[string]fasthttp.RequestHandler{route: func(*fasthttp.RequestCtx) {}}}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), route) {
			t.Errorf("%q: got %v", route, err)
		}
	}
	f("DELETE /x")
	f("POST x")
	f("/x")
}

func TestPanicIsAnswered(t *testing.T) {
	s := &Server{Routes: map[string]fasthttp.RequestHandler{"GET /x": func(ctx *fasthttp.RequestCtx) {
		ctx.SetBodyString("half")
		panic("secret detail")
	}}}
	lines := serve(t, s)
	if got, _ := ask(t, s, "GET", "/x", ""); got != "500 internal error\n" {
		t.Errorf("got %q", got)
	}
	if entry := lines.LastEntry(); entry == nil || !strings.Contains(fmt.Sprint(entry.Data["cause"]), "secret detail") {
		t.Errorf("got %v, want the panic in the log", entry)
	}
}

func TestBigAndBrokenRequests(t *testing.T) {
	s := &Server{Routes: map[string]fasthttp.RequestHandler{"POST /x": func(ctx *fasthttp.RequestCtx) {}}}
	serve(t, s)
	f := func(sent, want string) {
		t.Helper()
		conn, err := net.Dial("tcp", s.Bound())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, sent)
		line := make([]byte, len(want))
		if _, err := io.ReadFull(conn, line); err != nil || string(line) != want {
			t.Errorf("%.40q: got %q %v, want %q", sent, line, err, want)
		}
	}
	f("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n", "HTTP/1.1 400 ")
	f("\x16\x03\x01 tls\r\n\r\n", "HTTP/1.1 400 ")
	f("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 ")
}

func TestWhereItListens(t *testing.T) {
	f := func(address string, warned bool) {
		t.Helper()
		s := &Server{Address: address}
		t.Run(address, func(t *testing.T) {
			if ln, err := net.Listen("tcp", address); err == nil {
				ln.Close()
			} else {
				t.Skipf("this machine has no such address: %v", err)
			}
			lines := serve(t, s)
			if entry := lines.LastEntry(); (entry != nil) != warned || warned && entry.Level != logrus.WarnLevel {
				t.Errorf("got %v, want a warning: %v", entry, warned)
			}
			if status, body, err := Get(t.Context(), s.Bound(), "/healthz"); status != 200 || string(body) != "ok\n" || err != nil {
				t.Errorf("got %d %q %v", status, body, err)
			}
		})
	}
	f("127.0.0.1:0", false)
	f("[::1]:0", false)
	f("127.9.9.9:0", false)
	f("0.0.0.0:0", true)
	f(":0", true)
}

func TestOff(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := &Server{Address: Off}
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) || s.Bound() != "" {
		t.Errorf("got %v, bound to %q", err, s.Bound())
	}
	if _, _, err := Get(t.Context(), Off, "/healthz"); err == nil || !strings.Contains(err.Error(), "SIDEBEAT_ADMIN is off") {
		t.Errorf("got %v", err)
	}
}

func TestAddressInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := &Server{Address: ln.Addr().String()}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), s.Address) {
		t.Errorf("got %v", err)
	}
}

func TestClient(t *testing.T) {
	s := &Server{Routes: map[string]fasthttp.RequestHandler{"POST /drain": func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(202)
		ctx.SetBodyString("draining")
	}}}
	serve(t, s)
	if status, body, err := Post(t.Context(), s.Bound(), "/drain"); status != 202 || string(body) != "draining" || err != nil {
		t.Errorf("got %d %q %v", status, body, err)
	}
	_, port, _ := net.SplitHostPort(s.Bound())
	if status, _, err := Get(t.Context(), ":"+port, "/healthz"); status != 200 || err != nil {
		t.Errorf("got %d %v without a host", status, err)
	}
	if _, _, err := Get(t.Context(), "127.0.0.1:1", "/healthz"); err == nil || !strings.HasPrefix(err.Error(), "cannot ask the admin endpoint at 127.0.0.1:1: ") ||
		!strings.Contains(err.Error(), "does it run") {
		t.Errorf("got %v", err)
	}
	if _, _, err := Get(t.Context(), "nonsense", "/healthz"); err == nil {
		t.Error("an address without a port was taken")
	}
}

// Who asks a program that speaks TLS without saying so is told what to set.
func TestClientOfTLS(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
			conn.Read(make([]byte, 4096))
			conn.Close() // as the server does that awaits a handshake
		}
	}()
	if _, _, err := Get(t.Context(), ln.Addr().String(), "/healthz"); err == nil || !strings.Contains(err.Error(), "SIDEBEAT_TLS_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}

// A program that hangs must not hang whoever asks it.
func TestClientGivesUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := Get(ctx, ln.Addr().String(), "/healthz"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestReachable(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		if got, err := reachable(address); got != want || err != nil {
			t.Errorf("%s: got %s %v, want %s", address, got, err, want)
		}
	}
	f(":9180", "127.0.0.1:9180")
	f("0.0.0.0:9180", "127.0.0.1:9180")
	f("[::]:9180", "[::1]:9180")
	f("10.0.0.7:9180", "10.0.0.7:9180")
	f("localhost:9180", "localhost:9180")
	if !ownHost("") {
		t.Error("HTTP/1.0, which sends no Host, is refused")
	}
}
