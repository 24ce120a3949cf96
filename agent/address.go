package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// splitAddress reads :8080, 10.0.0.7:8080 or [2001:db8::7]:8080.
func splitAddress(address string, loopback bool) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errors.New("give :8080, 10.0.0.7:8080 or [2001:db8::7]:8080")
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return "", 0, fmt.Errorf("the port %q must be a number from 1 to 65535", text)
	}
	if host == "" {
		return "", uint16(number), nil
	}
	ip, err := usable(host, loopback)
	if err != nil {
		return "", 0, err
	}
	return ip.String(), uint16(number), nil
}

// usable refuses what no consumer elsewhere could call.
func usable(text string, loopback bool) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return ip, errors.New("it is no IP address; consumers are given addresses, not names")
	}
	ip = ip.Unmap()
	return ip, refuse(ip, loopback)
}

func refuse(ip netip.Addr, loopback bool) error {
	switch {
	case ip.Zone() != "":
		return errors.New("an address with a zone means nothing on another machine")
	case ip.IsUnspecified():
		return errors.New("it stands for all addresses; give the one that consumers shall call, or only the port")
	case ip.IsLoopback() && !loopback:
		return errors.New("consumers on other machines would call themselves; set SIDEBEAT_ALLOW_LOOPBACK=true if all of them are on this one")
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errors.New("it is no address of one machine")
	case ip.IsLinkLocalUnicast():
		return errors.New("a link-local address cannot be called through a router")
	}
	return nil
}

// finder finds the address to register when none was given.
type finder struct {
	podIP    string
	loopback bool
	// route gives our address on the way to the registry.
	route func(context.Context) (netip.Addr, error)
	// outside gives our address on the way to anywhere.
	outside func(context.Context) (netip.Addr, error)
}

// find takes POD_IP, else the source address of the route to the registry, or
// of the default route when the registry is on this machine.
func (f finder) find(ctx context.Context) (string, error) {
	if f.podIP != "" {
		ip, err := usable(f.podIP, f.loopback)
		return ip.String(), err
	}
	ip, err := f.route(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot find the own address on the way to the registry: %w", err)
	}
	if ip = ip.Unmap(); ip.IsLoopback() {
		ip = f.beyond(ctx, ip)
	}
	if ip = ip.WithZone(""); ip.IsLoopback() && !f.loopback {
		return "", errors.New("cannot find an own address: the registry is on this machine and no route leads out of it; give the IP in SIDEBEAT_ADDRESS or POD_IP, or set SIDEBEAT_ALLOW_LOOPBACK=true")
	}
	if err := refuse(ip, f.loopback); err != nil {
		return "", fmt.Errorf("cannot register %s, the own address on the way to the registry: %w; give the IP in SIDEBEAT_ADDRESS or POD_IP", ip, err)
	}
	return ip.String(), nil
}

func (f finder) beyond(ctx context.Context, loopback netip.Addr) netip.Addr {
	if ip, err := f.outside(ctx); err == nil && refuse(ip.Unmap(), false) == nil {
		return ip.Unmap()
	}
	return loopback
}

// Addresses set aside for documentation (RFC 5737, RFC 3849): always routed by
// the default route. Nothing is sent, connecting a UDP socket only asks the
// kernel for its route.
var elsewhere = []string{"192.0.2.1:9", "[2001:db8::1]:9"}

func outside(ctx context.Context) (netip.Addr, error) {
	var faults []error
	for _, target := range elsewhere {
		conn, err := new(net.Dialer).DialContext(ctx, "udp", target)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		at, err := netip.ParseAddrPort(conn.LocalAddr().String())
		conn.Close()
		if err == nil {
			return at.Addr(), nil
		}
		faults = append(faults, err)
	}
	return netip.Addr{}, errors.Join(faults...)
}
