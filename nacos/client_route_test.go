package nacos

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/sidebeat/sidebeat/registry"
)

// routes is a machine with a routing table of the test's own.
type routes map[string]string // "host:port" to the source address, "" is unreachable

func (r routes) dial(_ context.Context, network, endpoint string) (net.Conn, error) {
	source, ok := r[endpoint]
	if network != "udp" || !ok || source == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("network is unreachable")}
	}
	return udpFrom{source: source}, nil
}

// udpFrom is a connected socket that must not be written to.
type udpFrom struct {
	net.Conn
	source string
}

func (u udpFrom) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(u.source), 40000))
}

func (u udpFrom) Close() error { return nil }

func TestRoute(t *testing.T) {
	f := func(servers string, table routes, want string) {
		t.Helper()
		c := opened(t, ClientConfig{Servers: []string{servers}, Dial: table.dial})
		got, err := c.Route(t.Context())
		if err != nil || got.String() != want {
			t.Errorf("%s with %v: got %v %v, want %s", servers, table, got, err, want)
		}
	}
	f("10.0.0.1,10.0.0.2", routes{"10.0.0.1:8848": "10.0.0.7", "10.0.0.2:8848": "10.0.0.8"}, "10.0.0.7")
	f("[2001:db8::9]:1", routes{"[2001:db8::9]:1": "2001:db8::7"}, "2001:db8::7")
	f("nacos", routes{"nacos:8848": "::ffff:10.0.0.7"}, "10.0.0.7")
	f("127.0.0.1", routes{"127.0.0.1:8848": "127.0.0.1", "192.0.2.1:9": "10.0.0.9"}, "10.0.0.9")
	f("[::1]", routes{"[::1]:8848": "::1", "[2001:db8::1]:9": "2001:db8::9"}, "2001:db8::9")
}

func TestRouteFails(t *testing.T) {
	f := func(table routes, says ...string) {
		t.Helper()
		c := opened(t, ClientConfig{Servers: []string{"nacos"}, Dial: table.dial})
		got, err := c.Route(t.Context())
		if !errors.Is(err, registry.ErrUnavailable) || got.IsValid() {
			t.Errorf("got %v %v, want an error", got, err)
		}
		for _, word := range says {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
	}
	f(routes{}, "cannot find the route to http://nacos:8848/nacos", "unreachable")
	f(routes{"nacos:8848": "127.0.0.1"}, "loopback", "no default route")
}

// On the machine itself: the registry on loopback leads to an address that is
// not loopback, when there is a network at all.
func TestRouteOfThisMachine(t *testing.T) {
	c := opened(t, ClientConfig{Servers: []string{"127.0.0.1"}})
	got, err := c.Route(t.Context())
	if err == nil && (got.IsLoopback() || !got.IsValid()) || err != nil && !strings.Contains(err.Error(), "no default route") {
		t.Errorf("got %v %v", got, err)
	}
}
