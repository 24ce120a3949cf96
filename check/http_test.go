package check

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func TestHTTPVerdicts(t *testing.T) {
	a := newAsker(t)
	f := func(answer, options string, kind Kind, reason string) {
		t.Helper()
		expect(t, a, "http://"+says(t, answer)+"/"+options, kind, reason)
	}
	f(ok, "", Well, "200 OK")
	f("HTTP/1.0 200 OK\r\n\r\nhello", "", Well, "200 OK")
	f("HTTP/1.1 200\r\n\r\n", "", Well, "200")
	f("HTTP/1.1 200 OK\n\nhello", "", Well, "200 OK")
	f("HTTP/1.1 204 No Content\r\n\r\n", "", Well, "204 No Content")
	f("HTTP/1.1 304 Not Modified\r\n\r\n", "", Well, "304 Not Modified")
	f("HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n", "", Well, "302 Found")
	f("HTTP/1.1 401 Unauthorized\r\n\r\n", "", Sick, "status 401 Unauthorized")
	f("HTTP/1.1 401 Unauthorized\r\n\r\n", "#status=200-299,401", Well, "401 Unauthorized")
	f("HTTP/1.1 301 Moved\r\n\r\n", "#status=200", Sick, "status 301 Moved")
	f("HTTP/1.1 503 Service Unavailable\r\n\r\n", "", Sick, "status 503 Service Unavailable")
	f("HTTP/1.1 101 Switching\r\n\r\n", "", Sick, "status 101 Switching")
	f("HTTP/1.1 600 Odd\r\n\r\n", "#status=600-999", Well, "600 Odd")
	f("HTTP/1.1 200 \x1b[2J\u202eOK\r\n\r\n", "", Well, `200 \x1b[2J\u202eOK`)
	f("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "", Well, "200 OK")
	f("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 32<<10)+"\r\n\r\n", "", Well, "200 OK")
	f("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 65<<10)+"\r\n\r\n", "", Sick, "head longer than 64 KiB")
	// golang/go#17739: interim answers are not the final one.
	f("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+ok, "#status=200", Well, "200 OK")
	f("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n", "", Sick, "status 503 Busy")
	f("HTTP/1.1 100 Continue\r\n\r\n", "", Sick, "closed without an answer")
	// valyala/fasthttp#1267: no length is believed before it is needed.
	f("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n0123456789", "", Well, "200 OK")
	f("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n0123456789", "#body=9", Well, "200 OK")
	f("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n0123456789", "#body=x", Sick, "truncated body")
	f("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n0123456789", "", Sick, "malformed head: bad Content-Length")
	f("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n0123456789", "", Sick, "malformed head: bad Content-Length")
	// valyala/fasthttp#1167: other tongues are named.
	f("SSH-2.0-OpenSSH_9.2\r\n", "", Sick, "not HTTP: SSH-2.0-OpenSSH_9.2")
	f("\x15\x03\x01\x00\x02\x02\x46", "", Sick, "not HTTP: server speaks TLS")
	f("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64", "", Sick, "not HTTP/1: server speaks HTTP/2")
	f("J\x00\x00\x00\n8.0.36\x00\xff", "", Sick, `not HTTP: J\x00\x00\x00`)
	f("H", "", Sick, "truncated head")
	f("HELO", "", Sick, "not HTTP: HELO")
	f("HTTP/1.1 200 OK\r\nContent-Le", "", Sick, "truncated head")
	f("HTTP/1.1 abc\r\n\r\n", "", Sick, "malformed head")
	f("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "", Sick, "malformed head")
	f("HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", "", Sick, "status 400 Bad Request: server speaks TLS")
	f("HTTP/1.1 400 Bad Request\r\n\r\n", "", Sick, "status 400 Bad Request")
	f("", "", Sick, "closed without an answer")
}

func TestHTTPRequestIsByteForByte(t *testing.T) {
	a := newAsker(t)
	f := func(path, options, want string) {
		t.Helper()
		got := make(chan string, 1)
		addr := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) {
			got <- head
			conn.Write([]byte(ok))
		})
		expect(t, a, "http://"+addr+path+options, Well, "200 OK")
		want = strings.ReplaceAll(want, "ADDR", addr)
		if head := <-got; head != want {
			t.Errorf("%s%s: got\n%s\nwant\n%s", path, options, head, want)
		}
	}
	const std = "User-Agent: sidebeat\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
	f("/app//health", "", "GET /app//health HTTP/1.1\r\nHost: ADDR\r\n"+std+"Connection: close\r\n\r\n")
	f("/a/../b/%2e/c%2Fd;x?q=%zz&+", "", "GET /a/../b/%2e/c%2Fd;x?q=%zz&+ HTTP/1.1\r\nHost: ADDR\r\n"+std+"Connection: close\r\n\r\n")
	f("", "#method=head", "HEAD / HTTP/1.1\r\nHost: ADDR\r\n"+std+"Connection: close\r\n\r\n")
	f("/", "#method=POST", "POST / HTTP/1.1\r\nHost: ADDR\r\n"+std+"Content-Length: 0\r\nConnection: close\r\n\r\n")
	// kubernetes/kubernetes#24288: Host is honoured, once; repeated and empty headers arrive.
	f("/", "#header=host:legacy.example&header=X-A:1&header=X-A:2&header=x-e:", "GET / HTTP/1.1\r\n"+std+"host: legacy.example\r\nX-A: 1\r\nX-A: 2\r\nx-e: \r\nConnection: close\r\n\r\n")
	f("/", "#header=User-Agent:u&header=Accept:a&header=accept-encoding:gzip", "GET / HTTP/1.1\r\nHost: ADDR\r\nUser-Agent: u\r\nAccept: a\r\naccept-encoding: gzip\r\nConnection: close\r\n\r\n")
}

func TestHTTPHostOfLoopbackIsLocalhost(t *testing.T) {
	got := make(chan string, 1)
	addr := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) { got <- head; conn.Write([]byte(ok)) })
	_, port, _ := net.SplitHostPort(addr)
	expect(t, newAsker(t), "http://:"+port+"/", Well, "200 OK")
	if head := <-got; !strings.Contains(head, "\r\nHost: localhost:"+port+"\r\n") {
		t.Errorf("got %s", head)
	}
}

func TestHTTPHangsEndInTime(t *testing.T) {
	a := newAsker(t)
	f := func(name, options string, talk func(net.Conn)) {
		t.Helper()
		addr := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) { talk(conn) })
		answer := expect(t, a, "http://"+addr+"/#timeout=150ms"+options, Sick, "timeout after 150ms")
		if answer.Took < 140*time.Millisecond || answer.Took > time.Second {
			t.Errorf("%s: took %v", name, answer.Took)
		}
	}
	drip := func(head, piece string) func(net.Conn) {
		return func(conn net.Conn) {
			conn.Write([]byte(head))
			for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
				if _, err := conn.Write([]byte(piece)); err != nil {
					return
				}
			}
		}
	}
	f("silent", "", hang)
	f("half a head", "", func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 200 OK\r\nX")); hang(conn) })
	f("first letter", "", func(conn net.Conn) { conn.Write([]byte("H")); hang(conn) })
	f("a byte at a time", "", drip("HTTP/1.1 200 OK\r\nX: ", "a"))
	f("endless interim answers", "", drip("", "HTTP/1.1 103 Early Hints\r\n\r\n"))
	f("dripping body", "&body=x", drip("HTTP/1.1 200 OK\r\n\r\n", "a"))
	f("body that stops", "&match=o$", func(conn net.Conn) {
		conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"))
		hang(conn)
	})
}

