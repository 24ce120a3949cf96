package nacos

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// The defaults stand twice: as the settings' own and for a Server without any.
func TestDefaultLimits(t *testing.T) {
	v := reflect.ValueOf(DefaultLimits)
	for i := range v.NumField() {
		if want := v.Type().Field(i).Tag.Get("default"); fmt.Sprint(v.Field(i)) != want {
			t.Errorf("%s is %v, its setting %s", v.Type().Field(i).Name, v.Field(i), want)
		}
	}
	if err := (&DefaultLimits).Validate(); err != nil || (Limits{}).orDefault() != DefaultLimits {
		t.Errorf("%v, %+v", err, Limits{}.orDefault())
	}
	var none, all Limits
	fill := reflect.ValueOf(&all).Elem()
	for _, field := range fill.Fields() {
		field.SetInt(int64(time.Hour))
	}
	for name, l := range map[string]*Limits{"zero": &none, "too much": &all} {
		if err := l.Validate(); err == nil || strings.Count(err.Error(), "\n") != fill.NumField()-1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all.orDefault() != all {
		t.Errorf("got %+v", all.orDefault())
	}
}

// Each limit refuses one too many in clear words and is counted.
func TestLimitsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registry.NewStore()
		store.Limit(registry.Limits{Instances: 2, Services: 2})
		s := &Server{Store: store, Log: silentLog(), Limits: Limits{Body: 20_000, Header: 4096, Parameter: 600, Metadata: 50, Name: 20, ReadTime: 2 * time.Second}}
		serve := startServer(t, s)
		f := func(limit, method, target, body string, status int, want string) {
			t.Helper()
			before := s.Refused()
			form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
			got := serve.do(t, method, "/nacos"+target, form, body)
			if got.status != status || !strings.Contains(got.body, want) {
				t.Errorf("%s %.60s: %d %q, want %d %q", method, target, got.status, got.body, status, want)
			}
			for name, n := range s.Refused() {
				wanted := before[name]
				if name == limit {
					wanted++
				}
				if n != wanted {
					t.Errorf("%s: %s counts %d, want %d", limit, name, n, wanted)
				}
			}
		}
		const put, list, instance = "/v1/ns/instance", "/v1/ns/instance/list?serviceName=", "/v1/ns/instance?ip=127.0.0.1&port=1&serviceName="
		long := strings.Repeat("n", 21)
		f("", "POST", instance+"a", "", 200, "ok")
		f("body", "POST", put, strings.Repeat("a", 20_001), 413, "the body is larger than 20000 bytes")
		f("header", "GET", list+"a&"+strings.Repeat("x", 4096), "", 431, "larger than 4096 bytes")
		f("parameter", "GET", list+"a&x="+strings.Repeat("x", 601), "", 400, "Param 'x' is illegal, the param length should not exceed 600.")
		f("", "GET", list+"a&x="+strings.Repeat("x", 600), "", 200, "hosts")
		f("metadata", "POST", instance+"a&metadata=k%3D"+strings.Repeat("v", 50), "", 400, "Param 'Metadata' is illegal, the param length should not exceed 50.")
		f("", "POST", instance+"a&metadata=k%3D"+strings.Repeat("v", 49), "", 200, "ok")
		f("metadata", "POST", "/v2/ns/instance?ip=127.0.0.1&port=1&serviceName=a&metadata=k%3D"+strings.Repeat("v", 50), "", 400, "should not exceed 50.")
		f("name", "GET", list+long, "", 400, "Param 'serviceName' is illegal, the param length should not exceed 20.")
		f("name", "GET", list+"a&groupName="+long, "", 400, "Param 'group' is illegal")
		f("name", "GET", list+"a&clusters="+long, "", 400, "Param 'cluster' is illegal")
		f("name", "GET", list+"a&namespaceId="+long, "", 400, "Param 'namespaceId/tenant' is illegal")
		f("", "GET", list+long[1:], "", 200, "hosts")
		f("", "POST", "/v1/ns/instance?ip=127.0.0.1&port=2&serviceName=a", "", 200, "ok")
		f("instances", "POST", "/v1/ns/instance?ip=127.0.0.1&port=3&serviceName=a", "", 400, "service DEFAULT_GROUP@@a has 2 instances, and may have 2")
		f("instances", "POST", "/v2/ns/instance?ip=127.0.0.1&port=3&serviceName=a", "", 400, "has 2 instances, and may have 2")
		f("instances", "PUT", `/v1/ns/instance/beat?serviceName=a&beat={"ip":"127.0.0.1","port":3}`, "", 400, "has 2 instances, and may have 2")
		f("", "PUT", `/v1/ns/instance/beat?serviceName=a&beat={"ip":"127.0.0.1","port":2}`, "", 200, "clientBeatInterval")
		f("", "POST", instance+"b&ephemeral=false", "", 200, "ok")
		f("services", "POST", instance+"c", "", 400, "namespace public has 2 services, and may have 2")
		f("services", "POST", "/v1/ns/service?serviceName=c", "", 400, "namespace public has 2 services, and may have 2")
		f("", "POST", instance+"c&namespaceId=other", "", 200, "ok")
		if got := serve.opened(t, "GET /nacos HTTP/1.1\r\nHost: x\r\n")(); got != http.StatusRequestTimeout || s.Refused()["read_time"] != 1 {
			t.Errorf("half a request: %d, %v", got, s.Refused())
		}
	})
}

