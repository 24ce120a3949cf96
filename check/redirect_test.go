package check

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func TestRedirects(t *testing.T) {
	a := newAsker(t)
	f := func(location, options string, kind Kind, reason string) {
		t.Helper()
		at := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) {
			if strings.HasPrefix(head, "GET /ok ") {
				conn.Write([]byte(ok))
				return
			}
			conn.Write([]byte("HTTP/1.1 302 Found\r\n" + location + "\r\n\r\n"))
		})
		expect(t, a, "http://"+at+"/a/b#"+options, kind, reason)
	}
	f("Location: /ok", "", Well, "302 Found")
	f("Location: /ok", "redirects=0", Well, "302 Found")
	f("Location: /ok", "redirects=1", Well, "200 OK")
	f("Location: ../ok", "redirects=1", Well, "200 OK")
	f("Location: /a/b", "redirects=7", Sick, "too many redirects (7)")
	f("Location: /other", "redirects=20", Sick, "too many redirects (20)")
	f("X: no location", "redirects=7", Well, "302 Found")
	f("Location: file:///etc/passwd", "redirects=7", Sick, "redirect to file:///etc/passwd not followed")
	f("Location: gopher://x/", "redirects=7", Sick, "redirect to gopher://x/ not followed")
	f("Location: http:opaque", "redirects=7", Sick, "redirect to http:opaque not followed")
	f("Location: http:///", "redirects=7", Sick, "redirect to http:/// not followed")
	f("Location: http://a%b/", "redirects=7", Sick, "redirect to http://a%b/ not followed")
	f("Location: http://x:0/", "redirects=7", Sick, "redirect to http://x:0/ not followed: bad port")
	f("Location: http://x:\u202e/", "redirects=7", Sick, `redirect to http://x:\u202e/ not followed`)
	f("Location: http://a.test\\@127.0.0.1/", "redirects=7", Sick, "redirect to")
}

// valyala/fasthttp#2345: where a redirect leads is what RFC 3986 says.
func TestRedirectTargets(t *testing.T) {
	a := newAsker(t)
	f := func(location string) {
		t.Helper()
		asked := make(chan string, 1)
		at := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) {
			target := strings.Fields(head)[1]
			if target == "/x/healthz?q=1" {
				fmt.Fprintf(conn, "HTTP/1.1 307 Go\r\nLocation: %s\r\n\r\n", location)
				return
			}
			asked <- target
			conn.Write([]byte(ok))
		})
		expect(t, a, "http://"+at+"/x/healthz?q=1#redirects=1", Well, "200 OK")
		base, _ := url.Parse("http://" + at + "/x/healthz?q=1")
		ref, err := url.Parse(location)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := <-asked, base.ResolveReference(ref).RequestURI(); got != want {
			t.Errorf("%s: got %s, want %s", location, got, want)
		}
	}
	f("/a//b")
	f("?next=//x")
	f("https//other/")
	f("../ok")
	f("./a%2Fb;c")
	f("sub/#fragment")
}

// No cookies are kept: the login page of kubernetes/kubernetes#61831 bounces
// until the cap, within the timeout.
func TestRedirectLoopKeepsNoCookies(t *testing.T) {
	var cookies, hits atomic.Int32
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) {
		hits.Add(1)
		if strings.Contains(strings.ToLower(head), "\r\ncookie:") {
			cookies.Add(1)
		}
		to := "/login"
		if strings.HasPrefix(head, "GET /login ") {
			to = "/"
		}
		fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nSet-Cookie: s=1\r\nLocation: %s\r\n\r\n", to)
	})
	expect(t, newAsker(t), "http://"+at+"/#redirects=10", Sick, "too many redirects (10)")
	if cookies.Load() != 0 || hits.Load() != 11 {
		t.Errorf("got %d cookies in %d requests, want none in 11", cookies.Load(), hits.Load())
	}
}

// Headers, which may be credentials, stay with their host.
func TestRedirectHeaders(t *testing.T) {
	a := newAsker(t)
	f := func(host, method, status, wantMethod string, wantHeader bool) {
		t.Helper()
		got := make(chan string, 1)
		end := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) { got <- head; conn.Write([]byte(ok)) })
		_, port, _ := net.SplitHostPort(end)
		begin := says(t, "HTTP/1.1 "+status+" Go\r\nLocation: http://"+host+":"+port+"/\r\n\r\n")
		expect(t, a, "http://"+begin+"/#redirects=1&header=Authorization:secret&header=Host:legacy.example&method="+method, Well, "200 OK")
		head := <-got
		if strings.Contains(head, "secret") != wantHeader || strings.Contains(head, "legacy.example") != wantHeader || !strings.HasPrefix(head, wantMethod+" / ") {
			t.Errorf("%s %s to %s: got %s", status, method, host, head)
		}
	}
	f("127.0.0.1", "GET", "302", "GET", true)
	f("localhost", "GET", "302", "GET", false)
	f("localhost", "POST", "302", "GET", false)
	f("127.0.0.1", "POST", "303", "GET", true)
	f("127.0.0.1", "POST", "307", "POST", true)
	f("127.0.0.1", "PUT", "301", "PUT", true)
	f("127.0.0.1", "HEAD", "303", "HEAD", true)
}