func TestHTTPResets(t *testing.T) {
	a := newAsker(t)
	reset := func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) }
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) { reset(conn) })
	expect(t, a, "http://"+at+"/", Sick, "reset")
	at = stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) {
		conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"))
		conn.(*net.TCPConn).CloseWrite()
		hang(conn)
	})
	expect(t, a, "http://"+at+"/#body=world", Sick, "truncated body")
}

// A server that refuses without reading the request is heard all the same.
func TestHTTPAnswerBeforeTheRequestIsRead(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, ln, func(conn net.Conn) {
		conn.Write([]byte("HTTP/1.1 503 Too busy\r\n\r\n"))
		conn.(*net.TCPConn).CloseWrite()
		hang(conn)
	})
	expect(t, newAsker(t), "http://"+ln.Addr().String()+"/", Sick, "status 503 Too busy")
}

// hashicorp/consul#869 and valyala/fasthttp#882: no check can be failed by the
// idle connection of the one before, as there is none.
func TestHTTPOneConnectionEach(t *testing.T) {
	a := newAsker(t)
	var connections atomic.Int32
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) {
		connections.Add(1)
		conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	})
	for range 200 {
		expect(t, a, "http://"+at+"/", Well, "200 OK")
	}
	if n := connections.Load(); n != 200 {
		t.Errorf("got %d connections for 200 checks", n)
	}
}

