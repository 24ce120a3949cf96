package nacos

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/registry"
)

// Answers of real servers, as recorded.
const (
	bootGone = `{"timestamp":"2026-12-01T03:02:08.481+00:00","status":410,"error":"Gone","message":"{\"code\":40000,\"message\":\"Current API will be deprecated\"}","path":"/nacos/v1/x"}`
	bootNone = `{"timestamp":"2026-12-01T03:04:34.535+00:00","status":404,"error":"Not Found","message":"No endpoint GET /nacos/v1/x.","path":"/nacos/v1/x"}`
	detail1  = `{"service":"DEFAULT_GROUP@@orders","ip":"10.0.0.7","port":8080,"clusterName":"DEFAULT","weight":2.0,"healthy":false,"instanceId":"10.0.0.7#8080#DEFAULT#DEFAULT_GROUP@@orders","metadata":{"v":"1"}}`
	host1    = `{"instanceId":"x","ip":"10.0.0.7","port":8080,"weight":2.0,"healthy":true,"enabled":true,"ephemeral":true,"clusterName":"DEFAULT","serviceName":"DEFAULT_GROUP@@orders","metadata":{"v":"1"},"instanceHeartBeatInterval":5000,"instanceHeartBeatTimeOut":15000,"ipDeleteTimeout":30000,"instanceIdGenerator":"simple"}`
	listNone = `{"name":"DEFAULT_GROUP@@orders","groupName":"DEFAULT_GROUP","clusters":"","cacheMillis":10000,"hosts":[],"lastRefTime":1,"checksum":"","allIPs":false,"reachProtectionThreshold":false,"valid":true}`
)

// paths answers each path in its way, and notes what it was asked.
type paths struct {
	mu    sync.Mutex
	says  map[string]func(w io.Writer) // "GET /v1/..."
	asked []asked
}

func (p *paths) answer(_ int, q asked, w io.Writer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	if say := p.says[q.method+" "+strings.TrimPrefix(q.path, "/nacos")]; say != nil {
		say(w)
		return true
	}
	return say(w, 404, "application/json", bootNone)
}

func (p *paths) on(request string, status int, kind, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.says == nil {
		p.says = map[string]func(io.Writer){}
	}
	p.says[request] = func(w io.Writer) { say(w, status, kind, body) }
}

// seen gives the requests since the last call, as "METHOD path".
func (p *paths) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var words []string
	for _, q := range p.asked {
		words = append(words, q.method+" "+strings.TrimPrefix(q.path, "/nacos"))
	}
	p.asked = nil
	return strings.Join(words, ", ")
}

func (p *paths) client(t *testing.T) *Client {
	var n network
	n.set("a", withRequests(p.answer))
	return opened(t, ClientConfig{Servers: []string{"a"}, Dial: n.dial})
}

const jsonType, textType = "application/json", "text/plain;charset=UTF-8"

// How an instance is marked depends on what the server is; it is asked once.
func TestMarkByKind(t *testing.T) {
	f := func(state string, status int, want string, match string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var p paths
			p.on("GET /v1/console/server/state", status, jsonType, state)
			p.on("POST /v1/ns/instance", 200, textType, "ok")
			p.on("PATCH /v1/ns/instance", 200, textType, "ok")
			c := p.client(t)
			i := orders()
			i.Healthy, i.Enabled, i.Weight = false, false, 3
			for range 2 {
				if err := c.Mark(t.Context(), i); err != nil {
					t.Error(err)
				}
			}
			last := p.asked[len(p.asked)-1]
			query, _ := url.ParseQuery(last.query)
			if got := p.seen(); got != "GET /v1/console/server/state, "+want+", "+want || last.header.Get("If-Match") != match {
				t.Errorf("%s: got %s, If-Match %q; want twice %s, %q", state, got, last.header.Get("If-Match"), want, match)
			}
			if query.Get("healthy") != "false" || query.Get("enabled") != "false" || query.Get("weight") != "3" {
				t.Errorf("%s: got %s", state, last.query)
			}
		})
	}
	f(nacosState, 200, "POST /v1/ns/instance", "")
	f(oldState, 200, "PATCH /v1/ns/instance", "") // 1.x keeps the old health when an instance registers again
	f(bootGone, 410, "POST /v1/ns/instance", "")  // 3.x
	f(bootNone, 404, "POST /v1/ns/instance", "")  // 3.x with its console switch on
	f(`{"status":403,"error":"Forbidden","message":"user not found!","path":"/x"}`, 403, "POST /v1/ns/instance", "")
	f(ourState, 200, "POST /v1/ns/instance", "*")
}

