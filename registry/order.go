package registry

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// position finds where an instance stands, or would stand, among those of its
// service: real addresses first, by number, then odd ones by text, then by port.
func (h *shard) position(v *service, ip string, port uint16) (at int, found bool) {
	want, real := parseAddress(ip)
	return slices.BinarySearchFunc(v.slots, struct{}{}, func(slot uint32, _ struct{}) int {
		r := h.slots.record(slot)
		return cmp.Or(h.compareAddress(r, want, ip, real), cmp.Compare(r.port, port))
	})
}

func (h *shard) compareAddress(r *record, ip [16]byte, text string, real bool) int {
	switch odd := r.flags&flagOdd != 0; {
	case odd && real:
		return 1
	case !odd && !real:
		return -1
	case real:
		return bytes.Compare(r.ip[:], ip[:])
	}
	return strings.Compare(h.odd.value(oddNumber(r.ip)), text)
}
