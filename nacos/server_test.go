package nacos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
)

// inBubble runs the test under fake time on a server of its own.
func inBubble(t *testing.T, s *Server, test func(t *testing.T, d dialer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.Store = registry.NewStore()
		if s.Log == nil {
			s.Log = silentLog()
		}
		test(t, startServer(t, s))
	})
}

// send sends a form; a GET carries it in the query.
func (d dialer) send(t *testing.T, method, target, form string) reply {
	t.Helper()
	if method == http.MethodGet || form == "" {
		return d.do(t, method, target, http.Header{}, "")
	}
	return d.do(t, method, target, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, form)
}

// wants fails the test unless the answer has the status and the body.
func (d dialer) wants(t *testing.T, status int, body, method, target, form string) {
	t.Helper()
	got := d.send(t, method, target, form)
	if got.status != status || got.body != body {
		t.Errorf("%s %s %s: %d %q, want %d %q", method, target, form, got.status, got.body, status, body)
	}
}

// found gives the detail of an instance.
func (d dialer) found(t *testing.T, query string) detailBody {
	t.Helper()
	got := d.send(t, "GET", "/nacos/v1/ns/instance?"+query, "")
	var body detailBody
	if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != 200 {
		t.Fatalf("%s: %d %q", query, got.status, got.body)
	}
	return body
}

const (
	takenText   = `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`
	unknownText = `{"clientBeatInterval":5000,"code":20404,"lightBeatEnabled":true}`
)

func TestContextPath(t *testing.T) {
	f := func(setting, base string) {
		t.Helper()
		inBubble(t, &Server{ContextPath: setting}, func(t *testing.T, d dialer) {
			d.wants(t, 200, "OK", "GET", base+"/v1/console/health/readiness", "")
			if got := d.send(t, "GET", "/elsewhere/v1/ns/instance/list?serviceName=s", ""); got.status != 404 {
				t.Errorf("context %q: another context answers %d", setting, got.status)
			}
		})
	}
	f("", "/nacos")
	f("/nacos", "/nacos")
	f("/", "")
	f("/a/b/", "/a/b")
}

func TestUnknownPathsAndMethods(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		f := func(method, path string, status int, message string) {
			t.Helper()
			got := d.send(t, method, path+"?x=1", "")
			var body bootBody
			if err := json.Unmarshal([]byte(got.body), &body); err != nil {
				t.Fatalf("%s %s: %d %q: %v", method, path, got.status, got.body, err)
			}
			want := bootBody{body.Timestamp, status, http.StatusText(status), message, path}
			if got.status != status || body != want || got.header.Get("Content-Type") != typeJSON {
				t.Errorf("%s %s: %d %+v", method, path, got.status, body)
			}
			if _, err := time.Parse("2006-01-02T15:04:05.000-07:00", body.Timestamp); err != nil {
				t.Error(err)
			}
		}
		f("PUT", "/nacos/v1/ns/beat", 501, "no such api:PUT:/nacos/v1/ns/beat")
		f("DELETE", "/nacos/v1/ns/instance/list", 501, "no such api:DELETE:/nacos/v1/ns/instance/list")
		f("GET", "/nacos/v1/cs/configs", 404, "No message available")
		f("GET", "/v1/ns/instance/list", 404, "No message available")
		f("POST", "/nacos/v1/console/server/state", 405, "Request method 'POST' not supported")
	})
}

func TestHeadAndOptions(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		got := d.send(t, "HEAD", "/nacos/v1/ns/instance/list?serviceName=s", "")
		if got.status != 200 || got.body != "" || got.header.Get("Content-Type") != typeJSON {
			t.Errorf("HEAD: %+v", got)
		}
		got = d.send(t, "OPTIONS", "/nacos/v1/ns/instance/beat", "")
		if got.status != 200 || got.body != "" || got.header.Get("Allow") != "POST, PUT, OPTIONS" {
			t.Errorf("OPTIONS: %+v", got)
		}
		if got.header.Get("Server") != "" || got.header.Get("Date") != "" {
			t.Errorf("needless headers: %v", got.header)
		}
	})
}

func TestPathsAreCleanedBeforeRouting(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		for _, path := range []string{
			"/nacos//v1/console/health/liveness", "/nacos/v1/%63onsole/health/liveness",
			"/x/../nacos/v1/console/health/liveness",
		} {
			d.wants(t, 200, "OK", "GET", path, "")
		}
	})
}