// While as many requests as may be are at work, others are refused; beats and
// the lists of consumers are not.
func TestLimitOfRequests(t *testing.T) {
	s := beatenServer(t)
	s.Limits.Requests = 2
	serve := startServerNow(t, s)
	f := func(method, target string, status int) {
		t.Helper()
		if got := serve.do(t, method, target, http.Header{}, ""); got.status != status {
			t.Errorf("%s %s: %d %q, want %d", method, target, got.status, got.body, status)
		}
	}
	const register, v3Beat = "/nacos/v1/ns/instance?serviceName=orders&ip=127.0.0.1&port=1", "/nacos/v3/client/ns/instance?serviceName=orders&ip=127.0.0.1&port=1&heartBeat=true"
	f("POST", register, http.StatusOK)
	s.bounds.requests.Add(2)
	f("POST", register, http.StatusServiceUnavailable)
	f("GET", "/nacos/v1/ns/service/names", http.StatusServiceUnavailable)
	f("PUT", lightTarget, http.StatusOK)
	f("POST", v3Beat, http.StatusOK)
	f("GET", "/nacos/v1/ns/instance/list?serviceName=orders", http.StatusOK)
	f("GET", "/nacos/v1/console/health/readiness", http.StatusOK)
	if n := s.Refused()["requests"]; n != 2 {
		t.Errorf("%d are counted", n)
	}
	s.bounds.requests.Add(-1)
	f("POST", register, http.StatusOK)
	if _, n := s.Load(); n != 1 {
		t.Errorf("%d requests are at work, want 1", n)
	}
}

// bound serves on loopback with limits.
func bound(t *testing.T, l Limits) (s *Server, port string) {
	t.Helper()
	s, _, port = boundBy(t, l)
	return s, port
}

