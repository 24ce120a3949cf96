package nacos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/registry"
)

// What the client puts on the wire: everything in the query, the name grouped
// and the group apart, every value encoded, no token without a user.
func TestRequests(t *testing.T) {
	s := scriptedServer(t, nacosAnswer)
	c := opened(t, ClientConfig{Servers: []string{s.url()}, Version: "1.2.3"})
	i := orders()
	i.Service = registry.Service{Namespace: "dev", Group: "G 1", Name: "a&b=c+d%41;é"}
	i.Cluster, i.Weight, i.Enabled, i.Healthy = "C-1", 2.5, false, false
	i.Metadata = map[string]string{"k": "a&b=c+d %41;日本"}
	if err := c.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Beat(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	if err := c.Deregister(t.Context(), i.Key); err != nil {
		t.Fatal(err)
	}
	key := url.Values{
		"serviceName": {"G 1@@a&b=c+d%41;é"}, "groupName": {"G 1"}, "namespaceId": {"dev"}, "clusterName": {"C-1"},
		"ip": {"10.0.0.7"}, "port": {"8080"}, "ephemeral": {"true"},
	}
	whole := url.Values{"weight": {"2.5"}, "enabled": {"false"}, "healthy": {"false"}, "metadata": {`{"k":"a&b=c+d %41;日本"}`}}
	maps.Copy(whole, key)
	f := func(n int, method, path string, query url.Values) {
		t.Helper()
		q := s.requests()[n]
		if q.method != method || q.path != path || q.body != "" {
			t.Errorf("got %s %s with body %q, want %s %s with none", q.method, q.path, q.body, method, path)
		}
		got, err := url.ParseQuery(q.query)
		if diff := cmp.Diff(query, got); err != nil || diff != "" {
			t.Errorf("%s: query %s %v", path, diff, err)
		}
		for _, name := range []string{"Authorization", "Cookie", "Idempotency-Key"} {
			if v, sent := q.header[name]; sent {
				t.Errorf("%s: header %s: %q must not be sent", path, name, v)
			}
		}
		if agent := q.header.Get("User-Agent"); agent != "Sidebeat-Client:v1.2.3" {
			t.Errorf("got User-Agent %q", agent)
		}
	}
	f(0, "POST", "/nacos/v1/ns/instance", whole)
	f(1, "PUT", "/nacos/v1/ns/instance/beat", key)
	f(2, "DELETE", "/nacos/v1/ns/instance", key)
}

// A server that wants full beats gets them, with the grouped name inside, as
// the recording of the Java client has it; but not for an instance that it
// would bring back as enabled.
func TestFullBeat(t *testing.T) {
	s := scriptedServer(t, func(_ int, _ asked, w io.Writer) bool {
		return say(w, 200, "application/json", `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":false}`)
	})
	c := opened(t, ClientConfig{Servers: []string{s.url()}})
	i := orders()
	i.Metadata = map[string]string{"k": "a&b=c+d %41", "v": "1"}
	hidden := i
	hidden.Enabled = false
	for _, i := range []registry.Instance{i, i, hidden} {
		if _, err := c.Beat(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	got := s.requests()
	if got[0].body != "" || got[2].body != "" {
		t.Errorf("got bodies %q and %q, want the first beat and the one of a disabled instance light", got[0].body, got[2].body)
	}
	form, err := url.ParseQuery(got[1].body)
	want := `{"cluster":"DEFAULT","ip":"10.0.0.7","metadata":{"k":"a&b=c+d %41","v":"1"},"port":8080,"scheduled":false,` +
		`"serviceName":"DEFAULT_GROUP@@orders","stopped":false,"weight":1.0}`
	if err != nil || form.Get("beat") != want {
		t.Errorf("got %q %v, want %s", got[1].body, err, want)
	}
}

// alibaba/nacos#4449: a beat's pace is clamped.
func TestPace(t *testing.T) {
	f := func(interval int64, metadata map[string]string, want time.Duration) {
		t.Helper()
		if got := clampPace(interval, metadata); got != want {
			t.Errorf("interval %d with %v: got %v, want %v", interval, metadata, got, want)
		}
	}
	f(5000, nil, 5*time.Second)
	f(3000, nil, 3*time.Second)
	f(1, nil, time.Second)
	f(0, nil, 5*time.Second)
	f(-1, nil, 5*time.Second)
	f(86400000, nil, 5*time.Second)
	f(10000, map[string]string{metaInterval: "10000"}, 10*time.Second)
	f(10000, map[string]string{metaTimeout: "60000"}, 10*time.Second)
	f(0, map[string]string{metaInterval: "200"}, time.Second)
	f(1<<62, map[string]string{metaInterval: "9000000000000000000"}, 24*time.Hour)
}

// What an answer means, and whether another server is asked for a better one.
func TestAnswers(t *testing.T) {
	register := func(c *Client) error { return c.Register(context.Background(), orders()) }
	beat := func(c *Client) error { _, err := c.Beat(context.Background(), orders()); return err }
	f := func(do func(*Client) error, status int, kind, body string, want error, others bool, says string) {
		t.Run(fmt.Sprintf("%d %s %.40s", status, kind, body), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				var asked [2]int
				for i, host := range []string{"a", "b"} {
					n.set(host, each(func(w io.Writer) { asked[i]++; say(w, status, kind, body) }))
				}
				c := opened(t, ClientConfig{Servers: []string{"a", "b"}, Dial: n.dial})
				err := do(c)
				if !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("got %v, want %v", err, want)
				}
				if others != (asked[0] > 0 && asked[1] > 0) {
					t.Errorf("asked %d and %d times", asked[0], asked[1])
				}
				if err != nil && (!strings.Contains(err.Error(), says) || len(err.Error()) > 600) {
					t.Errorf("error %q does not say %q, or too much", err, says)
				}
			})
		})
	}
	const text, json = "text/plain;charset=UTF-8", "application/json"
	f(register, 200, text, "ok", nil, false, "")
	f(register, 200, "", "ok", nil, false, "")
	f(register, 200, "text/html;charset=UTF-8", "ok\r\n", nil, false, "") // 1.4.8
	f(register, 200, json, `{"code":0,"message":"success","data":"ok"}`, nil, false, "")
	f(register, 200, json, `{"code":20404}`, registry.ErrNotFound, false, "")
	f(register, 400, text, "errCode: 400, errMsg: Current service DEFAULT_GROUP@@orders is persistent service, can't register ephemeral instance. ",
		registry.ErrRefused, false, "is persistent service") // nacos-sdk-python#96
	f(register, 400, "", "Param 'port' is illegal, x\r\n", registry.ErrRefused, false, `Param 'port' is illegal, x"`)
	f(register, 403, json, `{"status":403,"error":"Forbidden","message":"user not found!","path":"/x"}`, registry.ErrRefused, false, "user not found!")
	f(register, 404, json, `{"status":404,"error":"Not Found","message":"No message available","path":"/x"}`, registry.ErrUnavailable, true, "context path")
	f(register, 404, text, "not here", registry.ErrUnavailable, true, "context path")
	f(register, 412, text, "", registry.ErrStale, false, "")
	f(register, 429, text, "slow down", registry.ErrUnavailable, true, "slow down")
	f(register, 500, text, "caused: java.lang.OutOfMemoryError;", registry.ErrUnavailable, true, "OutOfMemoryError")
	f(register, 501, text, "", registry.ErrUnavailable, true, "501")
	f(register, 503, text, "server is STARTING now", registry.ErrUnavailable, true, "STARTING")
	f(register, 200, text, "", registry.ErrUnavailable, true, "answered 200")
	f(register, 200, text, "false", registry.ErrUnavailable, true, "false")
	f(register, 200, "image/png", "ok", registry.ErrUnavailable, true, "")
	f(register, 200, json, `{"code":500,"message":"boom"}`, registry.ErrUnavailable, true, "boom")
	f(register, 200, json, `{"status":"ok"}`, registry.ErrUnavailable, true, "")
	f(register, 200, "text/html", "<!DOCTYPE html><title>Log in</title>", registry.ErrUnavailable, true, "web page")
	f(register, 403, "text/html", "<html>blocked", registry.ErrUnavailable, true, "proxy")
	f(register, 204, "", "", registry.ErrUnavailable, true, "204")
	f(register, 304, "", "", registry.ErrUnavailable, true, "304")
	f(register, 400, text, "bell \a and \x1b[31m"+strings.Repeat("é", 300), registry.ErrRefused, false, `bell \a and \x1b[31m`)
	f(beat, 200, json, saidOK, nil, false, "")
	f(beat, 200, json, saidUnknown, registry.ErrNotFound, false, "20404")
	f(beat, 200, json, `{"code":21003,"message":"no instance"}`, registry.ErrNotFound, false, "no instance")
	f(beat, 200, "", saidOK, nil, false, "")
	f(beat, 200, text, saidOK, nil, false, "")
	f(beat, 200, "text/html", saidOK, registry.ErrUnavailable, true, "JSON")
	f(beat, 200, text, "ok", registry.ErrUnavailable, true, "JSON was expected")
	f(beat, 200, json, `{}`, registry.ErrUnavailable, true, "10200")
	f(beat, 200, json, `{"code":"10200"}`, registry.ErrUnavailable, true, "JSON was expected")
	f(beat, 200, json, `{"code":500,"message":"boom"}`, registry.ErrUnavailable, true, "boom")
	f(beat, 200, json, ``, registry.ErrUnavailable, true, "")
	f(beat, 200, json, `[1]`, registry.ErrUnavailable, true, "")
}