func TestPanicIsOneLineAndAnAnswer(t *testing.T) {
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	log.SetFormatter(&logrus.JSONFormatter{})
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Store: registry.NewStore(), Log: log, Writable: func() error { panic("boom") }}
		d := startServer(t, s)
		d.wants(t, 500, "caused: the server failed, its log says why;",
			"POST", "/nacos/v1/ns/instance?serviceName=s&ip=10.0.0.1&port=1&ephemeral=false", "")
		d.wants(t, 200, "OK", "GET", "/nacos/v1/console/health/liveness", "")
	})
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "boom") {
		t.Errorf("%d lines of log: %s", n, out.String())
	}
}

func TestFullDiskRefusesOnlyWhatMustLast(t *testing.T) {
	full := fmt.Errorf("%w: only 12 MB of disk are free", registry.ErrUnavailable)
	var now error
	inBubble(t, &Server{Writable: func() error { return now }}, func(t *testing.T, d dialer) {
		const persistent = "/nacos/v1/ns/instance?serviceName=p&ip=10.0.0.1&port=1&ephemeral=false"
		const ephemeral = "/nacos/v1/ns/instance?serviceName=e&ip=10.0.0.2&port=1"
		const cluster = "clusterName=DEFAULT&checkPort=80&useInstancePort4Check=true&healthChecker=%7B%22type%22%3A%22NONE%22%7D"
		d.wants(t, 200, "ok", "POST", persistent, "")
		d.wants(t, 200, "ok", "PUT", "/nacos/v1/ns/cluster?serviceName=p&"+cluster, "")
		now = full
		f := func(method, target string) {
			t.Helper()
			d.wants(t, 503, "registry cannot take writes now: only 12 MB of disk are free", method, target, "")
		}
		f("POST", persistent)
		f("DELETE", persistent)
		f("PUT", persistent)
		f("PATCH", persistent+"&weight=2")
		f("PUT", "/nacos/v1/ns/cluster?serviceName=p&"+cluster)
		f("PUT", "/nacos/v1/ns/health/instance?serviceName=p&ip=10.0.0.1&port=1&healthy=false")
		f("POST", "/nacos/v1/ns/service?serviceName=new")
		f("PUT", "/nacos/v1/ns/service?serviceName=p&protectThreshold=0")
		f("DELETE", "/nacos/v1/ns/service?serviceName=p")

		d.wants(t, 200, "ok", "POST", ephemeral, "")
		d.wants(t, 200, takenText, "PUT", "/nacos/v1/ns/instance/beat?serviceName=e&ip=10.0.0.2&port=1", "")
		d.wants(t, 200, "OK", "GET", "/nacos/v1/console/health/readiness", "")
		d.wants(t, 200, "ok", "DELETE", ephemeral, "")
		if !d.found(t, "serviceName=p&ip=10.0.0.1&port=1").Healthy {
			t.Error("a refused write took effect")
		}
	})
}

// noLog takes no command.
type noLog struct{}

func (noLog) Append(context.Context, []byte) (any, error) {
	return nil, fmt.Errorf("%w: no leader", registry.ErrUnavailable)
}

func TestRefusedLogIs503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registry.NewStore()
		store.UseLog(noLog{})
		d := startServer(t, &Server{Store: store, Log: silentLog()})
		got := d.send(t, "POST", "/nacos/v1/ns/instance?serviceName=p&ip=10.0.0.1&port=1&ephemeral=false", "")
		if got.status != 503 || !strings.Contains(got.body, "no leader") {
			t.Errorf("%d %q", got.status, got.body)
		}
	})
}

func TestConditionalHealth(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const key = "serviceName=G@@p&ip=10.0.0.1&port=1"
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance?ephemeral=false&"+key, "")
		write := func(match, more string, status int, body string) {
			t.Helper()
			header := http.Header{}
			if match != "" {
				header.Set("If-Match", match)
			}
			got := d.do(t, "PUT", "/nacos/v1/ns/health/instance?"+key+more, header, "")
			if got.status != status || body != "" && got.body != body {
				t.Errorf("If-Match %s %s: %d %q, want %d %q", match, more, got.status, got.body, status, body)
			}
		}
		tag := d.send(t, "GET", "/nacos/v1/ns/instance?"+key, "").header.Get("ETag")
		write("", "&healthy=false", 400, "health check is still working, service: G@@p, cluster: DEFAULT")
		write(tag, "&healthy=false", 200, "ok")
		if d.found(t, key).Healthy {
			t.Error("still healthy")
		}
		write(tag, "&healthy=true", 412, "")
		if d.found(t, key).Healthy {
			t.Error("a stale write took effect")
		}
		write("*", "&healthy=1", 200, "ok")
		if !d.found(t, key).Healthy {
			t.Error("1 is not true")
		}
		write("*", "1&healthy=true", 404, "no matched ip found!") // port 11
		write("x", "&healthy=true", 400, `cannot read If-Match "x": it should be a revision such as "42"`)
		write(tag, "", 400, "Param 'healthy' is required.")
	})
}

