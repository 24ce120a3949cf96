package registry

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAddress(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		ip, ok := parseAddress(text)
		if ok != want {
			t.Errorf("%q: got %v, want %v", text, ok, want)
		}
		if ok && string(appendAddress(nil, ip)) != text {
			t.Errorf("%q came back as %q", text, appendAddress(nil, ip))
		}
	}
	f("10.0.0.7", true)
	f("255.255.255.255", true)
	f("0.0.0.0", true)
	f("::", true)
	f("::1", true)
	f("2001:db8::7", true)
	f("fe80::1:2:3:4", true)
	f("1:2:3:4:5:6:7:8", true)
	f("10.0.0", false)
	f("999.0.0.1", false)
	f("10.0.0.07", false)
	f("10.0.0.7.", false)
	f("10.0.0.7.1", false)
	f(".10.0.0.7", false)
	f("2001:DB8::7", false) // another text than 2001:db8::7, so another instance
	f("2001:db8:0:0:0:0:0:7", false)
	f("::ffff:10.0.0.7", false)
	f("::ffff:a00:7", false)
	f("fe80::1%eth0", false)
	f("1:2:3:4:5:6:7:8:9", false)
	f("1::2::3", false)
	f(":1", false)
	f("1:", false)
	f(":::", false)
	f("web-1.example.org", false)
	f("", false)
}

// Every canonical address is read, and as the bytes that net/netip reads.
func TestParseAddressReadsAllCanonicalTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 7, 0x10, 0xab, 0xff}), 16, 16).Draw(t, "bytes")
		address := netip.AddrFrom16([16]byte(bytes)).Unmap()
		if rapid.Bool().Draw(t, "v4") {
			address = netip.AddrFrom4([4]byte(bytes[:4]))
		}
		ip, ok := parseAddress(address.String())
		if !ok || ip != address.As16() {
			t.Fatalf("%v: got %v %v", address, ip, ok)
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"10.0.0.7", "::1", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1::", "fe80::1%a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ip, ok := parseAddress(text)
		address, err := netip.ParseAddr(text)
		canonical := err == nil && address.String() == text && address.Zone() == "" && !address.Is4In6()
		if ok != canonical || ok && ip != address.As16() {
			t.Fatalf("%q: got %v %v, net/netip reads %v %v", text, ip, ok, address, err)
		}
		if fromBytes, same := parseAddress([]byte(text)); same != ok || fromBytes != ip {
			t.Fatalf("%q: bytes and string differ", text)
		}
	})
}