// Servers that break the protocol, or time.
func TestBrokenServers(t *testing.T) {
	drip := make(chan struct{})
	t.Cleanup(func() { close(drip) })
	f := func(name, says string, answer func(w io.Writer) bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := scriptedServer(t, func(_ int, _ asked, w io.Writer) bool { return answer(w) })
			budget := 3 * time.Second
			if says == "no answer in time" {
				budget = 200 * time.Millisecond
			}
			c := opened(t, ClientConfig{Servers: []string{bad.url()}, Budget: budget})
			start := time.Now()
			err := c.Register(t.Context(), orders())
			if took := time.Since(start); took > budget+2*time.Second {
				t.Errorf("took %v, want the budget of %v to hold", took, budget)
			}
			if !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), says) ||
				!strings.HasPrefix(err.Error(), "cannot register DEFAULT_GROUP@@orders@10.0.0.7:8080: ") ||
				!strings.Contains(err.Error(), bad.url()) || len(err.Error()) > 600 {
				t.Errorf("got %v, want an error that names the call, the server and %q", err, says)
			}
			if strings.Contains(err.Error(), "serviceName") {
				t.Errorf("got %v, want it without the query", err)
			}
			good := scriptedServer(t, nacosAnswer)
			c = opened(t, ClientConfig{Servers: []string{bad.url(), good.url()}, Budget: 3 * time.Second})
			if err := c.Register(t.Context(), orders()); err != nil {
				t.Errorf("with a healthy server beside it: %v", err)
			}
		})
	}
	f("garbage", "malformed HTTP", func(w io.Writer) bool { io.WriteString(w, "\x00\x01SSH-2.0-x\r\n\r\n"); return false })
	f("closes", "EOF", func(w io.Writer) bool { return false })
	f("nothing", "no answer in time", func(w io.Writer) bool { <-drip; return false })
	f("one byte a second", "no answer in time", func(w io.Writer) bool {
		for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") {
			w.Write([]byte{b})
			select {
			case <-drip:
				return false
			case <-time.After(time.Second):
			}
		}
		return true
	})
	f("body stops", "no answer in time", func(w io.Writer) bool {
		io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
		<-drip
		return false
	})
	f("cut short", "unexpected EOF", func(w io.Writer) bool {
		io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\no")
		return false
	})
	f("endless body", "too large", func(w io.Writer) bool {
		io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return false
			}
		}
	})
	f("endless headers", "headers", func(w io.Writer) bool {
		io.WriteString(w, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(w, "X-Y: "+strings.Repeat("z", 1000)+"\r\n"); err != nil {
				return false
			}
		}
	})
	f("redirect", "a redirect to \"http://login.example\"", func(w io.Writer) bool {
		return say(w, 302, "", "", "Location: http://login.example/?from=serviceName")
	})
	f("redirect kept method", "redirect", func(w io.Writer) bool { return say(w, 307, "", "", "Location: /elsewhere") })
	f("500", "caused: x;", func(w io.Writer) bool { return say(w, 500, "text/plain", "caused: x;") })
	f("503", "STARTING", func(w io.Writer) bool { return say(w, 503, "text/plain", "server is STARTING now") })
	f("page", "web page", func(w io.Writer) bool { return say(w, 200, "text/html", "<html>Welcome") })
	f("200 with an error inside", "boom", func(w io.Writer) bool {
		return say(w, 200, "application/json", `{"code":500,"message":"boom"}`)
	})
	f("wrong type", "done is answered ok", func(w io.Writer) bool { return say(w, 200, "image/png", "ok") })
	f("bad gzip", "", func(w io.Writer) bool { return say(w, 200, "text/plain", "ok", "Content-Encoding: gzip") })
}

