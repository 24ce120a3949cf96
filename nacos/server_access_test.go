package nacos

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/registry"
)

const canaryKnown = "canary7Zq4-password"

// office is a server with auth on and a user for each kind of role.
type office struct {
	*Server
	handle fasthttp.RequestHandler
	tokens map[string]string // "": none
}

var officeUsers = map[string]string{
	"admin": "admin", "reader": "read", "writer": "write@pay", "owner": "admin@pay,read@public", "prober": "write",
}

func newOffice(t testing.TB) *office {
	t.Helper()
	o := &office{tokens: map[string]string{"": ""}}
	var lines []string
	for name, roles := range officeUsers {
		lines = append(lines, userLine(t, name, canaryKnown, roles))
	}
	o.Server = &Server{Store: registry.NewStore(), Log: silentLog(), Access: guardOf(t, time.Hour, lines...)}
	for name := range officeUsers {
		token, err := o.Access.LogIn(t.Context(), (&call{bounds: noBounds, ctx: &fasthttp.RequestCtx{}}).from(), name, canaryKnown)
		if err != nil {
			t.Fatal(err)
		}
		o.tokens[name] = token.Text
	}
	o.handle = o.Handler()
	return o
}

// ask sends "GET /nacos/... a=b&c=d"; headers are given as name, value, ...
func (o *office) ask(request, user string, headers ...string) (int, string, *fasthttp.RequestCtx) {
	words := append(strings.SplitN(request, " ", 3), "")
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	ctx.Request.Header.SetMethod(words[0])
	ctx.Request.SetRequestURI("/nacos" + words[1] + "?" + words[2])
	if token := o.tokens[user]; token != "" {
		ctx.Request.Header.Set("accessToken", token)
	}
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	o.handle(ctx)
	return ctx.Response.StatusCode(), string(ctx.Response.Body()), ctx
}

