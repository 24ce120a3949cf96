package registry

import (
	"slices"
	"sync"
	"sync/atomic"
)

// shard holds a part of the services with all that belongs to them, behind one
// lock.
type shard struct {
	mu       sync.RWMutex
	services map[Service]*service
	numbered []*service // by service.number; nil: free
	numbers  []uint32   // free ones
	index    map[key]uint32
	slots    slots
	odd      interner[string] // addresses that are none: host names and worse
	clusters interner[string]
	metadata interner[string] // encoded by appendMetadata
	periods  interner[periods]
	claims   map[Service]int       // persistent registrations on their way through the log
	idle     map[*service]struct{} // empty, or with an overlay whose instance is gone

	ephemeral int // instances
	unhealthy int // instances of both kinds
	beats     atomic.Uint64
	versions  atomic.Uint64 // given to services as they come and change
	_         [64]byte      // keeps beats of two shards off one cache line
}

// service is one service with its instances.
type service struct {
	name      Service
	number    uint32
	unhealthy int32
	ephemeral bool
	slots     []uint32 // ordered by address and port
	idleSince stamp    // when it became empty, or was last changed while it was
	revision  uint64   // of its last durable change
	version   atomic.Uint64
	config    *config // nil: nobody made metadata for it
	overlays  map[place]*overlay
}

// config is the metadata of a service and its clusters.
type config struct {
	threshold float64
	metadata  string // encoded
	selector  string
	clusters  map[string]clusterConfig
	keep      bool // metadata says so by KeyKeep
}

// keeps tells whether silence has no consequence before ClientTimeout.
func (g *config) keeps() bool { return g != nil && g.keep }

// readKeep notes what the metadata says.
func (g *config) readKeep() { g.keep = truth(mustMetadata(g.metadata)[KeyKeep]) }

type clusterConfig struct {
	checker  Checker
	metadata string // encoded
}

// durable tells whether the log knows of the service.
func (v *service) durable() bool {
	return !v.ephemeral || v.config != nil || len(v.overlays) > 0
}

// place is where an overlay lies; like Nacos by ip, port and cluster
// (com.alibaba.nacos.naming.core.v2.pojo.InstancePublishInfo.genMetadataId).
type place struct {
	ip, cluster string
	port        uint16
}

// addService makes a service, and lets it be found by name.
func (s *Store) addService(h *shard, name Service, ephemeral bool, now stamp) *service {
	v := h.addService(name, ephemeral, now)
	s.names.note(v.name, 1)
	return v
}

func (s *Store) removeService(h *shard, v *service) {
	h.removeService(v)
	s.names.note(v.name, -1)
}

func (h *shard) addService(name Service, ephemeral bool, now stamp) *service {
	v := &service{name: shared(name), ephemeral: ephemeral, idleSince: now}
	v.version.Store(h.versions.Add(1))
	if last := len(h.numbers) - 1; last >= 0 {
		v.number, h.numbers = h.numbers[last], h.numbers[:last]
		h.numbered[v.number] = v
	} else {
		v.number, h.numbered = uint32(len(h.numbered)), append(h.numbered, v)
	}
	if h.services == nil {
		h.services, h.index = map[Service]*service{}, map[key]uint32{}
		h.idle = map[*service]struct{}{}
	}
	h.services[v.name] = v
	h.idle[v] = struct{}{}
	return v
}

// removeService forgets a service and all that belongs to it.
func (h *shard) removeService(v *service) {
	for len(v.slots) > 0 {
		h.remove(v, v.slots[len(v.slots)-1], 0)
	}
	delete(h.services, v.name)
	delete(h.idle, v)
	h.numbered[v.number] = nil
	h.numbers = append(h.numbers, v.number)
}

// shared saves the memory of the names that nearly every service has.
func shared(name Service) Service {
	if name.Namespace == DefaultNamespace {
		name.Namespace = DefaultNamespace
	}
	if name.Group == DefaultGroup {
		name.Group = DefaultGroup
	}
	return name
}

// locate forms the key of an instance; false: its address is an odd text that
// nobody here has.
func (h *shard) locate(v *service, ip string, port uint16) (key, bool) {
	k := key{service: v.number, port: port}
	if !v.ephemeral {
		k.flags |= flagPersists
	}
	var known bool
	if k.ip, known = parseAddress(ip); known {
		return k, true
	}
	number, known := h.odd.find(ip)
	k.ip, k.flags = oddAddress(number), k.flags|flagOdd
	return k, known
}

// oddAddress stands for a text that is no address. The flag in key and record
// keeps it apart from the real address with the same bytes.
func oddAddress(number uint32) [16]byte {
	return [16]byte{byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)}
}

func oddNumber(ip [16]byte) uint32 {
	return uint32(ip[0])<<24 | uint32(ip[1])<<16 | uint32(ip[2])<<8 | uint32(ip[3])
}

func (h *shard) find(v *service, ip string, port uint16) (slot uint32, ok bool) {
	k, ok := h.locate(v, ip, port)
	if !ok {
		return 0, false
	}
	slot, ok = h.index[k]
	return slot, ok
}

// insert makes room for a new instance of the service: a healthy one of which
// nothing is due.
func (h *shard) insert(v *service, ip string, port uint16) uint32 {
	k, _ := h.locate(v, ip, port)
	if k.flags&flagOdd != 0 {
		k.ip = oddAddress(h.odd.take(ip))
	}
	slot := h.slots.take()
	*h.slots.record(slot) = record{
		ip: k.ip, port: port, service: v.number, flags: k.flags,
		metadata: h.metadata.take(""), cluster: h.clusters.take(""), periods: h.periods.take(defaultPeriods),
	}
	h.index[k] = slot
	at, _ := h.position(v, ip, port)
	v.slots = slices.Insert(v.slots, at, slot)
	if v.ephemeral {
		h.ephemeral++
	}
	if len(v.overlays) == 0 {
		delete(h.idle, v)
	}
	return slot
}

// remove takes an instance out; an overlay of it stays behind.
func (h *shard) remove(v *service, slot uint32, now stamp) {
	r := h.slots.record(slot)
	ip := h.ip(r)
	h.detach(v, r, now)
	h.setHealth(v, slot, never, true)
	at, _ := h.position(v, ip, r.port)
	v.slots = slices.Delete(v.slots, at, at+1)
	delete(h.index, r.key())
	h.metadata.drop(r.metadata)
	h.clusters.drop(r.cluster)
	h.periods.drop(r.periods)
	if r.flags&flagOdd != 0 {
		h.odd.drop(oddNumber(r.ip))
	}
	h.slots.give(slot)
	if v.ephemeral {
		h.ephemeral--
	}
	if len(v.slots) == 0 {
		v.slots, v.idleSince = nil, now
		h.idle[v] = struct{}{}
	}
}

// setHealth sets what is due when, and the health, and counts.
func (h *shard) setHealth(v *service, slot uint32, due stamp, healthy bool) {
	switch was := h.slots.state(slot).healthy(); {
	case was && !healthy:
		h.unhealthy++
		v.unhealthy++
	case !was && healthy:
		h.unhealthy--
		v.unhealthy--
	}
	h.slots.set(slot, due, healthy)
}

// ip gives the text of an instance's address.
func (h *shard) ip(r *record) string {
	if r.flags&flagOdd != 0 {
		return h.odd.value(oddNumber(r.ip))
	}
	var buffer [48]byte
	return string(appendAddress(buffer[:0], r.ip))
}
