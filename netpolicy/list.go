package netpolicy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Range is addresses with ports.
type Range struct {
	Prefix      netip.Prefix // masked; the zero value: every address
	First, Last uint16       // 0 and 65535: every port
}

// List is ranges as a setting gives them.
type List []Range

// mostRanges bounds a list: each is looked at before each question.
const mostRanges = 256

const ranges = "give addresses or CIDRs with or without a port or ports, as 10.0.0.0/8, 10.1.2.3:22, [fd00::/8]:1-1023 or :22"

// Set reads the list from a variable: separated by commas, blanks around each
// trimmed, empty ones dropped.
func (l *List) Set(value string) error {
	*l = nil
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		r, err := ParseRange(item)
		if err != nil {
			return err
		}
		if len(*l) == mostRanges {
			return fmt.Errorf("more than %d ranges", mostRanges)
		}
		*l = append(*l, r)
	}
	return nil
}

// String gives the ranges with a comma between them.
func (l List) String() string {
	all := make([]string, len(l))
	for i, r := range l {
		all[i] = r.String()
	}
	return strings.Join(all, ",")
}

func (l List) find(target netip.AddrPort) (Range, bool) {
	for _, r := range l {
		if r.Contains(target) {
			return r, true
		}
	}
	return Range{}, false
}

// ParseRange reads an address or a CIDR prefix with or without ports after a
// colon; IPv6 with ports stands in brackets. Ports alone hold for every
// address. Bits outside of the prefix are refused: who wrote 10.1.2.3/8 meant
// either 10.1.2.3 or 10.0.0.0/8.
func ParseRange(text string) (Range, error) {
	where, ports := split(text)
	r := Range{Last: 65535}
	var err error
	if ports != nil {
		if r.First, r.Last, err = parsePorts(*ports); err != nil {
			return Range{}, wrong(text, err)
		}
	}
	if where == "" && ports != nil {
		return r, nil
	}
	if r.Prefix, err = parsePrefix(where); err != nil {
		return Range{}, wrong(text, err)
	}
	return r, nil
}

func wrong(text string, why error) error {
	return fmt.Errorf("%q: %w; %s", text[:min(len(text), 64)], why, ranges)
}

// split cuts a text at the colon before the ports, nil when there is none.
func split(text string) (where string, ports *string) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		where, rest, closed := strings.Cut(inner, "]")
		switch after, colon := strings.CutPrefix(rest, ":"); {
		case closed && rest == "":
			return where, nil
		case closed && colon && where != "":
			return where, &after
		}
		return text, nil // which is no prefix
	}
	if where, after, ok := strings.Cut(text, ":"); ok && !strings.Contains(after, ":") {
		return where, &after
	}
	return text, nil
}

func parsePorts(text string) (first, last uint16, err error) {
	from, to, several := strings.Cut(text, "-")
	if !several {
		to = from
	}
	first, err = parsePort(from)
	if err == nil {
		last, err = parsePort(to)
	}
	if err == nil && first > last {
		err = errors.New("the first port is greater than the last")
	}
	return first, last, err
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("a port must be a number from 1 to 65535")
	}
	return uint16(n), nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if addr, one := netip.ParseAddr(text); one == nil {
		p, err = netip.PrefixFrom(addr.Unmap().WithZone(""), addr.Unmap().BitLen()), nil
	}
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("no address and no prefix")
	case p.Addr().Is4In6():
		return netip.Prefix{}, errors.New("write an IPv4 prefix as IPv4")
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("bits are set behind the prefix, %s has none", p.Masked())
	}
	return p, nil
}

// String gives the range as ParseRange reads it.
func (r Range) String() string {
	where := ""
	if r.Prefix.IsValid() {
		where = r.Prefix.String()
		if r.Prefix.IsSingleIP() {
			where = r.Prefix.Addr().String()
		}
	}
	if r.First == 0 && r.Last == 65535 {
		return where
	}
	if r.Prefix.Addr().Is6() {
		where = "[" + where + "]"
	}
	if r.First == r.Last {
		return fmt.Sprintf("%s:%d", where, r.First)
	}
	return fmt.Sprintf("%s:%d-%d", where, r.First, r.Last)
}

// Contains tells whether the range holds a target. It judges the address as it
// is written: Policy.Check looks behind the wrappings.
func (r Range) Contains(target netip.AddrPort) bool {
	return r.First <= target.Port() && target.Port() <= r.Last && (!r.Prefix.IsValid() || r.Prefix.Contains(target.Addr()))
}