// What a request asks for: who may is not answered 403, everybody else is.
func TestWhoMay(t *testing.T) {
	o := newOffice(t)
	f := func(request, who string) {
		t.Helper()
		for user := range o.tokens {
			may := who == "all" || user != "" && strings.Contains(" "+who+" ", " "+user+" ")
			if status, body, _ := o.ask(request, user); (status != http.StatusForbidden) != may {
				t.Errorf("%s by %q: %d %.100s, want it allowed to %s", request, user, status, body, who)
			}
		}
	}
	const here = "ip=10.0.0.1&port=80&serviceName=s"
	f("GET /v1/ns/instance/list serviceName=s", "admin reader prober owner")
	f("HEAD /v1/ns/instance/list serviceName=s", "admin reader prober owner")
	f("GET /v1/ns/instance/list namespaceId=pay&serviceName=s", "admin reader prober owner writer")
	f("GET /v1/ns/instance/list namespaceId=%20pay%20&serviceName=s", "admin reader prober owner writer")
	f("GET /v1/ns/instance/list namespaceId=&serviceName=s", "admin reader prober owner")
	f("GET /v1/ns/instance/list namespaceId=other&namespaceId=pay&serviceName=s", "admin reader prober")
	f("GET /v1/ns/instance/list namespaceId=pay%FF&serviceName=s", "admin reader prober")
	f("POST /v1/ns/instance "+here, "admin prober")
	f("POST /v1/ns/instance namespaceId=pay&"+here, "admin prober owner writer")
	f("PUT /v1/ns/instance/beat namespaceId=pay&"+here, "admin prober owner writer")
	f("POST /v1/ns/instance/beat "+here, "admin prober")
	f("PUT /v2/ns/instance/beat "+here, "admin prober")
	f("POST /v3/client/ns/instance namespaceId=pay&"+here, "admin prober owner writer")
	f("GET /v3/client/ns/instance/list namespaceId=pay&serviceName=s", "admin reader prober owner writer")
	f("PUT /v1/ns/health/instance namespaceId=pay&healthy=true&"+here, "admin prober owner writer")
	f("POST /v1/ns/service namespaceId=pay&serviceName=x", "admin prober owner writer")
	f("DELETE /v3/admin/ns/service namespaceId=pay&serviceName=y", "admin prober owner writer")
	f("GET /v3/admin/ns/service/list namespaceId=pay", "admin reader prober owner writer")
	// The namespace stands elsewhere, or there is none.
	f("GET /v1/ns/instance/statuses namespaceId=pay&key=other%23%23G@@s", "admin reader prober")
	f("GET /v1/ns/instance/statuses namespaceId=pay&key=G@@s", "admin reader prober owner")
	f("GET /v1/ns/instance/statuses key=pay%23%23G@@s", "admin reader prober owner writer")
	f("GET /v1/ns/service/names ", "admin reader prober")
	f("GET /v1/ns/service/names namespaceId=pay", "admin reader prober owner writer")
	f("GET /v2/ns/client/publish/list namespaceId=pay&clientId=x", "admin")
	f("GET /v3/admin/ns/client/list namespaceId=pay", "admin")
	f("GET /v1/ns/selector/types ", "all") // no such path: 501 as for everybody
	f("GET /v1/ns/service/selector/types ", "admin reader prober owner writer")
	f("GET /sidebeat/v1/instances ephemeral=false&namespaceId=pay", "admin reader prober")
	f("GET /sidebeat/v1/instance namespaceId=pay&"+here, "admin reader prober owner writer")
	// What operators do.
	f("GET /v1/ns/operator/switches ", "admin")
	f("PUT /v1/ns/ops/switches entry=checkTimes&value=3&namespaceId=pay", "admin")
	f("PUT /v3/admin/ns/ops/switches entry=checkTimes&value=3", "admin")
	f("PUT /v1/ns/operator/log logName=x&logLevel=info", "admin")
	f("GET /v1/ns/operator/metrics ", "all")
	f("GET /v1/ns/operator/metrics onlyStatus=false", "admin reader prober owner writer")
	f("GET /v1/console/namespaces ", "admin")
	f("POST /v1/console/namespaces customNamespaceId=pay&namespaceName=n", "admin")
	f("PUT /v1/console/namespaces namespace=pay&namespaceShowName=n", "admin owner")
	f("PUT /v1/console/namespaces namespace=other&namespaceId=pay&namespaceShowName=n", "admin")
	f("DELETE /v1/console/namespaces namespaceId=other&namespace=pay", "admin")
	f("DELETE /v1/console/namespaces namespaceId=pay", "admin owner")
	f("GET /v1/core/cluster/nodes ", "admin")
	f("GET /v3/admin/core/namespace/list ", "admin")
	f("GET /v3/admin/core/cluster/node/list ", "admin")
	// What everybody may.
	f("GET /v1/console/server/state ", "all")
	f("GET /v1/console/health/readiness ", "all")
	f("GET /v3/admin/core/state/readiness ", "all")
	f("GET /actuator/health ", "all")
	f("GET /v1/ns/health/server ", "all")
	f("GET /nothing ", "all")
	f("OPTIONS /v1/ns/instance ", "all")
}

// A route that somebody adds is closed unless a rule opens it.
func TestEveryRouteAsksForSomebody(t *testing.T) {
	o := newOffice(t)
	openPaths := map[string]bool{}
	for _, r := range rules {
		if r.demand.level == access.None || r.demand.brief {
			openPaths["/nacos"+r.path] = true
		}
	}
	n := 0
	for path, there := range o.routes() {
		for method := range there {
			n++
			status, body, _ := o.ask(method+" "+strings.TrimPrefix(path, "/nacos"), "")
			if (status == http.StatusForbidden) == openPaths[path] {
				t.Errorf("%s %s without a token: %d %.80s", method, path, status, body)
			}
		}
	}
	if n < 80 || demandOf("GET", "/v4/whatever") != adminAll || demandOf("POST", pathHello) != writeHere {
		t.Errorf("%d routes", n)
	}
}

