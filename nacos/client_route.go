package nacos

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/sidebeat/sidebeat/registry"
)

// farAway are addresses that only a default route leads to: the ranges for
// documentation (RFC 5737, RFC 3849).
var farAway = []string{"192.0.2.1:9", "[2001:db8::1]:9"}

// Route gives the local address that packets towards the first registry leave
// from, or, when that one is reached over loopback, those towards the rest of
// the world. Nothing is sent.
func (c *Client) Route(ctx context.Context) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, c.budget)
	defer cancel()
	first := c.pool.servers[0]
	what := task{what: "find the route to", on: first.base}
	local, err := c.source(ctx, first.endpoint())
	if err != nil {
		return netip.Addr{}, what.failed(err)
	}
	if !local.IsLoopback() {
		return local, nil
	}
	for _, far := range farAway {
		local, err = c.source(ctx, far)
		if err == nil && !local.IsLoopback() {
			return local, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s is a loopback address too", local)
	}
	return netip.Addr{}, what.failed(&failure{
		word: registry.ErrUnavailable, cause: err,
		text: fmt.Sprintf("it is on loopback, and there is no default route: %v", err),
	})
}

// source gives the address a datagram to endpoint would carry: connecting a UDP
// socket asks the kernel for the route and sends nothing.
func (c *Client) source(ctx context.Context, endpoint string) (netip.Addr, error) {
	conn, err := c.dial(ctx, "udp", endpoint)
	if err != nil {
		return netip.Addr{}, &failure{word: registry.ErrUnavailable, cause: err, text: err.Error()}
	}
	defer conn.Close()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return local.Addr().Unmap(), err
}
