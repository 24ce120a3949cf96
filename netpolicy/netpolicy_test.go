package netpolicy

import (
	"errors"
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
		err := p.Check(netip.MustParseAddr(addr))
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
	own := Policy{DenySpecial: true, AllowLoopback: true, Denied: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("fe80::/10")}}
	f(own, "10.1.2.3", "in 10.1.0.0/16")
	f(own, "::ffff:10.1.2.3", "in 10.1.0.0/16")
	f(own, "64:ff9b::10.1.2.3", "in 10.1.0.0/16")
	f(own, "127.0.0.2", "in 127.0.0.2/32")
	f(own, "fe80::1%eth0", "in fe80::/10")
	f(own, "10.2.0.1", "")
}

func TestCheckOfNoAddress(t *testing.T) {
	if err := (Policy{}).Check(netip.Addr{}); !errors.Is(err, ErrDenied) {
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
		want := policy.Check(plain) == nil
		for _, addr := range []netip.Addr{netip.AddrFrom16(plain.As16()), netip.AddrFrom16(nat64), netip.AddrFrom16(sixToFour)} {
			if got := policy.Check(addr) == nil; got != want {
				t.Fatalf("%s is allowed: %v, %s: %v", plain, want, addr, got)
			}
		}
	})
}