func TestWhereATokenMayStand(t *testing.T) {
	o := newOffice(t)
	token := o.tokens["admin"]
	f := func(query string, want int, text string, headers ...string) {
		t.Helper()
		status, body, _ := o.ask("GET /v1/ns/service/list pageNo=1&pageSize=1&"+query, "", headers...)
		if status != want || !strings.Contains(body, text) {
			t.Errorf("%d %s, want %d %s", status, body, want, text)
		}
	}
	f("accessToken="+token, 200, "count")
	f("", 200, "count", "accessToken", token)
	f("", 200, "count", "ACCESSTOKEN", token)
	f("", 200, "count", "Authorization", "Bearer "+token)
	f("", 403, "user not found!", "Authorization", "bearer "+token)
	f("", 403, "user not found!", "Authorization", token)
	f("", 403, "user not found!", "Authorization", "Basic YWRtaW46eA==")
	f("accessToken="+token, 403, "token invalid!", "Authorization", "Bearer x") // as Nacos: this header first
	f("accessToken=x", 403, "token invalid!", "accessToken", token)
	f("accessToken=", 200, "count", "accessToken", token)
	f("username=reader&password="+canaryKnown, 200, "count")
	f("username=reader&password=wrong", 403, "user not found!")
	f("username=reader", 403, "user not found!")
	f("password="+canaryKnown, 403, "user not found!")
	f("username=writer&password="+canaryKnown, 403, "authorization failed!")
	o.Access = nil
	o.handle = o.Handler()
	f("accessToken=x", 200, "count")
}

// v3 has other words for the same.
func TestDenialsOfV3(t *testing.T) {
	o := newOffice(t)
	f := func(query, user, text string) {
		t.Helper()
		status, body, ctx := o.ask("GET /v3/admin/ns/service/list "+query, user)
		if status != 403 || !strings.Contains(body, `"message":"`+text+`"`) || string(ctx.Response.Header.ContentType()) != typeJSON {
			t.Errorf("%d %s, want 403 %s", status, body, text)
		}
	}
	f("", "", "Code: 401, Message: User not found! Please check user exist or password is right!.")
	f("accessToken=x", "", "Code: 401, Message: token invalid!.")
	f("accessToken="+o.tokens["admin"][:60]+"x", "", "Code: 401, Message: token invalid!.")
	f("", "writer", "Code: 403, Message: authorization failed!.")
}

// In a bubble, where no time passes that gives wrong logins back.
func TestLogin(t *testing.T) { synctest.Test(t, testLogin) }

func testLogin(t *testing.T) {
	o := newOffice(t)
	f := func(request string, want int, text string) string {
		t.Helper()
		status, body, ctx := o.ask(request, "")
		if status != want || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s, want %d %s", strings.SplitN(request, "?", 2)[0], status, body, want, text)
		}
		return string(ctx.Response.Header.Peek("Authorization"))
	}
	for _, path := range []string{"/v1/auth/login", "/v1/auth/users/login", "/v3/auth/user/login"} {
		header := f("POST "+path+" username=reader&password="+canaryKnown, 200, `"tokenTtl":3600,"globalAdmin":false,"username":"reader"}`)
		if !strings.HasPrefix(header, "Bearer eyJ") {
			t.Errorf("%s: no token in the header", path)
		}
	}
	f("POST /v1/auth/login username=admin&password="+canaryKnown, 200, `"globalAdmin":true`)
	f("POST /v1/auth/login username=owner&password="+canaryKnown, 200, `"globalAdmin":false`)
	f("POST /v1/auth/login username=reader", 500, "&#39;password&#39;")
	f("POST /v3/auth/user/login username=reader", 400, "Required parameter 'password' is not present.")
	for range 20 {
		f("POST /v1/auth/login username=nobody&password=x", 403, "user not found!")
	}
	f("POST /v1/auth/login username=nobody&password=x", 429, "too many wrong logins")
	f("GET /v1/ns/service/list username=nobody&password=x", 429, `"message":"too many wrong logins; try again later"`)
	f("POST /v1/auth/login username=reader&password="+canaryKnown, 200, "accessToken")
	if c := o.Access.Counts(); c.Refused != 20 || c.Limited != 2 || c.Denied != 1 {
		t.Errorf("%+v", c)
	}
}

