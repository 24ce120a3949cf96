package netpolicy

import "net/netip"

type named struct {
	prefix netip.Prefix
	name   string
}

// special is looked through in order: the most telling name stands first.
var special = []named{
	// Addresses at which clouds hand out credentials to whoever asks:
	// AWS, GCP, Azure and others; AWS tasks; over IPv6 AWS, GCP, AWS pods,
	// Oracle, Scaleway;
	// Alibaba; Azure's host channel; Oracle.
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.2/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:42::42/128"), "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	// RFC 1122, 3.2.1.3: "this host"; Linux connects 0.0.0.0 and :: to loopback.
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"}, // RFC 1112, section 4
}

// Special says what makes addr one that no stranger's word should lead to:
// "loopback", "link-local", "multicast", "unspecified", "broadcast",
// "reserved" or "cloud metadata". It is "" for every other address.
func Special(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.name
		}
	}
	return ""
}

// carriers hold an IPv4 address in four of their bytes, from the given one on.
var carriers = []struct {
	prefix netip.Prefix
	from   int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // local NAT64, RFC 8215; as /96, which is what translators use
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4, RFC 3056
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // translated, RFC 2765
	{netip.MustParsePrefix("::/96"), 12},           // compatible, RFC 4291; :: and ::1 are themselves
}

// Carried gives the IPv4 address inside an IPv6 address that a translator or a
// tunnel on the way would unpack, so that 64:ff9b::7f00:1 is seen as 127.0.0.1.
func Carried(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() || addr.Is4In6() || addr.IsUnspecified() || addr.IsLoopback() {
		return netip.Addr{}, false
	}
	addr = addr.WithZone("")
	for _, c := range carriers {
		if c.prefix.Contains(addr) {
			bytes := addr.As16()
			return netip.AddrFrom4([4]byte(bytes[c.from : c.from+4])), true
		}
	}
	return netip.Addr{}, false
}