func TestMarkOfTheUnknown(t *testing.T) {
	f := func(state, method string, status int, kind, body string, want error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var p paths
			p.on("GET /v1/console/server/state", 200, jsonType, state)
			p.on(method+" /v1/ns/instance", status, kind, body)
			if err := p.client(t).Mark(t.Context(), orders()); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
	f(oldState, "PATCH", 400, textType, "caused: instance not found;", registry.ErrNotFound)
	f(ourState, "POST", 404, textType, "no matched ip found!", registry.ErrNotFound)
	f(ourState, "POST", 404, jsonType, bootNone, registry.ErrUnavailable)
	f(nacosState, "POST", 404, textType, "no matched ip found!", registry.ErrUnavailable)
}

// What a registry that is not ours believes: health from the instance itself,
// enabled from the list, in which the disabled are missing.
func TestGetFromNacos(t *testing.T) {
	f := func(name string, status int, kind, body, list string, want registry.Instance, fails error) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p paths
				p.on("GET /v1/console/server/state", 200, jsonType, nacosState)
				p.on("GET /v1/ns/instance", status, kind, body)
				p.on("GET /v1/ns/instance/list", 200, jsonType, list)
				got, err := p.client(t).Get(t.Context(), orders().Key)
				if !errors.Is(err, fails) || fails == nil && err != nil {
					t.Errorf("got error %v, want %v", err, fails)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
	want := orders()
	want.Healthy, want.Weight, want.Metadata = false, 2, map[string]string{"v": "1"}
	with := strings.Replace(listNone, "[]", "["+host1+"]", 1)
	f("2.5.1", 200, jsonType, detail1, with, want, nil)
	hidden := want
	hidden.Enabled = false
	f("disabled", 200, jsonType, detail1, listNone, hidden, nil)
	listed := want
	listed.Healthy = true
	f("3.0.3", 410, jsonType, bootGone, with, listed, nil)
	none := registry.Instance{}
	f("3.0.3 unknown", 410, jsonType, bootGone, listNone, none, registry.ErrNotFound)
	f("unknown", 404, textType, "no matched ip found!", listNone, none, registry.ErrNotFound)
	f("unknown service", 404, textType, "no ips found for cluster DEFAULT in service DEFAULT_GROUP@@orders", listNone, none, registry.ErrNotFound)
	f("1.4.8 unknown", 500, textType, "caused: no matched ip found!;", listNone, none, registry.ErrNotFound)
	f("1.4.8 unknown cluster", 500, textType, "caused: no ips found for cluster C9 in service DEFAULT_GROUP@@orders;", listNone, none, registry.ErrNotFound)
	f("1.4.8 unknown service", 500, textType, "caused: no service DEFAULT_GROUP@@orders found!;", listNone, none, registry.ErrNotFound)
	f("500", 500, textType, "caused: boom;", listNone, none, registry.ErrUnavailable)
	f("another", 200, jsonType, strings.Replace(detail1, "10.0.0.7", "10.0.0.8", 1), with, none, registry.ErrUnavailable)
	f("empty", 200, jsonType, "", with, none, registry.ErrUnavailable)
	f("null", 200, jsonType, "null", with, none, registry.ErrUnavailable)
}

// Conditional writes and lists are offered by our registry only; no other is
// asked for them.
func TestForeignRegistryOffersNoConditionalWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p paths
		p.on("GET /v1/console/server/state", 200, jsonType, nacosState)
		c := p.client(t)
		_, list := c.List(t.Context(), "")
		for _, err := range []error{list, c.SetHealth(t.Context(), orders(), true)} {
			if !errors.Is(err, registry.ErrRefused) || !strings.Contains(err.Error(), "does not offer conditional health writes; that comes later") {
				t.Errorf("got %v", err)
			}
		}
		if got := p.seen(); got != "GET /v1/console/server/state" {
			t.Errorf("asked %s", got)
		}
		if inside, err := c.ProberInside(t.Context()); inside || err != nil {
			t.Errorf("got %v %v", inside, err)
		}
	})
}

// A registry that is replaced by another kind is recognised: when it fails,
// when it does not know a path any more, when a new connection is opened.
func TestKindIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p paths
		p.on("GET /v1/console/server/state", 200, jsonType, ourState)
		p.on("GET /sidebeat/v1/instance", 404, textType, "no matched ip found!")
		p.on("GET /v1/ns/instance", 404, textType, "no matched ip found!")
		p.on("GET /v1/ns/instance/list", 200, jsonType, listNone)
		c := p.client(t)
		get := func(want string) {
			t.Helper()
			if _, err := c.Get(t.Context(), orders().Key); !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("got %v, want the instance not found", err)
			}
			if got := p.seen(); got != want {
				t.Errorf("asked %s\nwant %s", got, want)
			}
		}
		const state, ours = "GET /v1/console/server/state", "GET /sidebeat/v1/instance"
		const foreign = "GET /v1/ns/instance, GET /v1/ns/instance/list"
		get(state + ", " + ours)
		time.Sleep(10 * time.Second)
		get(ours)
		c.Close() // a new connection is opened
		time.Sleep(time.Second)
		get(ours) // its state was asked: this one opened it
		get(state + ", " + ours)
		p.on("GET /v1/console/server/state", 200, jsonType, nacosState)
		p.on("GET /sidebeat/v1/instance", 404, jsonType, bootNone) // the path is gone
		get(ours + ", " + state + ", " + foreign)
		get(foreign)
		if inside, err := c.ProberInside(t.Context()); inside || err != nil {
			t.Errorf("got %v %v", inside, err)
		}
	})
}

