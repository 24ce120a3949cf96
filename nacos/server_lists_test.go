package nacos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/registry"
)

var ordersList = listKey{Service: beaten.Service}

func (k listKey) target(api string) string {
	return "/nacos" + api + "/ns/instance/list?serviceName=" + k.Name + "&groupName=" + k.Group + "&namespaceId=" + k.Namespace
}

func askList(tb testing.TB, s *Server, target string) listBody {
	tb.Helper()
	ctx := prepared(target, "")
	ctx.Request.Header.SetMethod(http.MethodGet)
	s.Handler()(ctx)
	body := ctx.Response.Body()
	if strings.Contains(target, "/v2/") {
		var whole struct{ Data json.RawMessage }
		if err := json.Unmarshal(body, &whole); err != nil {
			tb.Fatal(err)
		}
		body = whole.Data
	}
	var l listBody
	if err := json.Unmarshal(body, &l); err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	if got, err := encode(l); err != nil || string(got) != string(body) {
		tb.Fatalf("got %s, which reads as %s (%v)", body, got, err)
	}
	return l
}

// A list shows every change at once, however often it was asked for before.
func TestListIsNeverStale(t *testing.T) {
	s := beatenServer(t)
	other := beaten
	other.IP = "10.0.0.2"
	f := func(change func() error, want string) {
		t.Helper()
		for range 2 {
			for _, api := range []string{"/v1", "/v2"} {
				askList(t, s, ordersList.target(api))
			}
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for _, api := range []string{"/v1", "/v2"} {
			l := askList(t, s, ordersList.target(api))
			words := []string{fmt.Sprintf("%d %v", l.CacheMillis, l.Protected)}
			for _, h := range l.Hosts {
				words = append(words, fmt.Sprintf("%s %v %v %v", h.IP, h.Healthy, h.Weight, h.Metadata))
			}
			if got := strings.Join(words, " "); got != want {
				t.Errorf("%s: got %s, want %s", api, got, want)
			}
		}
	}
	f(func() error { return s.Store.Register(t.Context(), other) },
		"10000 false 10.0.0.1 true 1 map[] 10.0.0.2 true 1 map[]")
	f(func() error { other.Healthy = false; return s.Store.Register(t.Context(), other) },
		"10000 false 10.0.0.1 true 1 map[] 10.0.0.2 false 1 map[]")
	f(func() error { return s.Store.SetSwitch(t.Context(), "pushCacheMillis", "20000") },
		"20000 false 10.0.0.1 true 1 map[] 10.0.0.2 false 1 map[]")
	f(func() error {
		weight := 2.5
		return s.Store.Override(t.Context(), other.Key, registry.Overlay{Weight: &weight, Metadata: map[string]string{"a": "b"}})
	}, "20000 false 10.0.0.1 true 1 map[] 10.0.0.2 false 2.5 map[a:b]")
	f(func() error {
		return s.Store.UpdateService(t.Context(), registry.ServiceConfig{Service: beaten.Service, ProtectThreshold: 0.9})
	}, "20000 true 10.0.0.1 true 1 map[] 10.0.0.2 true 2.5 map[a:b]")
	f(func() error { return s.Store.Deregister(t.Context(), beaten.Key) },
		"20000 true 10.0.0.2 true 2.5 map[a:b]")
}

// While nothing changes nothing is rendered, and lists that differ in what was
// asked for do not share.
func TestListIsRenderedOnce(t *testing.T) {
	s := beatenServer(t)
	get := func(k listKey) *rendered {
		t.Helper()
		l, err := s.lists.get(t.Context(), s.Store, k, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.rendered
	}
	first := get(ordersList)
	if err := s.Store.Register(t.Context(), beaten); err != nil { // a change of nothing
		t.Fatal(err)
	}
	if again := get(ordersList); again != first {
		t.Error("rendered again, though nothing changed")
	}
	if other := get(listKey{Service: beaten.Service, clusters: "east"}); other == first {
		t.Error("the list of another cluster is the same")
	}
	if other := get(listKey{Service: beaten.Service, healthyOnly: true}); other == first {
		t.Error("the list of the healthy is the same")
	}
}

// The Go client drops a list that is not later than the one it has.
func TestListMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still between calls
		s := beatenServer(t)
		moment := func() int64 { return askList(t, s, ordersList.target("/v1")).LastRefTime }
		other := beaten
		first := moment()
		if first != time.Now().UnixMilli() {
			t.Errorf("first is %d, want now", first)
		}
		if again := moment(); again != first {
			t.Errorf("no time has passed between %d and %d", first, again)
		}
		for n := range 10 {
			other.Weight = float64(n + 2)
			if err := s.Store.Register(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			if next := moment(); next != first+1 {
				t.Fatalf("changed at %d, shown at %d", first, next)
			} else {
				first = next
			}
		}
		time.Sleep(time.Second)
		if next := moment(); next != time.Now().UnixMilli() {
			t.Errorf("%d is not now", next)
		}
	})
}

