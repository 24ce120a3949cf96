package nacos

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/sidebeat/sidebeat/run"
)

// dialer opens connections to a server in this process.
type dialer struct {
	ln *fasthttputil.InmemoryListener
}

// local makes connections come from loopback.
type local struct{ net.Listener }

func (l local) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return localConn{conn}, err
}

type localConn struct{ net.Conn }

func (localConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:40000"))
}

type reply struct {
	status int
	header http.Header
	body   string
}

// startServer serves until the test ends, its store running beside it.
func startServer(t *testing.T, s *Server) dialer {
	t.Helper()
	serve, stop := serveUntil(t, s)
	t.Cleanup(func() {
		stop()
		time.Sleep(10 * time.Second) // fake, in a bubble of synctest: fasthttp's worker pool looks around before it ends
	})
	return serve
}

// startServerNow is startServer outside a bubble.
func startServerNow(t *testing.T, s *Server) dialer {
	t.Helper()
	serve, stop := serveUntil(t, s)
	t.Cleanup(stop)
	return serve
}

// serveUntil serves until stop is called.
func serveUntil(t *testing.T, s *Server) (serve dialer, stop func()) {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	parts := []run.Part{s.Store.Run, func(ctx context.Context) error { return run.Serve(ctx, local{ln}, s.HTTP()) }}
	if s.push != nil {
		parts = append(parts, s.push.Run)
	}
	go func() { ended <- run.All(ctx, parts...) }()
	return dialer{ln}, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server ended with %v", err)
		}
	}
}

// do sends one request on a connection of its own.
func (d dialer) do(t *testing.T, method, target string, header http.Header, body string) reply {
	t.Helper()
	conn, err := d.ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://registry"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header, r.Close = header, true
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(got)}
}

func silentLog() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
