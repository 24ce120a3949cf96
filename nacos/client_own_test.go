package nacos

import (
	"net"
	"net/netip"
	"testing"

	"github.com/sidebeat/sidebeat/run"
)

// TestServes: a registry's ports are known where its address was given, and
// where a name led.
func TestServes(t *testing.T) {
	ln, err := run.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	c := opened(t, ClientConfig{Servers: []string{"http://127.0.0.9:18848", "http://[::1]:28848", "http://localhost:" + port}})
	f := func(target string, want bool) {
		t.Helper()
		if got := c.Serves(netip.MustParseAddrPort(target)); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	f("127.0.0.9:18848", true)
	f("127.0.0.9:19848", true)
	f("127.0.0.9:19849", true)
	f("127.0.0.9:17848", true)
	f("[::ffff:127.0.0.9]:18848", true)
	f("[::1]:28848", true)
	f("127.0.0.9:18849", false)
	f("127.0.0.8:18848", false)
	f("127.0.0.9:28848", false)
	f("127.0.0.1:"+port, false)
	conn, err := c.transport.DialContext(t.Context(), "tcp4", "localhost:"+port)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	f("127.0.0.1:"+port, true)
	f("127.0.0.2:"+port, false)
	for i := range 2 * mostAddrs {
		c.pool.reached("localhost:"+port, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}), 1).String())
	}
	f("127.0.1.15:"+port, true)
	f("127.0.0.1:"+port, false)
}