// The server closes a connection just as the next beat goes out on it: that
// beat is made again on a new connection, and no other server is asked.
func TestStaleConnection(t *testing.T) {
	var mu sync.Mutex
	used := map[io.Writer]bool{}
	stale := scriptedServer(t, func(n int, q asked, w io.Writer) bool {
		mu.Lock()
		defer mu.Unlock()
		if used[w] {
			return false
		}
		used[w] = true
		return nacosAnswer(n, q, w)
	})
	other := scriptedServer(t, nacosAnswer)
	c := opened(t, ClientConfig{Servers: []string{stale.url(), other.url()}})
	c.pool.sticky = c.pool.servers[0]
	for range 20 {
		if _, err := c.Beat(t.Context(), orders()); err != nil {
			t.Fatal(err)
		}
		if err := c.Register(t.Context(), orders()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(other.requests()); n > 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}

// A session that a server offers is not kept: it would tie a client to it.
func TestNoCookiesAreKept(t *testing.T) {
	s := scriptedServer(t, func(_ int, q asked, w io.Writer) bool {
		return say(w, 200, "application/json", saidOK, "Set-Cookie: JSESSIONID=1; Path=/")
	})
	c := opened(t, ClientConfig{Servers: []string{s.url()}})
	for range 2 {
		if _, err := c.Beat(t.Context(), orders()); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.requests()[1].header.Get("Cookie"); got != "" {
		t.Errorf("got cookie %q, want none", got)
	}
}

// Proxies of the environment are not used unless the caller says so
// (sidecars inherit HTTP_PROXY).
func TestProxyOnlyWhenGiven(t *testing.T) {
	proxy := scriptedServer(t, nacosAnswer)
	t.Setenv("HTTP_PROXY", proxy.url())
	t.Setenv("http_proxy", proxy.url())
	through := func(*http.Request) (*url.URL, error) { return url.Parse(proxy.url()) }
	direct := opened(t, ClientConfig{Servers: []string{"http://registry.invalid:1"}, Budget: 200 * time.Millisecond})
	if err := direct.Register(t.Context(), orders()); err == nil || len(proxy.requests()) != 0 {
		t.Errorf("got %v and %d requests at the proxy, want an error and none", err, len(proxy.requests()))
	}
	given := opened(t, ClientConfig{Servers: []string{"http://registry.invalid:1"}, Proxy: through})
	if err := given.Register(t.Context(), orders()); err != nil || len(proxy.requests()) != 1 {
		t.Errorf("got %v and %d requests at the proxy, want one", err, len(proxy.requests()))
	}
}