// A beat with a token costs no allocation either.
func TestBeatsWithATokenAllocateNothing(t *testing.T) {
	if raced() {
		t.Skip("the race detector allocates")
	}
	h, token := guardedBeats(t)
	f := func(target, body string, inHeader bool) {
		t.Helper()
		ctx := prepared(target, body)
		if inHeader {
			ctx.Request.Header.Set("Authorization", "Bearer "+token)
		} else {
			ctx.Request.SetRequestURI(target + "&accessToken=" + url.QueryEscape(token))
		}
		n := testing.AllocsPerRun(1000, func() {
			ctx.Response.Reset()
			h(ctx)
		})
		if got := string(ctx.Response.Body()); got != string(beatTaken) || n != 0 {
			t.Errorf("%v allocations a beat, body is %s", n, got)
		}
	}
	for _, inHeader := range []bool{false, true} {
		target, body := lightRequest()
		f(target, body, inHeader)
		target, body = fullRequest()
		f(target, body, inHeader)
	}
}

// guardedBeats is beatenServer with auth on.
func guardedBeats(tb testing.TB) (h fasthttp.RequestHandler, token string) {
	tb.Helper()
	s := beatenServer(tb)
	s.Access = guardOf(tb, time.Hour, userLine(tb, "agent", canaryKnown, "write@public"))
	got, err := s.Access.LogIn(tb.Context(), (&call{bounds: noBounds, ctx: &fasthttp.RequestCtx{}}).from(), "agent", canaryKnown)
	if err != nil {
		tb.Fatal(err)
	}
	return s.Handler(), got.Text
}

func BenchmarkBeatLightWithToken(b *testing.B) {
	h, token := guardedBeats(b)
	target, body := lightRequest()
	benchmarkHandler(b, h, target+"&accessToken="+token, body)
}

// What Node's client does.
func BenchmarkBeatLightWithPassword(b *testing.B) {
	h, _ := guardedBeats(b)
	target, body := lightRequest()
	benchmarkHandler(b, h, target+"&username=agent&password="+canaryKnown, body)
}

// No spelling of a path, and no header, passes by the guard (alibaba/nacos#4593,
// #4701): whoever shows no token gets nothing done.
func TestNothingPassesByTheGuard(t *testing.T) {
	o := newOffice(t)
	const here = " ip=10.0.0.1&port=80&serviceName=passed"
	for _, path := range []string{
		"/v1/ns/instance", "/v1/ns/instance/", "//v1/ns/instance", "/v1//ns/instance", "/v1/ns/./instance", "/v1/x/../ns/instance",
		"/v1/ns/instance;jsessionid=x", "/v1/ns/%69nstance", "/v1/ns/instance%2f", "/v1%2Fns%2Finstance", "/v1/ns/%2e/instance",
		"/V1/NS/INSTANCE", "/v1/ns/instance%00", "/v1/ns/instance%20", "/v1/ns/instance.json", "/v2/ns/instance", "/v3/client/ns/instance",
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"} {
			for _, header := range [][]string{
				nil, {"User-Agent", "Nacos-Server"}, {"serverIdentity", "security"}, {"X-HTTP-Method-Override", "POST"},
				{"Authorization", "Bearer "}, {"Authorization", "Bearer null"}, {"accessToken", "null"},
			} {
				status, body, _ := o.ask(method+" "+path+here, "", header...)
				if status < 400 {
					t.Errorf("%s %s %q: %d %.100s", method, path, header, status, body)
				}
			}
		}
	}
	if n := len(o.Store.Namespaces()); n != 0 {
		t.Errorf("services in %d namespaces were made by nobody", n)
	}
}
