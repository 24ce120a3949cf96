// Package netpolicy says which addresses may be contacted. It is asked after a
// name was resolved, with the very address that is then dialled, so that no
// second answer of a name server can change the verdict.
package netpolicy

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrDenied is wrapped by every refusal of Policy.Check.
var ErrDenied = errors.New("denied by network policy")

// Policy says which addresses may be contacted. The zero value allows every
// valid address.
type Policy struct {
	DenySpecial   bool           // refuses loopback, link-local, multicast, unspecified and reserved addresses, and cloud metadata services
	AllowLoopback bool           // with DenySpecial: loopback is allowed all the same
	Denied        []netip.Prefix // refused in addition, whatever else is set
}

// Prober is what a server-side prober may contact: it is told by its tenants
// where to go, so it goes nowhere that only the prober itself should reach.
func Prober(allowLoopback bool) Policy {
	return Policy{DenySpecial: true, AllowLoopback: allowLoopback}
}

// Check returns nil when addr may be contacted, else an error that says why and
// wraps ErrDenied. An IPv6 address that carries an IPv4 address (mapped,
// NAT64, 6to4) must pass both as what it is and as what it carries.
func (p Policy) Check(addr netip.Addr) error {
	if !addr.IsValid() {
		return fmt.Errorf("cannot contact an invalid address: %w", ErrDenied)
	}
	bare := addr.Unmap().WithZone("")
	forms := []netip.Addr{bare}
	if inner, ok := Carried(bare); ok {
		forms = append(forms, inner)
	}
	for _, form := range forms {
		if why := p.refusal(form); why != "" {
			return fmt.Errorf("cannot contact %s (%s): %w", addr, why, ErrDenied)
		}
	}
	return nil
}

func (p Policy) refusal(addr netip.Addr) string {
	for _, prefix := range p.Denied {
		if prefix.Contains(addr) {
			return "in " + prefix.String()
		}
	}
	if !p.DenySpecial || p.AllowLoopback && addr.IsLoopback() {
		return ""
	}
	return Special(addr)
}
