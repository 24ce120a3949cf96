package nacos

import (
	"bufio"
	"context"
	"errors"
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
		fit := mostBodies / DefaultLimits.Body
		var promised []func() int
		for range fit {
			promised = append(promised, serve.opened(t, promise))
			synctest.Wait()
		}
		if got := serve.opened(t, promise)(); got != http.StatusServiceUnavailable {
			t.Errorf("one promise too many is answered %d", got)
		}
		small := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		form := "serviceName=s&ip=1.1.1.1&port=1" + strings.Repeat("&a=b", (smallBody-100)/4)
		if got := serve.do(t, "POST", "/nacos/v1/ns/instance", small, form); got.status != http.StatusOK {
			t.Errorf("a small body is answered %d %s", got.status, got.body)
		}
		for _, answered := range promised {
			if got := answered(); got != http.StatusRequestTimeout {
				t.Errorf("a broken promise is answered %d", got)
			}
		}
		time.Sleep(DefaultLimits.ReadTime)
		if got := serve.do(t, "POST", "/nacos/v1/ns/instance", small, form+strings.Repeat("&", DefaultLimits.Body-len(form))); got.status != http.StatusOK {
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
	if got := ctx.Response.Header.ContentLength(); !ctx.Response.IsBodyStream() || got <= keptAnswer {
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

// TestReadsTakePlaces: while as many reads as may be are at work, others wait;
// beats, lists that are ready and what tells of the server do not.
func TestReadsTakePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beatenServer(t)
		serve := startServer(t, s)
		const list = "/nacos/v1/ns/instance/list?serviceName=orders"
		f := func(method, target string, status int, took time.Duration) {
			t.Helper()
			began := time.Now()
			got := serve.do(t, method, target, http.Header{}, "")
			if took := time.Since(began) - took; got.status != status || took != 0 {
				t.Errorf("%s %s: %d %q, %v later than wanted", method, target, got.status, got.body, took)
			}
		}
		f("GET", list, http.StatusOK, 0)
		for range s.lists.places.free {
			s.lists.places.enter(t.Context(), nil)
		}
		f("PUT", lightTarget, http.StatusOK, 0)
		f("GET", list, http.StatusOK, 0)
		f("GET", "/nacos/v1/console/health/readiness", http.StatusOK, 0)
		f("GET", "/nacos/v1/ns/operator/metrics", http.StatusOK, 0)
		f("GET", "/nacos/v1/ns/service/names", http.StatusServiceUnavailable, operationTime)
		f("GET", "/nacos/v3/client/ns/instance/list?serviceName=orders", http.StatusServiceUnavailable, operationTime)
		time.AfterFunc(time.Second, s.lists.places.leave)
		f("GET", list+"&clusters=DEFAULT", http.StatusOK, time.Second)
		f("GET", "/nacos/v1/ns/service/names", http.StatusOK, 0)
	})
}

// TestLongValues: nobody can have us keep, or look through, a megabyte.
func TestLongValues(t *testing.T) {
	serve := startServerNow(t, beatenServer(t))
	f := func(method, target, name string, length int, want string) {
		t.Helper()
		header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		got := serve.do(t, method, "/nacos"+target, header, name+"="+strings.Repeat("a", length))
		if !strings.Contains(got.body, want) {
			t.Errorf("%s of %d bytes to %s %s: %d %.200q", name, length, method, target, got.status, got.body)
		}
	}
	const tooLong4K = "is illegal, the param length should not exceed 4096."
	f("POST", "/v1/ns/service?serviceName=s", "selector", DefaultLimits.Parameter+1, tooLong4K)
	f("PUT", "/v1/ns/operator/switches?entry=masters", "value", DefaultLimits.Parameter+1, tooLong4K)
	f("PUT", "/v1/ns/operator/switches?entry=masters", "value", DefaultLimits.Parameter, "ok")
	f("POST", "/v3/admin/core/namespace?namespaceId=n&namespaceName=n", "namespaceDesc", DefaultLimits.Parameter+1, tooLong4K)
	f("GET", "/v1/ns/instance/list?serviceName=orders", "clusters", DefaultLimits.Parameter+1, tooLong4K)
	f("GET", "/v2/ns/instance/list?serviceName=orders", "%1b%0a", DefaultLimits.Parameter+1, `Param '\x1b\n' `+tooLong4K)
	f("POST", "/v1/ns/instance?serviceName=s&ip=1.1.1.1&port=1", "metadata", smallBody, "metadata format incorrect")
	f("POST", "/v1/ns/instance?serviceName=s&ip=1.1.1.1&port=1", "metadata", smallBody+1, "should not exceed 16384.")
	f("PUT", "/v1/ns/instance/beat?serviceName=s", "beat", smallBody+1, "should not exceed 16384.")
	f("PUT", "/v1/ns/instance/metadata/batch?serviceName=orders&metadata=a%3Db", "instances", 100_000, "Param 'instances' is illegal")
}

// TestBatchesAddUp to no more than one of them may lay over an instance.
func TestBatchesAddUp(t *testing.T) {
	s := beatenServer(t)
	serve := startServerNow(t, s)
	f := func(key string, status int) {
		t.Helper()
		target := "/nacos/v1/ns/instance/metadata/batch?serviceName=orders&consistencyType=ephemeral&metadata=" + key + "%3D" + strings.Repeat("v", 600)
		if got := serve.do(t, "PUT", target, http.Header{}, ""); got.status != status {
			t.Errorf("%s: %d %.200s", key, got.status, got.body)
		}
	}
	f("a", http.StatusOK)
	f("a", http.StatusOK)
	f("b", http.StatusBadRequest)
	if i, err := s.Store.Get(t.Context(), beaten.Key); err != nil || len(i.Metadata) != 1 {
		t.Errorf("metadata is %v (%v)", i.Metadata, err)
	}
}

// TestPatternsEnd: a pattern is short, and what it is looked for in too long is
// not looked through to the end.
func TestPatternsEnd(t *testing.T) {
	s := beatenServer(t)
	if long := "(o|" + strings.Repeat("x", mostPattern) + ")"; contains(long)("orders") || !contains("(o|x)")("orders") {
		t.Error("a long pattern was used as one, or a short one was not")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := serviceNames(ctx, s, &call{bounds: noBounds}); !errors.Is(err, context.Canceled) {
		t.Errorf("names without time left: %v", err)
	}
}