func boundBy(t *testing.T, l Limits) (s *Server, by *boundListener, port string) {
	t.Helper()
	s = beatenServer(t)
	s.Limits = l
	ln, err := run.Listen(t.Context(), "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	server := s.HTTP()
	by = s.Bound(ln, true).(*boundListener)
	stop := background(t, func() error { return run.Serve(t.Context(), by, server) })
	t.Cleanup(stop)
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return s, by, port
}

func background(t *testing.T, part func() error) (stop func()) {
	ended := make(chan error, 1)
	go func() { ended <- part() }()
	return func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Connections are counted by address and in all; one too many is told so, and
// leaves no trace.
func TestLimitOfConnections(t *testing.T) {
	s, port := bound(t, Limits{Connections: 5, ConnectionsOfAddress: 2})
	open := func(from, to string) net.Conn {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(to, port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn, status int, want string) {
		t.Helper()
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\n\r\n", lightTarget)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("want %d: %v", status, err)
			return
		}
		defer answer.Body.Close()
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != status || !strings.Contains(string(body), want) {
			t.Errorf("%d %s, want %d %s", answer.StatusCode, body, status, want)
		}
	}
	var all []net.Conn
	for _, from := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"} {
		all = append(all, open(from, "127.0.0.1"))
		ask(all[len(all)-1], 200, "clientBeatInterval")
	}
	ask(open("127.0.0.1", "127.0.0.1"), 429, "your address has 2 connections, as many as it may (SIDEBEAT_LIMIT_CONNECTIONS_OF_ADDRESS)")
	all = append(all, open("::1", "::1"))
	ask(all[4], 200, "clientBeatInterval")
	ask(open("127.0.0.3", "127.0.0.1"), 503, "there are 5 connections, as many as may be (SIDEBEAT_LIMIT_CONNECTIONS)")
	if n, _ := s.Load(); n != 5 || s.Refused()["connections"] != 1 || s.Refused()["connections_of_address"] != 1 {
		t.Errorf("%d connections, refused %v", n, s.Refused())
	}
	for _, conn := range all {
		ask(conn, 200, "clientBeatInterval") // who is in is left alone
		conn.Close()
	}
	for n := 1; n > 0; n, _ = s.Load() {
		time.Sleep(time.Millisecond)
	}
	ask(open("127.0.0.1", "127.0.0.1"), 200, "clientBeatInterval")
}

// Who does not take the answer loses the connection, and that is counted.
func TestSlowReaders(t *testing.T) {
	s, port := bound(t, Limits{WriteTime: time.Second})
	for i := range 2000 {
		one := beaten
		one.Port = uint16(i + 1)
		if err := s.Store.Register(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(4096)
	request := "GET /nacos/v1/ns/instance/list?serviceName=" + beaten.Name + " HTTP/1.1\r\nHost: x\r\n\r\n"
	for range 64 { // more than the kernel's buffers hold
		if _, err := io.WriteString(conn, request); err != nil {
			break
		}
	}
	for end := time.Now().Add(15 * time.Second); s.Refused()["write_time"] == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody missed the reader")
		}
	}
	for n := 1; n > 0; n, _ = s.Load() {
		time.Sleep(time.Millisecond)
	}
}

func TestOriginOfConnections(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		at, _ := net.ResolveTCPAddr("tcp", address)
		if got := origin(at).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	f("127.0.0.1:9", "127.0.0.1/32")
	f("[::ffff:127.0.0.1]:9", "127.0.0.1/32")
	f("[2001:db8:1:2:3:4:5:6]:9", "2001:db8:1:2::/64")
	f("[::1]:"+strconv.Itoa(9), "::/64")
}

// An address that is in error again and again waits for its answers; who is
// not, does not.
func TestErrorsAreHeldBack(t *testing.T) {
	s, port := bound(t, Limits{})
	ask := func(from, target string) (took time.Duration) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return time.Since(began)
	}
	const wrong = "/nacos/v1/ns/instance/beat?serviceName=a&beat=%7B"
	for n := 0; s.Held() == 0; n++ {
		if n > 10*freeFaults {
			t.Fatal("nothing was held back")
		}
		if took := ask("127.0.0.1", wrong); took < penance && n >= freeFaults && s.Held() > 0 || took >= penance && n < freeFaults {
			t.Errorf("%d errors: %v", n, took)
		}
	}
	if took := ask("127.0.0.1", lightTarget); took >= penance {
		t.Errorf("a beat was held back for %v", took)
	}
	if took := ask("127.0.0.2", wrong); took >= penance {
		t.Errorf("somebody else was held back for %v", took)
	}
}

func TestFaultsAreForgotten(t *testing.T) {
	var f faults
	now := time.Now()
	noted := func(n int) (many int) {
		for range n {
			if f.note(now) {
				many++
			}
		}
		return many
	}
	if n := noted(freeFaults); n != 0 {
		t.Errorf("%d of the first are too many", n)
	}
	if n := noted(50); n != 50 {
		t.Errorf("%d of 50 more are too many", n)
	}
	now = now.Add(time.Second / 2)
	if n := noted(freeFaults); n != freeFaults/2 {
		t.Errorf("after half a second %d are too many, want %d", n, freeFaults/2)
	}
	now = now.Add(time.Hour)
	if n := noted(freeFaults); n != 0 {
		t.Errorf("after an hour %d are too many", n)
	}
}

// A connection leaves once, however often it is closed, and is known behind TLS.
func TestBoundConnection(t *testing.T) {
	l := (&Server{}).Bound(nil, false).(*boundListener)
	l.bounds.Limits = DefaultLimits
	here, there := net.Pipe()
	defer there.Close()
	from := netip.MustParsePrefix("127.0.0.1/32")
	g, _ := l.enter(from)
	l.enter(from)
	conn := &boundConn{Conn: here, listener: l, from: from, guest: g}
	if guestOf(conn) != g || guestOf(tls.Server(conn, nil)) != g || guestOf(there) != nil {
		t.Error("the guest is not known")
	}
	conn.Close()
	conn.Close()
	if n := l.bounds.connections.Load(); n != 1 {
		t.Errorf("%d connections are left, want the other one", n)
	}
}

// Who left and is forgiven takes no memory.
func TestGuestsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := (&Server{}).Bound(nil, true).(*boundListener)
		l.bounds.Limits = DefaultLimits
		from := func(i int) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(i)}), 32) }
		for i := range 100 {
			g, _ := l.enter(from(i))
			if i%2 == 0 {
				g.faults.note(time.Now())
			}
		}
		for i := range 99 {
			l.leave(from(i))
		}
		if n := len(l.guests); n < 50 {
			t.Errorf("%d are left at once", n)
		}
		time.Sleep(time.Second)
		l.leave(from(99))
		if n := len(l.guests); n != 0 || l.bounds.connections.Load() != 0 {
			t.Errorf("%d are left", n)
		}
	})
}
