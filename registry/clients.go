package registry

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// Client is who publishes over HTTP, as Nacos 2.x sees it: one for each address,
// port and kind, whatever it publishes.
type Client struct {
	IP        string
	Port      uint16
	Ephemeral bool
}

// String gives ip:port#ephemeral, the id that Nacos gives such a client
// (com.alibaba.nacos.naming.core.v2.client.impl.IpPortBasedClient).
func (c Client) String() string {
	return c.IP + ":" + strconv.Itoa(int(c.Port)) + "#" + strconv.FormatBool(c.Ephemeral)
}

// Client gives the client that publishes the instance.
func (k Key) Client() Client { return Client{k.IP, k.Port, k.Ephemeral} }

// Clients lists the clients that publish something, by address. It looks at
// every instance.
func (s *Store) Clients() []Client {
	found := map[Client]struct{}{}
	for i := range s.shards {
		s.shards[i].clients(found)
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port), cmp.Compare(a.String(), b.String()))
	})
}

func (h *shard) clients(found map[Client]struct{}) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, v := range h.services {
		for _, slot := range v.slots {
			r := h.slots.record(slot)
			found[Client{h.ip(r), r.port, v.ephemeral}] = struct{}{}
		}
	}
}

// CountClients counts the clients of either kind. It looks at every instance.
func (s *Store) CountClients() (ephemeral, persistent int) {
	type place struct {
		ip    string // of an odd address
		bytes [16]byte
		port  uint16
		flags flags
	}
	found := map[place]struct{}{}
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		for k := range h.index {
			at := place{"", k.ip, k.port, k.flags}
			if k.flags&flagOdd != 0 {
				at.ip, at.bytes = h.odd.value(oddNumber(k.ip)), [16]byte{}
			}
			found[at] = struct{}{}
		}
		h.mu.RUnlock()
	}
	for at := range found {
		if at.flags&flagPersists != 0 {
			persistent++
		}
	}
	return len(found) - persistent, persistent
}

// Published lists what a client publishes, by service: the true state with the
// overlays applied. The metadata maps are shared and must not be changed.
func (s *Store) Published(c Client) []Instance {
	var found []Instance
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		for _, v := range h.services {
			if v.ephemeral != c.Ephemeral {
				continue
			}
			if slot, ok := h.find(v, c.IP, c.Port); ok {
				found = append(found, h.instance(v, slot, memo{}))
			}
		}
		h.mu.RUnlock()
	}
	slices.SortFunc(found, func(a, b Instance) int { return a.Service.Compare(b.Service) })
	return found
}
