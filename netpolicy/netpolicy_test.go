package netpolicy

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSpecial(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		if got := Special(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
	f("127.0.0.1", "loopback")
	f("127.255.255.254", "loopback")
	f("::1", "loopback")
	f("::ffff:127.0.0.1", "loopback")
	f("0.0.0.0", "unspecified")
	f("0.1.2.3", "unspecified")
	f("::", "unspecified")
	f("169.254.0.1", "link-local")
	f("169.254.169.254", "cloud metadata")
	f("::ffff:169.254.169.254", "cloud metadata")
	f("169.254.170.2", "cloud metadata")
	f("fd00:ec2::254", "cloud metadata")
	f("fd20:ce::254", "cloud metadata")
	f("fd00:ec2::23", "cloud metadata")
	f("fd00:c1::a9fe:a9fe", "cloud metadata")
	f("fd00:42::42", "cloud metadata")
	f("100.100.100.200", "cloud metadata")
	f("168.63.129.16", "cloud metadata")
	f("192.0.0.192", "cloud metadata")
	f("fe80::1%eth0", "link-local")
	f("febf::1", "link-local")
	f("224.0.0.1", "multicast")
	f("239.255.255.255", "multicast")
	f("ff02::1%eth0", "multicast")
	f("240.0.0.1", "reserved")
	f("255.255.255.255", "broadcast")
	f("10.0.0.7", "")
	f("172.16.0.1", "")
	f("192.168.1.1", "")
	f("100.64.0.1", "")
	f("128.0.0.1", "")
	f("223.255.255.255", "")
	f("fd00:ec2::253", "")
	f("fec0::1", "")
	f("2001:db8::7", "")
}

func TestCarried(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		got := "none"
		if inner, ok := Carried(netip.MustParseAddr(addr)); ok {
			got = inner.String()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	f("64:ff9b::169.254.169.254", "169.254.169.254")
	f("64:ff9b::7f00:1%eth0", "127.0.0.1")
	f("64:ff9b:1::7f00:1", "127.0.0.1")
	f("2002:7f00:1::9", "127.0.0.1")
	f("2002:a9fe:a9fe::", "169.254.169.254")
	f("::ffff:0:127.0.0.1", "127.0.0.1")
	f("::7f00:1", "127.0.0.1")
	f("::1", "none")
	f("::", "none")
	f("127.0.0.1", "none")
	f("::ffff:127.0.0.1", "none")
	f("2001:db8::7f00:1", "none")
}

func TestCheck(t *testing.T) {
	f := func(p Policy, addr, why string) {
		t.Helper()
		target, withPort := netip.ParseAddrPort(addr)
		if withPort != nil {
			target = netip.AddrPortFrom(netip.MustParseAddr(addr), 80)
		}
		err := p.Check(target)
		switch {
		case why == "" && err != nil:
			t.Errorf("%+v %s: %v", p, addr, err)
		case why != "" && (!errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "("+why+")")):
			t.Errorf("%+v %s: got %v, want denied as %q", p, addr, err, why)
		}
	}
	f(Policy{}, "127.0.0.1", "")
	f(Policy{}, "169.254.169.254", "")
	f(Prober(false), "127.0.0.1", "loopback")
	f(Prober(false), "::ffff:127.0.0.1", "loopback")
	f(Prober(false), "64:ff9b::7f00:1", "loopback")
	f(Prober(false), "0.0.0.0", "unspecified")
	f(Prober(false), "::", "unspecified")
	f(Prober(false), "10.0.0.7", "")
	f(Prober(false), "64:ff9b::a00:7", "")
	f(Prober(true), "127.0.0.1", "")
	f(Prober(true), "::1", "")
	f(Prober(true), "64:ff9b::7f00:1", "")
	f(Prober(true), "0.0.0.0", "unspecified")
	f(Prober(true), "169.254.169.254", "cloud metadata")
	f(Prober(true), "64:ff9b::a9fe:a9fe", "cloud metadata")
	f(Prober(true), "2002:a9fe:a9fe::1", "cloud metadata")
	f(Agent(), "127.0.0.1", "")
	f(Agent(), "10.0.0.7", "")
	f(Agent(), "169.254.169.254", "cloud metadata")
	f(Agent(), "fe80::1%eth0", "link-local")
	f(Agent(), "224.0.0.1", "multicast")

	own := Policy{DenySpecial: true, AllowLoopback: true, Deny: list(t, "10.1.0.0/16,127.0.0.2,fe80::/10,:22,[fd00::/8]:1-1023")}
	f(own, "10.1.2.3", "on the deny list: 10.1.0.0/16")
	f(own, "::ffff:10.1.2.3", "on the deny list: 10.1.0.0/16")
	f(own, "64:ff9b::10.1.2.3", "on the deny list: 10.1.0.0/16")
	f(own, "127.0.0.2", "on the deny list: 127.0.0.2")
	f(own, "fe80::1%eth0", "on the deny list: fe80::/10")
	f(own, "10.2.0.1", "")
	f(own, "10.2.0.1:22", "on the deny list: :22")
	f(own, "[fd00::1]:22", "on the deny list: :22")
	f(own, "[fd00::1]:1023", "on the deny list: [fd00::/8]:1-1023")
	f(own, "[fd00::1]:1024", "")

	only := Policy{DenySpecial: true, Allow: list(t, "10.0.0.0/8:8000-9000,127.0.0.1,169.254.169.254"), Deny: list(t, "10.9.0.0/16")}
	const not = "not on the allow list: 10.0.0.0/8:8000-9000,127.0.0.1,169.254.169.254"
	f(only, "10.0.0.7:8000", "")
	f(only, "10.0.0.7:9000", "")
	f(only, "[::ffff:10.0.0.7]:9000", "")
	f(only, "10.0.0.7:7999", not)
	f(only, "10.0.0.7:9001", not)
	f(only, "192.168.0.1:8080", not)
	f(only, "10.9.0.1:8080", "on the deny list: 10.9.0.0/16")
	f(only, "127.0.0.1:8080", "loopback")
	f(only, "169.254.169.254:80", "cloud metadata")
	f(only, "[64:ff9b::10.0.0.7]:8080", not)

	const ours = "a port of this program or of its registry"
	mine := Policy{Own: func(target netip.AddrPort) bool { return Listens("127.0.0.1:8848", target) }}
	f(mine, "127.0.0.1:8848", ours)
	f(mine, "[::ffff:127.0.0.1]:8848", ours)
	f(mine, "[64:ff9b::127.0.0.1]:8848", ours)
	f(mine, "127.0.0.1:8849", "")
	f(mine, "127.0.0.2:8848", "")
}

func list(t *testing.T, text string) List {
	t.Helper()
	var l List
	if err := l.Set(text); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestListens(t *testing.T) {
	f := func(bound, target string, want bool) {
		t.Helper()
		if got := Listens(bound, netip.MustParseAddrPort(target)); got != want {
			t.Errorf("%s on %s: %v", target, bound, got)
		}
	}
	f("", "127.0.0.1:80", false)
	f("[::]:80", "127.0.0.1:80", true)
	f("[::]:80", "[::1]:80", true)
	f("0.0.0.0:80", "127.9.9.9:80", true)
	f("0.0.0.0:80", "0.0.0.0:80", true)
	f("0.0.0.0:80", "127.0.0.1:81", false)
	f("0.0.0.0:80", "192.0.2.7:80", false)
	f("[::1]:80", "[::1]:80", true)
	f("[::1]:80", "127.0.0.1:80", false)
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		addr, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		f("[::]:80", netip.AddrPortFrom(addr.Unmap(), 80).String(), true)
	}
}

func TestParseRange(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		r, err := ParseRange(text)
		if got := r.String(); err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", text, got, err, want)
		}
	}
	f("10.0.0.0/8", "10.0.0.0/8")
	f("10.1.2.3", "10.1.2.3")
	f("10.1.2.3/32", "10.1.2.3")
	f("10.0.0.0/8:22", "10.0.0.0/8:22")
	f("10.0.0.0/8:1-1023", "10.0.0.0/8:1-1023")
	f("10.0.0.0/8:1-65535", "10.0.0.0/8:1-65535")
	f("fd00::/8", "fd00::/8")
	f("[fd00::/8]", "fd00::/8")
	f("[fd00::/8]:22", "[fd00::/8]:22")
	f("::1", "::1")
	f("[::1]:22", "[::1]:22")
	f("::ffff:10.1.2.3", "10.1.2.3")
	f(":22", ":22")
	f(":1-9", ":1-9")
	f("0.0.0.0/0", "0.0.0.0/0")

	g := func(text, why string) {
		t.Helper()
		if _, err := ParseRange(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %v, want %s", text, err, why)
		}
	}
	g("", "no address")
	g(":", "a port must be")
	g("10.0.0.1/8", "bits are set behind the prefix, 10.0.0.0/8 has none")
	g("10.0.0.0/33", "no address")
	g("10.0.0.0/8:", "a port must be")
	g("10.0.0.0/8:0", "a port must be")
	g("10.0.0.0/8:65536", "a port must be")
	g("10.0.0.0/8:9-1", "greater")
	g("10.0.0.0/8:1-2-3", "a port must be")
	g("::ffff:10.0.0.0/104", "write an IPv4 prefix as IPv4")
	g("[fd00::/8", "no address")
	g("[fd00::/8]22", "no address")
	g("[]:22", "no address")
	g("nacos.svc", "no address")
	g("\x1b[31m"+strings.Repeat("x", 200), `"\x1b[31mxxx`)

	var l List
	if err := l.Set(" , 10.0.0.0/8 ,,:22 "); err != nil || l.String() != "10.0.0.0/8,:22" {
		t.Errorf("%v %v", l, err)
	}
	if err := l.Set("nacos"); err == nil {
		t.Error("a name is taken")
	}
	if err := l.Set(strings.Repeat(":1,", mostRanges)); err != nil {
		t.Error(err)
	}
	if err := l.Set(strings.Repeat(":1,", mostRanges+1)); err == nil {
		t.Error("too many are taken")
	}
}