func TestSidebeatPages(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const key = "namespaceId=n&serviceName=G@@p&ip=10.0.0.1&port=1&ephemeral=false"
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance?enabled=false&weight=3&clusterName=C1&"+key, "")
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance?serviceName=e&ip=10.0.0.1&port=1", "")
		got := d.send(t, "GET", "/nacos/sidebeat/v1/instances?from=&ephemeral=false", "")
		var page pageJSON
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page.Instances) != 1 {
			t.Fatalf("%d %q: %v", got.status, got.body, err)
		}
		one := d.send(t, "GET", "/nacos/sidebeat/v1/instance?"+key, "")
		var i instanceJSON
		if err := json.Unmarshal([]byte(one.body), &i); err != nil {
			t.Fatalf("%d %q: %v", one.status, one.body, err)
		}
		if i.Enabled || i.Weight != 3 || i.Cluster != "C1" || i.Namespace != "n" || i.Group != "G" || i.Revision == 0 {
			t.Errorf("instance is %+v", i)
		}
		if tag := one.header.Get("ETag"); tag != fmt.Sprintf(`"%d"`, i.Revision) {
			t.Errorf("ETag is %s, revision %d", tag, i.Revision)
		}
		d.wants(t, 404, "no matched ip found!", "GET", "/nacos/sidebeat/v1/instance?"+key+"&clusterName=C2", "")
		d.wants(t, 400, "cannot list ephemeral instances: ask with ephemeral=false",
			"GET", "/nacos/sidebeat/v1/instances?ephemeral=true", "")
	})
}

func TestStateLoginMetrics(t *testing.T) {
	inBubble(t, &Server{Version: "v9", ProberInside: true}, func(t *testing.T, d dialer) {
		var state map[string]any
		got := d.send(t, "GET", "/nacos/v1/console/server/state", "")
		if err := json.Unmarshal([]byte(got.body), &state); err != nil {
			t.Fatal(err)
		}
		if state[stateVersion] != "2.5.1" || state[stateSidebeat] != "v9" || state[stateProber] != stateProberInside {
			t.Errorf("state is %v", state)
		}

		login := d.send(t, "POST", "/nacos/v1/auth/users/login", "username=u&password=secret")
		const body = `{"accessToken":"AUTH_DISABLED","tokenTtl":18000,"globalAdmin":true,"username":"u"}`
		if login.body != body || login.header.Get("Authorization") != "Bearer AUTH_DISABLED" {
			t.Errorf("login: %+v", login)
		}

		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance?serviceName=p&ip=10.0.0.1&port=1&ephemeral=false", "")
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance?serviceName=e&ip=10.0.0.1&port=1", "")
		d.wants(t, 200, `{"status":"UP"}`, "GET", "/nacos/v1/ns/ops/metrics", "")
		var m metricsBody
		got = d.send(t, "GET", "/nacos/v1/ns/operator/metrics?onlyStatus=false", "")
		if err := json.Unmarshal([]byte(got.body), &m); err != nil {
			t.Fatal(err)
		}
		if m.Services != 2 || m.Instances != 2 || m.EphemeralClients != 1 || m.PersistentClients != 1 {
			t.Errorf("metrics are %+v", m)
		}
	})
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		f := func(request string, status int, body string) {
			t.Helper()
			conn, err := d.ln.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != status || string(got) != body {
				t.Errorf("%.40q: %d %q (%v), want %d %q", request, answer.StatusCode, got, err, status, body)
			}
		}
		const start = "POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: r\r\n"
		f(fmt.Sprintf(start+"Content-Length: %d\r\n\r\n", DefaultLimits.Body+1), 413, "the body is larger than 1048576 bytes")
		f(start+"X: "+strings.Repeat("x", DefaultLimits.Header), 431, "request line and headers are larger than 16384 bytes")
		f("hello\r\n\r\n", 400, "this is no HTTP request")
		f("PUT /nacos/v1/ns/inst", 408, "the request took longer than 10s")
	})
}
