package nacos

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// opened sends something on a connection of its own; answered reads what comes
// back, 0 when the connection ends without an answer.
func (d dialer) opened(t *testing.T, text string) (answered func() int) {
	t.Helper()
	conn, err := d.ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return func() int {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
}

const promise = "PUT /nacos/v1/ns/instance/metadata/batch HTTP/1.1\r\nHost: registry\r\nContent-Length: 1048576\r\n\r\n"

// TestPromisedBodies: who says that much will come and sends nothing takes no
// room that others need.
func TestPromisedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := startServer(t, &Server{Store: registry.NewStore(), Log: silentLog()})
		const fit = mostBodies / maxBody
		var promised []func() int
		for range fit {
			promised = append(promised, serve.opened(t, promise))
			synctest.Wait()
		}
		if got := serve.opened(t, promise)(); got != http.StatusServiceUnavailable {
			t.Errorf("one promise too many is answered %d", got)
		}
		small := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		form := "serviceName=s&ip=1.1.1.1&port=1&app=" + strings.Repeat("a", smallBody-100)
		if got := serve.do(t, "POST", "/nacos/v1/ns/instance", small, form); got.status != http.StatusOK {
			t.Errorf("a small body is answered %d %s", got.status, got.body)
		}
		for _, answered := range promised {
			if got := answered(); got != http.StatusRequestTimeout {
				t.Errorf("a broken promise is answered %d", got)
			}
		}
		time.Sleep(readTimeout)
		if got := serve.do(t, "POST", "/nacos/v1/ns/instance", small, form+strings.Repeat("a", maxBody-len(form))); got.status != http.StatusOK {
			t.Errorf("a large body is answered %d %s", got.status, got.body)
		}
	})
}

func TestBodiesRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := startServer(t, &Server{Store: registry.NewStore(), Log: silentLog()})
		f := func(text string, want int) {
			t.Helper()
			if got := serve.opened(t, text)(); got != want {
				t.Errorf("got %d, want %d for %.200q", got, want, text)
			}
		}
		f(strings.ReplaceAll(promise, "1048576", "1048577"), http.StatusRequestEntityTooLarge)
		chunked := strings.ReplaceAll(promise, "Content-Length: 1048576", "Transfer-Encoding: chunked")
		f(chunked+"1\r\na\r\n0\r\n\r\n", http.StatusBadRequest) // read, and no batch
		f(chunked+"4001\r\n"+strings.Repeat("a", 0x4001)+"\r\n0\r\n\r\n", http.StatusLengthRequired)
	})
}

// TestGarbageWaits: who sends no HTTP has to wait, or he would keep us busy
// with opening connections.
func TestGarbageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := startServer(t, &Server{Store: registry.NewStore(), Log: silentLog()})
		for _, text := range []string{"\x16\x03\x01\r\n\r\n", "GET\r\n\r\n", strings.ReplaceAll(promise, "1048576", "9999999")} {
			began := time.Now()
			if got := serve.opened(t, text)(); got < 400 || time.Since(began) != penance {
				t.Errorf("%.40q is answered %d after %v", text, got, time.Since(began))
			}
		}
	})
}

// TestBuffersKept: a connection keeps no buffer that is larger than what is
// usual.
func TestBuffersKept(t *testing.T) {
	s := beatenServer(t)
	for n := range 200 {
		i := beaten
		i.Port += uint16(n)
		if err := s.Store.Register(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	h := s.Handler()
	ctx := prepared("/nacos/v1/ns/instance/list?serviceName=orders", strings.Repeat("a=b&", smallBody))
	ctx.Request.Header.SetMethod("GET")
	h(ctx)
	if got := len(ctx.Response.Body()); got <= keptAnswer {
		t.Fatalf("the answer has only %d bytes", got)
	}
	if got := cap(ctx.Request.Body()); got > smallBody {
		t.Errorf("%d bytes of the request are kept", got)
	}
	ctx.Response.ResetBody()
	if got := cap(ctx.Response.SwapBody(nil)); got > keptAnswer {
		t.Errorf("%d bytes of the answer are kept", got)
	}
}