// Any number of lists may be asked for; what is kept stays bounded.
func TestListsAreBounded(t *testing.T) {
	s := beatenServer(t)
	key := ordersList
	long := strings.Repeat("x", 100_000)
	for n := range 2 * mostHeld / len(long) {
		key.clusters = fmt.Sprint(n, long)
		if _, err := s.lists.get(t.Context(), s.Store, key, nil); err != nil {
			t.Fatal(err)
		}
		key.Name = fmt.Sprint("nobody", n)
		if _, err := s.lists.get(t.Context(), s.Store, key, nil); err != nil {
			t.Fatal(err)
		}
		key.Name = beaten.Name
	}
	kept := int64(0)
	for k, l := range s.lists.all {
		if k.Name != beaten.Name {
			t.Errorf("%.20s is kept though it is not there", k.Name)
		}
		kept += int64(len(k.clusters)) + l.shown.Load().bytes()
	}
	if kept == 0 || kept > mostHeld+1<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// Many read while the service changes: nobody sees an older list after a newer.
func TestListsSideBySide(t *testing.T) {
	s := beatenServer(t)
	const changes = 300
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			seen := 0.0
			for seen < changes {
				l, err := s.lists.get(t.Context(), s.Store, ordersList, nil)
				if err != nil {
					t.Error(err)
					return
				}
				var hosts struct{ Hosts []hostBody }
				if err := json.Unmarshal([]byte(string(l.head)+"0"+string(l.tail)), &hosts); err != nil {
					t.Error(err)
					return
				}
				weight := float64(hosts.Hosts[0].Weight)
				if weight < seen {
					t.Errorf("%v after %v", weight, seen)
					return
				}
				seen = weight
			}
		})
	}
	for n := range changes {
		one := beaten
		one.Weight = float64(n + 1)
		if err := s.Store.Register(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

func crowded(tb testing.TB, instances int) *Server {
	tb.Helper()
	s := &Server{Store: registry.NewStore(), Log: silentLog()}
	one := beaten
	one.Metadata = map[string]string{"zone": "a", "version": "1.2.3"}
	for n := range instances {
		one.IP = fmt.Sprintf("10.0.%d.%d", n/250, n%250+1)
		if err := s.Store.Register(tb.Context(), one); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// BenchmarkList asks for a service of 1000 instances; bare answers the same
// bytes and does nothing for them.
func BenchmarkList(b *testing.B) {
	s := crowded(b, 1000)
	ask := func(b *testing.B, h fasthttp.RequestHandler) []byte {
		b.Helper()
		ctx := prepared(ordersList.target("/v1"), "")
		ctx.Request.Header.SetMethod(http.MethodGet)
		b.ReportAllocs()
		for b.Loop() {
			ctx.Response.Reset()
			h(ctx)
		}
		return ctx.Response.Body()
	}
	var body []byte
	b.Run("ours", func(b *testing.B) { body = ask(b, s.Handler()) })
	b.Run("bare", func(b *testing.B) {
		ask(b, func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType(typeJSON)
			ctx.Response.SetBody(body)
		})
	})
	b.Run("changing", func(b *testing.B) {
		one, h := beaten, s.Handler()
		one.IP = "10.0.0.1"
		ask(b, func(ctx *fasthttp.RequestCtx) {
			one.Weight = 3 - one.Weight
			if err := s.Store.Register(b.Context(), one); err != nil {
				b.Fatal(err)
			}
			h(ctx)
		})
	})
}
