package registry

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// ticket is what a beat found on its way in. Its word may belong to another
// instance, or to none, by the time the beat is written down.
type ticket struct {
	word    *atomic.Uint64
	seen    word
	periods periods
}

// beat writes the beat down, unless the word is not what was seen or somebody
// has to be told of it.
func (t ticket) beat(now stamp) bool {
	return t.seen.healthy() &&
		t.word.CompareAndSwap(uint64(t.seen), uint64(t.seen.with(t.periods.due(now, true), true)))
}

var (
	publicBytes = []byte(DefaultNamespace)
	groupBytes  = []byte(DefaultGroup)
)

// Refresh is the beat of the wire: a light beat of an ephemeral instance that
// allocates nothing and keeps nothing of what it is given. Empty namespace and
// group stand for the defaults. The cluster plays no part, as in 2.x. interval
// is the pace that the instance should keep.
func (s *Store) Refresh(namespace, group, name, ip []byte, port uint16) (interval time.Duration, known bool) {
	if len(namespace) == 0 {
		namespace = publicBytes
	}
	if len(group) == 0 {
		group = groupBytes
	}
	h := s.shardOfBytes(namespace, name)
	for {
		t, found := h.ticket(namespace, group, name, ip, port)
		if !found {
			return s.pace(periods{}), false
		}
		if t.beat(s.clock.now()) {
			h.beats.Add(1)
			return s.pace(t.periods), true
		}
		if !t.seen.healthy() {
			return s.heal(Key{
				Service: Service{Namespace: string(namespace), Group: string(group), Name: string(name)},
				IP:      string(ip), Port: port, Ephemeral: true,
			})
		}
	}
}

// pace says how often an instance should beat: as it says itself, or else as
// the switch clientBeatInterval does.
func (s *Store) pace(p periods) time.Duration {
	ms := int64(p.interval)
	if ms == 0 {
		ms = min(max(s.switches.Load().ClientBeatInterval, 0), math.MaxInt64/int64(time.Millisecond))
	}
	return time.Duration(ms) * time.Millisecond
}

func (h *shard) ticket(namespace, group, name, ip []byte, port uint16) (t ticket, found bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[Service{Namespace: string(namespace), Group: string(group), Name: string(name)}]
	if v == nil || !v.ephemeral {
		return t, false
	}
	k := key{service: v.number, port: port}
	if k.ip, found = parseAddress(ip); !found {
		number, known := h.odd.numbers[string(ip)]
		if !known {
			return t, false
		}
		k.ip, k.flags = oddAddress(number), flagOdd
	}
	slot, found := h.index[k]
	if !found {
		return t, false
	}
	w := h.slots.word(slot)
	return ticket{w, word(w.Load()), h.periods.value(h.slots.record(slot).periods)}, true
}

// Beat is a light beat, like Refresh: ErrNotFound when no such ephemeral
// instance is known. The duration is the pace that the instance should keep.
func (s *Store) Beat(_ context.Context, i Instance) (time.Duration, error) {
	if i.Ephemeral {
		interval, known := s.Refresh([]byte(i.Namespace), []byte(i.Group), []byte(i.Name), []byte(i.IP), i.Port)
		if known {
			return interval, nil
		}
	}
	return s.pace(periods{}), fmt.Errorf("cannot beat %s: %w", i.Key, ErrNotFound)
}

// heal takes the beat of an instance that counts as unhealthy.
func (s *Store) heal(k Key) (interval time.Duration, known bool) {
	interval, healed, known := s.putHealed(k)
	if healed {
		s.tell(k.Service)
	}
	return interval, known
}

func (s *Store) putHealed(k Key) (interval time.Duration, healed, known bool) {
	now := s.clock.now()
	h := s.shard(k.Service)
	h.mu.Lock()
	defer h.mu.Unlock()
	v, slot, known := h.lookup(k)
	if !known {
		return s.pace(periods{}), false, false
	}
	h.beats.Add(1)
	r := h.slots.record(slot)
	p := h.periods.value(r.periods)
	healed = !h.slots.state(slot).healthy()
	h.setHealth(v, slot, p.due(now, true), true)
	if healed {
		r.revision = s.changes.Add(1)
	}
	return s.pace(p), healed, true
}
