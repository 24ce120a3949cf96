package nacos

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

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
	return &boundListener{Listener: ln, bounds: &s.bounds, plain: plain, of: map[netip.Prefix]int{}, parting: run.NewSet(mostParting)}
}

type boundListener struct {
	net.Listener
	bounds  *bounds
	plain   bool
	parting *run.Set

	mu sync.Mutex
	of map[netip.Prefix]int // connections
}

func (l *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := origin(conn.RemoteAddr())
		reached := l.enter(from)
		if reached == limitNone {
			return &boundConn{Conn: conn, listener: l, from: from}, nil
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

func (l *boundListener) enter(from netip.Prefix) limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.bounds.connections.Load() >= int64(l.bounds.Connections):
		return limitConnections
	case l.of[from] >= l.bounds.ConnectionsOfAddress:
		return limitConnectionsOfAddress
	}
	l.of[from]++
	l.bounds.connections.Add(1)
	return limitNone
}

func (l *boundListener) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[from]--; l.of[from] == 0 {
		delete(l.of, from)
	}
	l.bounds.connections.Add(-1)
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
	left     sync.Once
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
