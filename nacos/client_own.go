package nacos

import (
	"net/netip"
	"slices"
)

// mostAddrs of one registry are remembered, the latest ones.
const mostAddrs = 8

// ownOffsets lead from the port of a Nacos server to its other ones: the gRPC
// ports of clients and of the cluster (Constants.SDK_GRPC_PORT_DEFAULT_OFFSET,
// CLUSTER_GRPC_PORT_DEFAULT_OFFSET), and that of JRaft
// (JRaftServer, cluster.conf: port - 1000).
var ownOffsets = []int{0, 1000, 1001, -1000}

// Serves tells whether target is a port of a registry of the list, at an
// address where one was reached or that the list itself gives. No question of
// a prober or an agent has to go there.
func (c *Client) Serves(target netip.AddrPort) bool { return c.pool.serves(target) }

func (p *pool) serves(target netip.AddrPort) bool {
	addr := target.Addr().Unmap().WithZone("")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		if slices.Contains(ownOffsets, int(target.Port())-int(s.port)) && slices.Contains(s.addrs, addr) {
			return true
		}
	}
	return false
}

// reached notes where a connection to endpoint led.
func (p *pool) reached(endpoint, remote string) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return // no network as the kernel knows it
	}
	addr := at.Addr().Unmap().WithZone("")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		if s.endpoint() == endpoint && !slices.Contains(s.addrs, addr) {
			s.addrs = append(s.addrs[max(0, len(s.addrs)+1-mostAddrs):], addr)
		}
	}
}
