//go:build !linux

package check

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// connect asks whether somebody listens on the address. Only Linux knows
// half-open connections: elsewhere the application sees a short connection.
func connect(ctx context.Context, address netip.AddrPort, _ bool) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// abortive changes nothing: only on Linux is it known to help.
func abortive(_, _ string, _ syscall.RawConn) error { return nil }
