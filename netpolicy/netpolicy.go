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
var ErrDenied = errors.New("denied by Sidebeat itself")

// Policy says which addresses may be contacted. The zero value allows every
// valid address.
type Policy struct {
	DenySpecial   bool // refuses loopback, link-local, multicast, unspecified and reserved addresses, and cloud metadata services
	AllowLoopback bool // with DenySpecial: loopback is allowed all the same
	Allow         List // when there is one: nothing outside it is contacted; what is special stays refused
	Deny          List // refused whatever else is set

	// Own tells which addresses belong to the program itself or to its
	// registry: they are refused. It is asked by many goroutines.
	Own func(netip.AddrPort) bool
}

// Prober is what a server-side prober may contact: it is told by its tenants
// where to go, so it goes nowhere that only the prober itself should reach.
func Prober(allowLoopback bool) Policy {
	return Policy{DenySpecial: true, AllowLoopback: allowLoopback}
}

// Agent is what a sidecar may contact: its app, which lives on loopback.
func Agent() Policy { return Prober(true) }

// Check returns nil when target may be contacted, else an error that says why
// and wraps ErrDenied. An IPv6 address that carries an IPv4 address (mapped,
// NAT64, 6to4) must pass both as what it is and as what it carries.
func (p Policy) Check(target netip.AddrPort) error {
	addr := target.Addr()
	if !addr.IsValid() {
		return fmt.Errorf("cannot contact an invalid address: %w", ErrDenied)
	}
	bare := addr.Unmap().WithZone("")
	why := p.refusal(netip.AddrPortFrom(bare, target.Port()))
	if inner, ok := Carried(bare); ok && why == "" {
		why = p.refusal(netip.AddrPortFrom(inner, target.Port()))
	}
	if why != "" {
		return fmt.Errorf("cannot contact %s (%s): %w", addr, why, ErrDenied)
	}
	return nil
}

func (p Policy) refusal(target netip.AddrPort) string {
	if r, ok := p.Deny.find(target); ok {
		return "on the deny list: " + r.String()
	}
	if p.DenySpecial && !(p.AllowLoopback && target.Addr().IsLoopback()) {
		if why := Special(target.Addr()); why != "" {
			return why
		}
	}
	if _, ok := p.Allow.find(target); !ok && len(p.Allow) > 0 {
		return "not on the allow list: " + p.Allow.String()
	}
	if p.Own != nil && p.Own(target) {
		return "a port of this program or of its registry"
	}
	return ""
}
