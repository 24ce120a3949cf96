package check

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// maxAddresses of one name are tried at most.
const maxAddresses = 8

var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// each tries the addresses of host one after the other until one works, each
// within an equal share of the time that is left. The name is resolved once,
// and the very addresses the policy allowed are tried. When none works the
// answer says why.
func (a *Asker) each(ctx context.Context, start time.Time, host string, port uint16, try func(context.Context, netip.AddrPort) error) (Answer, bool) {
	if port == 0 {
		return Answer{Kind: Unknown, Reason: "cannot ask: no port given"}, false
	}
	addrs, err := a.resolve(ctx, host)
	if err != nil {
		return fault(ctx, start, err), false
	}
	var failed []Answer
	var tried []string
	for i, addr := range addrs {
		target := netip.AddrPortFrom(addr, port)
		if err := a.policy.Check(target); err != nil {
			failed = append(failed, fault(ctx, start, err))
			continue
		}
		err := share(ctx, len(addrs)-i, func(ctx context.Context) error { return try(ctx, target) })
		if err == nil {
			return Answer{}, true
		}
		failed = append(failed, fault(ctx, start, err))
		tried = append(tried, target.String())
	}
	answer := worst(failed)
	if len(tried) > 0 {
		answer.Reason = fmt.Sprintf("%s (%s)", answer.Reason, strings.Join(tried, ", "))
	}
	return answer, false
}

// share does something within the shares-th part of the time that is left.
func share(ctx context.Context, shares int, do func(context.Context) error) error {
	deadline, ok := ctx.Deadline()
	if !ok || shares == 1 {
		return do(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(shares))
	defer cancel()
	return do(ctx)
}

// reach connects to the first address of host that takes the connection.
func (a *Asker) reach(ctx context.Context, start time.Time, host string, port uint16) (conn net.Conn, answer Answer) {
	dialer := net.Dialer{KeepAlive: -1, Control: abortive}
	dialer.SetMultipathTCP(false)
	answer, _ = a.each(ctx, start, host, port, func(ctx context.Context, target netip.AddrPort) (err error) {
		conn, err = dialer.DialContext(ctx, "tcp", target.String())
		if plain, ok := conn.(*net.TCPConn); ok {
			plain.SetLinger(-1)
		}
		return err
	})
	return conn, answer
}

// resolve gives the addresses of host. The empty host and localhost (RFC 6761)
// are both loopback addresses, whatever a hosts file says: the app may listen
// on either.
func (a *Asker) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	bare := strings.TrimSuffix(host, ".")
	if bare == "" || bare == "localhost" || strings.HasSuffix(bare, ".localhost") {
		return loopback, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := a.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	return addrs[:min(len(addrs), maxAddresses)], nil
}

// half is when half of the time that is left is over, or the default is.
func half(ctx context.Context) time.Time {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Now().Add(defaultTimeout)
	}
	return time.Now().Add(time.Until(deadline) / 2)
}

// lookup asks the name servers, each for half of the time that is left: the
// first may be dead, or the datagram lost. It leaves nothing behind when ctx
// ends: the system's resolver would block a thread, and Go's waits for a silent
// server for 5 s more unless its connection is closed.
func (a *Asker) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := a.dialName(dialing, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		return netpolicy.Hurried(conn, half(ctx)), nil
	}}
	return resolver.LookupNetIP(ctx, "ip", host)
}
