package check

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// record is a name server's answer to one question: addresses, or a code of
// RFC 1035, or silence.
type record struct {
	addrs  []string
	code   byte
	silent bool
}

const (
	servfail = 2
	nxdomain = 3
)

// nameServer makes the Asker resolve by a server that knows only these names.
func nameServer(t testing.TB, a *Asker, records map[string]record) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			name, kind, end := question(query[:n])
			z, known := records[name]
			if !known {
				z.code = nxdomain
			}
			if !z.silent {
				server.WriteTo(z.answer(query[:end], kind), from)
			}
		}
	})
	t.Cleanup(func() { server.Close(); running.Wait() })
	a.dialName = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}
}

// question reads the only question of a query: its name, its type, its end.
func question(query []byte) (name string, kind uint16, end int) {
	var labels []string
	at := 12
	for query[at] != 0 {
		size := int(query[at])
		labels = append(labels, string(query[at+1:at+1+size]))
		at += 1 + size
	}
	return strings.ToLower(strings.Join(labels, ".")), binary.BigEndian.Uint16(query[at+1:]), at + 5
}

func (z record) answer(query []byte, kind uint16) []byte {
	reply := append([]byte(nil), query...)
	reply[2], reply[3] = 0x84, 0x80|z.code
	copy(reply[6:12], []byte{0, 0, 0, 0, 0, 0})
	for _, text := range z.addrs {
		addr := netip.MustParseAddr(text)
		if addr.Is4() != (kind == 1) || kind != 1 && kind != 28 {
			continue
		}
		raw := addr.AsSlice()
		reply[7]++
		reply = append(reply, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
		reply = append(reply, raw...)
	}
	return reply
}

func TestNames(t *testing.T) {
	a := newAsker(t)
	nameServer(t, a, map[string]record{
		"v4.test":    {addrs: []string{"127.0.0.1"}},
		"v6.test":    {addrs: []string{"::1"}},
		"both.test":  {addrs: []string{"::1", "127.0.0.1"}},
		"many.test":  {addrs: []string{"127.0.0.9", "127.0.0.8", "127.0.0.1"}},
		"empty.test": {},
		"bad.test":   {code: servfail},
		"slow.test":  {silent: true},
	})
	answers := func(conn net.Conn, _ string) { conn.Write([]byte(ok)) }
	_, port4, _ := net.SplitHostPort(stub(t, "127.0.0.1:0", answers))
	_, port6, _ := net.SplitHostPort(stub(t, "[::1]:0", answers))
	f := func(target string, kind Kind, reason string) {
		t.Helper()
		expect(t, a, "http://"+target+"/#timeout=1s", kind, reason)
		expect(t, a, "tcp://"+target+"#full&timeout=1s", kind, strings.TrimSuffix(reason, "200 OK"))
	}
	f("v4.test.:"+port4, Well, "200 OK")
	f("v6.test.:"+port6, Well, "200 OK")
	f("both.test.:"+port4, Well, "200 OK")
	f("both.test.:"+port6, Well, "200 OK")
	f("many.test.:"+port4, Well, "200 OK")
	f("v6.test.:"+port4, Sick, "refused ([::1]:"+port4+")")
	f("localhost:"+port4, Well, "200 OK")
	f("localhost:"+port6, Well, "200 OK")
	f("no.test.:80", Sick, "name not found: no.test.")
	f("empty.test.:80", Sick, "name not found: empty.test.")
	f("bad.test.:80", Unknown, "cannot resolve bad.test.")
	start := time.Now()
	expect(t, a, "http://slow.test.:80/#timeout=200ms", Unknown, "cannot resolve slow.test.")
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a silent name server held the check for %v", took)
	}
}

func TestSilentNameServerLeavesNothing(t *testing.T) {
	a := newAsker(t)
	nameServer(t, a, map[string]record{"slow.test": {silent: true}})
	before := runtime.NumGoroutine()
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() { expect(t, a, "http://slow.test.:80/#timeout=100ms", Unknown, "cannot resolve") })
	}
	asking.Wait()
	settle(t, before)
}

// Every address of a name is judged, by what is dialled and not by what is
// written, at every hop.
func TestPolicyIsAsked(t *testing.T) {
	a := NewAsker(netpolicy.Policy{DenySpecial: true, AllowLoopback: true, Deny: netpolicy.List{{Prefix: netip.MustParsePrefix("127.0.0.2/32"), Last: 65535}}})
	defer a.Close()
	canary := stub(t, "127.0.0.2:0", func(net.Conn, string) { t.Error("a denied address was contacted") })
	_, port, _ := net.SplitHostPort(canary)
	nameServer(t, a, map[string]record{
		"denied.test": {addrs: []string{"127.0.0.2"}},
		"mixed.test":  {addrs: []string{"127.0.0.2", "127.0.0.1"}},
		"meta.test":   {addrs: []string{"169.254.169.254", "fd00:ec2::254"}},
	})
	for _, scheme := range []string{"http://", "https://", "tcp://"} {
		expect(t, a, scheme+canary, Unknown, "cannot contact 127.0.0.2 (on the deny list: 127.0.0.2)")
		expect(t, a, scheme+"denied.test.:"+port, Unknown, "cannot contact 127.0.0.2 (on the deny list: 127.0.0.2)")
		expect(t, a, scheme+"[::ffff:127.0.0.2]:"+port, Unknown, "cannot contact")
		expect(t, a, scheme+"meta.test.:80", Unknown, "cannot contact")
		expect(t, a, scheme+"169.254.169.254:80", Unknown, "cannot contact 169.254.169.254 (cloud metadata)")
		expect(t, a, scheme+"0.0.0.0:80", Unknown, "cannot contact 0.0.0.0 (unspecified)")
		expect(t, a, scheme+"mixed.test.:"+port, Sick, "refused (127.0.0.1:"+port+")")
	}
	hop := says(t, "HTTP/1.1 302 Found\r\nLocation: http://"+canary+"/x\r\n\r\n")
	expect(t, a, "http://"+hop+"/#redirects=5", Unknown, "cannot contact 127.0.0.2")
	strict := NewAsker(netpolicy.Prober(false))
	defer strict.Close()
	for _, raw := range []string{"http://:" + port + "/", "tcp://:" + port, "http://localhost:" + port + "/", "tcp://[::1]:" + port} {
		expect(t, strict, raw, Unknown, "cannot contact")
	}
}

func TestNoPort(t *testing.T) {
	expect(t, newAsker(t), "tcp:", Unknown, "cannot ask: no port given")
}
