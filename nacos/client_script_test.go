package nacos

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sidebeat/sidebeat/registry"
)

// scripted is a server on a real port that answers what a test writes. It notes
// the requests it got.
type scripted struct {
	net.Listener
	mu   sync.Mutex
	seen []asked
}

// asked is one request as it came.
type asked struct {
	method, path, query, body string
	header                    http.Header
}

// scriptedServer starts a server; answer is called for each request, with what came
// before it counted, and writes to the connection whatever it likes. When it
// returns false the connection is closed.
func scriptedServer(t *testing.T, answer func(n int, q asked, w io.Writer) bool) *scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{Listener: ln}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			running.Go(func() { s.talk(conn, answer) })
		}
	})
	t.Cleanup(func() { ln.Close() })
	return s
}

func (s *scripted) talk(conn net.Conn, answer func(int, asked, io.Writer) bool) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		q := asked{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header}
		s.mu.Lock()
		n := len(s.seen)
		s.seen = append(s.seen, q)
		s.mu.Unlock()
		if !answer(n, q, conn) {
			return
		}
	}
}

func (s *scripted) url() string { return "http://" + s.Addr().String() }

func (s *scripted) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked(nil), s.seen...)
}

// say writes an answer as an HTTP server does.
func say(w io.Writer, status int, contentType, body string, headers ...string) bool {
	kind := ""
	if contentType != "" {
		kind = "Content-Type: " + contentType + "\r\n"
	}
	for _, h := range headers {
		kind += h + "\r\n"
	}
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n%sContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), kind, len(body), body)
	return true
}

// Bodies as 2.5.1 sends them.
const (
	saidOK      = `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`
	saidUnknown = `{"clientBeatInterval":5000,"code":20404,"lightBeatEnabled":true}`
	nacosState  = `{"version":"2.5.1","function_mode":null,"auth_enabled":"false"}`
	oldState    = `{"version":"1.4.8","standalone_mode":"standalone","function_mode":null}`
	ourState    = `{"version":"2.5.1","sidebeat_version":"1","sidebeat_prober":"inside"}`
)

// nacosAnswer answers like a healthy Nacos to everything an agent writes.
func nacosAnswer(_ int, q asked, w io.Writer) bool {
	switch {
	case strings.HasSuffix(q.path, pathServerState):
		return say(w, 200, "application/json", nacosState)
	case strings.HasSuffix(q.path, pathBeat):
		return say(w, 200, "application/json", saidOK)
	}
	return say(w, 200, "text/plain;charset=UTF-8", "ok")
}

func orders() registry.Instance {
	return registry.Instance{
		Key: registry.Key{
			Service: registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"},
			Cluster: "DEFAULT", IP: "10.0.0.7", Port: 8080, Ephemeral: true,
		},
		Weight: 1, Enabled: true, Healthy: true,
	}
}

func opened(t *testing.T, config ClientConfig) *Client {
	t.Helper()
	c, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// withRequests answers on a connection of a network as a scripted server does.
func withRequests(answer func(n int, q asked, w io.Writer) bool) func(net.Conn) {
	return func(conn net.Conn) { new(scripted).talk(conn, answer) }
}