// FuzzParseRange: what is taken reads back as the same range.
func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8:1-1023", "[fd00::/8]:22", ":22", "::1", "[::", "1.2.3.4:", "::ffff:1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRange(text)
		if err != nil {
			return
		}
		again, err := ParseRange(r.String())
		if text == "" || err != nil || again != r {
			t.Fatalf("%q is %+v, its own text %q is %+v (%v)", text, r, r.String(), again, err)
		}
	})
}

func TestCheckOfNoAddress(t *testing.T) {
	if err := (Policy{}).Check(netip.AddrPort{}); !errors.Is(err, ErrDenied) {
		t.Errorf("got %v, want denied", err)
	}
}

// Whatever way an IPv4 address is written or wrapped, it is judged alike.
func TestWrappedAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v4 [4]byte
		copy(v4[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		policy := Prober(rapid.Bool().Draw(t, "loopback"))
		plain := netip.AddrFrom4(v4)
		nat64 := netip.MustParseAddr("64:ff9b::").As16()
		copy(nat64[12:], v4[:])
		sixToFour := netip.MustParseAddr("2002::1").As16()
		copy(sixToFour[2:], v4[:])
		want := policy.Check(netip.AddrPortFrom(plain, 80)) == nil
		for _, addr := range []netip.Addr{netip.AddrFrom16(plain.As16()), netip.AddrFrom16(nat64), netip.AddrFrom16(sixToFour)} {
			if got := policy.Check(netip.AddrPortFrom(addr, 80)) == nil; got != want {
				t.Fatalf("%s is allowed: %v, %s: %v", plain, want, addr, got)
			}
		}
	})
}
