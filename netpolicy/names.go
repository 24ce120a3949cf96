package netpolicy

import (
	"net"
	"time"
)

// Hurried makes a connection to a name server, as Dial of a net.Resolver
// returns it, give up then. The resolver of Go gives each of the name servers
// 5 s, whatever time the question has: when the first is dead, the second would
// never be asked.
func Hurried(conn net.Conn, until time.Time) net.Conn {
	if packets, ok := conn.(*net.UDPConn); ok {
		return hurriedPackets{packets, until} // by the methods the resolver knows that these are datagrams
	}
	return hurried{conn, until}
}

type hurriedPackets struct {
	*net.UDPConn
	until time.Time
}

func (h hurriedPackets) SetDeadline(t time.Time) error {
	return h.UDPConn.SetDeadline(earlier(t, h.until))
}

type hurried struct {
	net.Conn
	until time.Time
}

func (h hurried) SetDeadline(t time.Time) error { return h.Conn.SetDeadline(earlier(t, h.until)) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
