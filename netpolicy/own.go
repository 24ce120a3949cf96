package netpolicy

import (
	"net"
	"net/netip"
)

// Listens tells whether a connection to target ends at a listener bound to the
// address bound, as ip:port. One bound to no address in particular takes what
// comes to any address of the machine; these are looked up only when the port
// is right.
func Listens(bound string, target netip.AddrPort) bool {
	at, err := netip.ParseAddrPort(bound)
	if err != nil || at.Port() != target.Port() {
		return false
	}
	own, addr := at.Addr().Unmap().WithZone(""), target.Addr().Unmap().WithZone("")
	if !own.IsUnspecified() {
		return own == addr
	}
	return addr.IsLoopback() || addr.IsUnspecified() || ofThisMachine(addr)
}

func ofThisMachine(addr netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // who cannot know whether it is himself does not go there
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(addr.AsSlice()) {
			return true
		}
	}
	return false
}
