package registry

import (
	"net/netip"
)

// parseAddress reads an IPv4 or IPv6 address without allocating. It reports
// false for everything that is not exactly the canonical text of an address,
// so that text and bytes stand for each other without loss.
func parseAddress[T string | []byte](text T) (ip [16]byte, ok bool) {
	if len(text) < 2 || len(text) > 39 {
		return ip, false
	}
	if !readIPv4(text, &ip) && !readIPv6(text, &ip) {
		return ip, false
	}
	// Whatever the readers let pass too much falls out here.
	var buffer [48]byte
	return ip, string(appendAddress(buffer[:0], ip)) == string(text)
}

// appendAddress writes the canonical text.
func appendAddress(to []byte, ip [16]byte) []byte {
	return netip.AddrFrom16(ip).Unmap().AppendTo(to)
}

func readIPv4[T string | []byte](text T, ip *[16]byte) bool {
	*ip = [16]byte{10: 0xff, 11: 0xff}
	at, value, digits := 12, 0, 0
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= '0' && c <= '9' && digits < 3:
			value, digits = value*10+int(c-'0'), digits+1
		case c == '.' && digits > 0 && at < 15 && value < 256:
			ip[at] = byte(value)
			at, value, digits = at+1, 0, 0
		default:
			return false
		}
	}
	ip[at&15] = byte(value)
	return at == 15 && digits > 0 && value < 256
}

func readIPv6[T string | []byte](text T, ip *[16]byte) bool {
	*ip = [16]byte{}
	var groups [8]uint16
	n, gap, digits := 0, -1, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if v, ok := hexDigit(c); ok && digits < 4 && n < 8 {
			groups[n], digits = groups[n]<<4|uint16(v), digits+1
			continue
		}
		if c != ':' || n >= 8 {
			return false
		}
		if digits > 0 {
			n, digits = n+1, 0
		}
		if i+1 < len(text) && text[i+1] == ':' {
			if gap >= 0 {
				return false
			}
			gap, i = n, i+1
		}
	}
	if digits > 0 {
		n++
	}
	return placeGroups(groups[:n], gap, ip)
}

// placeGroups writes the groups around the gap that "::" stands for; -1: none.
func placeGroups(groups []uint16, gap int, ip *[16]byte) bool {
	if gap < 0 && len(groups) != 8 {
		return false
	}
	for i, g := range groups {
		at := i
		if gap >= 0 && i >= gap {
			at = i + 8 - len(groups)
		}
		ip[2*at], ip[2*at+1] = byte(g>>8), byte(g)
	}
	return true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
