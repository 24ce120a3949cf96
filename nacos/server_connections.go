package nacos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// mostParting connections that were one too many are told so at the same time;
// further ones just end.
const mostParting = 64

// Bound gives a listener that lets in as many connections as Limits say, in all
// and from one address. One too many is told so by plain HTTP, or by nothing
// when it is to speak TLS, and ends after a second: who opens the next at once
// costs us more. Call it before Serve and after HTTP or Handler.
func (s *Server) Bound(ln net.Listener, plain bool) net.Listener {
	return &boundListener{Listener: ln, bounds: &s.bounds, plain: plain, guests: map[netip.Prefix]*guest{}, parting: run.NewSet(mostParting)}
}

type boundListener struct {
	net.Listener
	bounds  *bounds
	plain   bool
	parting *run.Set

	mu     sync.Mutex
	guests map[netip.Prefix]*guest
	swept  time.Time
}

// guest is one address that has connections, or had some and is not forgiven.
type guest struct {
	connections int // the listener's lock guards it
	faults      faults
	requests    atomic.Int64 // at work, of those that count
	answers     int          // bytes; the lock of answers guards it
}

func (l *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := origin(conn.RemoteAddr())
		guest, reached := l.enter(from)
		if reached == limitNone {
			return &boundConn{Conn: conn, listener: l, from: from, guest: guest}, nil
		}
		l.bounds.refuse(reached)
		if !l.parting.Go(func() { l.part(conn, reached) }) {
			conn.Close()
		}
	}
}

// origin is what counts as one address: whoever has an address of IPv6 has a
// /64 of them.
func origin(addr net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{} // no network as the kernel knows it
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // fails for other numbers of bits only
	return prefix
}

func (l *boundListener) enter(from netip.Prefix) (*guest, limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guests[from]
	switch {
	case l.bounds.connections.Load() >= int64(l.bounds.Connections):
		return nil, limitConnections
	case g == nil:
		g = new(guest)
		l.guests[from] = g
	case g.connections >= l.bounds.ConnectionsOfAddress:
		return nil, limitConnectionsOfAddress
	}
	g.connections++
	l.bounds.connections.Add(1)
	return g, limitNone
}

func (l *boundListener) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guests[from].connections--
	l.bounds.connections.Add(-1)
	l.sweep(time.Now())
}

// sweep forgets who left and is forgiven, once a second at most: that is as long
// as faults are remembered.
func (l *boundListener) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.guests, func(_ netip.Prefix, g *guest) bool { return g.connections == 0 && g.faults.forgiven(now) })
}

// part tells a client that there are too many connections, and reads what it
// sends meanwhile: a connection that is closed on unread bytes is reset, and
// the answer with it.
func (l *boundListener) part(conn net.Conn, reached limit) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(penance))
	if l.plain {
		status, text := http.StatusServiceUnavailable, fmt.Sprintf("there are %d connections, as many as may be (SIDEBEAT_LIMIT_CONNECTIONS)", l.bounds.Connections)
		if reached == limitConnectionsOfAddress {
			status, text = http.StatusTooManyRequests, fmt.Sprintf("your address has %d connections, as many as it may (SIDEBEAT_LIMIT_CONNECTIONS_OF_ADDRESS)", l.bounds.ConnectionsOfAddress)
		}
		fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\nRetry-After: 1\r\n\r\n%s",
			status, http.StatusText(status), typeText, len(text), text)
	}
	io.Copy(io.Discard, conn)
}

// boundConn gives its place back when it is closed.
type boundConn struct {
	net.Conn
	listener *boundListener
	from     netip.Prefix
	guest    *guest
	left     sync.Once
}

// guestOf gives who is at the other end of a connection, nil when it came
// through no Bound.
func guestOf(conn net.Conn) *guest {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if c, ok := conn.(*boundConn); ok {
		return c.guest
	}
	return nil
}

// guest is who sent the call, nil when it came through no Bound.
func (c *call) guest() *guest {
	if c.ctx == nil {
		return nil
	}
	return guestOf(c.ctx.Conn())
}

// freeFaults a second, and as many at once, cost an address nothing: clients
// that ask in vain are no floods.
const freeFaults = 100

// faults count what an address asked that was answered by an error.
type faults struct {
	mu   sync.Mutex
	owed float64 // faults, at
	at   time.Time
}

func (f *faults) forgiven(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Sub(f.at) >= time.Second
}

// note counts one more and tells whether that is too many.
func (f *faults) note(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed = max(0, f.owed-freeFaults*now.Sub(f.at).Seconds()) + 1
	f.at = now
	if f.owed <= freeFaults {
		return false
	}
	f.owed = freeFaults // who waits pays
	return true
}

// atone holds back the answer to a request in error when its address sends too
// many such: to answer each at once would cost the others more than to wait
// costs those who ask in vain.
func (b *bounds) atone(ctx *fasthttp.RequestCtx) {
	if g := guestOf(ctx.Conn()); g != nil && g.faults.note(time.Now()) {
		b.held.Add(1)
		_ = run.Wait(context.Background(), penance) // never fails
	}
}

func (c *boundConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.listener.bounds.refuse(limitWriteTime)
	}
	return n, err
}

func (c *boundConn) Close() error {
	c.left.Do(func() { c.listener.leave(c.from) })
	return c.Conn.Close()
}