// The server closes first, so that TIME_WAIT is not ours, and it can finish
// what it has to say without a reset.
func TestHTTPServerMayCloseFirst(t *testing.T) {
	closed := make(chan error, 1)
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) {
		_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n" + strings.Repeat("a", 30000)))
		conn.(*net.TCPConn).CloseWrite()
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		closed <- err
	})
	expect(t, newAsker(t), "http://"+at+"/", Well, "200 OK")
	if err := <-closed; err == nil || err.Error() != "EOF" {
		t.Errorf("server got %v, want a clean end", err)
	}
}

func TestHTTPIPv6(t *testing.T) {
	at := stub(t, "[::1]:0", func(conn net.Conn, _ string) { conn.Write([]byte(ok)) })
	_, port, _ := net.SplitHostPort(at)
	a := newAsker(t)
	expect(t, a, "http://"+at+"/", Well, "200 OK")
	expect(t, a, "http://:"+port+"/", Well, "200 OK")
	expect(t, a, "http://localhost:"+port+"/", Well, "200 OK")
	expect(t, a, "http://LOCALHOST.:"+port+"/", Well, "200 OK")
	expect(t, a, "http://127.0.0.1:"+port+"/", Sick, "refused (127.0.0.1:"+port+")")
	expect(t, a, "tcp://:"+port, Well, "")
}

// A zone is for us to find the way, and nothing a server should be told.
func TestHTTPHostHasNoZone(t *testing.T) {
	f := func(h hop, want string) {
		t.Helper()
		if got := h.authority(); got != want {
			t.Errorf("%+v: got %s, want %s", h, got, want)
		}
	}
	f(hop{host: "fe80::1%eth0", port: 80}, "[fe80::1]:80")
	f(hop{host: "::1"}, "[::1]")
	f(hop{port: 8080}, "localhost:8080")
	f(hop{host: "a.test"}, "a.test")
}

func TestNoProxyIsUsed(t *testing.T) {
	var strays atomic.Int32
	proxy := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) { strays.Add(1); conn.Write([]byte(ok)) })
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://"+proxy)
	}
	refused := closedPort(t)
	a := newAsker(t)
	expect(t, a, "http://"+refused+"/", Sick, "refused")
	expect(t, a, "https://"+refused+"/", Sick, "refused")
	if n := strays.Load(); n != 0 {
		t.Errorf("%d requests went to the proxy", n)
	}
}

// closedPort is an address on which nothing listens.
func closedPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestHTTPStoppedIsUnknown(t *testing.T) {
	asked := make(chan struct{})
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) { close(asked); hang(conn) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	go func() { <-asked; cancel() }()
	answer := newAsker(t).Ask(ctx, must(t, "http://"+at+"/"))
	if answer.Kind != Unknown || answer.Reason != "stopped while asking" || answer.Took > 5*time.Second {
		t.Errorf("got %+v", answer)
	}
}