func TestProberInside(t *testing.T) {
	f := func(state string, want bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var p paths
			p.on("GET /v1/console/server/state", 200, jsonType, state)
			if got, err := p.client(t).ProberInside(t.Context()); got != want || err != nil {
				t.Errorf("%s: got %v %v, want %v", state, got, err, want)
			}
		})
	}
	f(ourState, true)
	f(strings.Replace(ourState, "inside", "none", 1), false)
	f(`{"version":"2.5.1","sidebeat_version":"","sidebeat_prober":"inside"}`, true)
	f(nacosState, false)
	f(`{"version":"9","sidebeat_prober":"inside"}`, false) // only ours is believed
}

func TestServerStateGarbage(t *testing.T) {
	for _, body := range []string{"", "null", "{}", "[]", `"x"`, `{"version":7}`, "OK"} {
		synctest.Test(t, func(t *testing.T) {
			var p paths
			p.on("GET /v1/console/server/state", 200, jsonType, body)
			if _, err := p.client(t).ProberInside(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("%q: got %v, want it refused as no state", body, err)
			}
		})
	}
}

// Pages and instances of our own paths that are none.
func TestOurAnswersGarbage(t *testing.T) {
	for _, body := range []string{"", "null", "{}", "[]", `{"instances":null}`, `{"instances":7}`, `{"instances":[{"port":99999}]}`, "ok"} {
		synctest.Test(t, func(t *testing.T) {
			var p paths
			p.on("GET /v1/console/server/state", 200, jsonType, ourState)
			p.on("GET /sidebeat/v1/instances", 200, jsonType, body)
			p.on("GET /sidebeat/v1/instance", 200, jsonType, body)
			c := p.client(t)
			if page, err := c.List(t.Context(), ""); !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("%q: got %v %v, want it refused as no page", body, page, err)
			}
			if i, err := c.Get(t.Context(), orders().Key); !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("%q: got %v %v, want it refused as no instance", body, i, err)
			}
		})
	}
}

// Any metadata and name comes back byte by byte, over real TCP and the real
// server.
func TestRoundTrip(t *testing.T) {
	s := realSite(t)
	values := []string{
		"100%", "%41", "%zz", "a;b", "a+b", "a&b=c", "a b", "日本語", "é\u0301", "\U0001F600", "\"quoted\"", `back\slash`,
		"line\nbreak\ttab", "<b>&amp;</b>", "", "{\"nested\":[1,2]}", "\u2028", "#?/:@", "\x7f", strings.Repeat("x", 300),
	}
	for n, value := range values {
		i := orders()
		i.Name = fmt.Sprintf("s%d&%%41+;é", n)
		i.Metadata = map[string]string{"k": value, "%;+&": "v"}
		if err := s.Register(t.Context(), i); err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if _, err := s.Beat(t.Context(), i); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		got, err := s.Get(t.Context(), i.Key)
		got.Revision = 0
		if diff := cmp.Diff(i, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", value, err, diff)
		}
	}
}

// A real registry that lost everything says so at the next beat.
func TestBeatAfterTheRegistryForgot(t *testing.T) {
	s := realSite(t)
	i := orders()
	if err := s.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	s.server.Store = registry.NewStore()
	if _, err := s.Beat(t.Context(), i); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("got %v, want %v", err, registry.ErrNotFound)
	}
	if inside, err := s.ProberInside(t.Context()); !inside || err != nil {
		t.Errorf("prober inside: got %v %v, want it", inside, err)
	}
}

// A page of as many instances as there can be, with all the metadata that
// Nacos lets them have and six bytes of JSON for each character of it, is not
// cut off.
func TestLargestPage(t *testing.T) {
	s := realSite(t)
	for n := range 600 {
		i := orders()
		i.Name, i.Ephemeral = fmt.Sprintf("s%d", n), false
		i.Metadata = map[string]string{"k": strings.Repeat("\x01", 1500)}
		if err := s.store.Register(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for from := ""; ; {
		page, err := s.List(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(page.Instances); page.Next == "" {
			break
		}
		from = page.Next
	}
	if seen != 600 {
		t.Errorf("got %d instances, want 600", seen)
	}
}
