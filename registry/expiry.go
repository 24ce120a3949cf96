package registry

import "slices"

// expireBatch is how many instances expire under one hold of a shard's lock,
// so that beats get in between when very many do.
const expireBatch = 256

// sweep lets silence have its consequences. It looks at one word per instance
// and touches nothing else of those that beat.
func (s *Store) sweep() {
	s.clock.tick()
	now := s.clock.now()
	enabled := s.switches.Load().HealthCheckEnabled
	var overdue []uint32
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		overdue = h.slots.overdue(now, overdue[:0])
		if !enabled {
			overdue = slices.DeleteFunc(overdue, func(slot uint32) bool { return h.spared(slot, now) })
		}
		h.mu.RUnlock()
		for batch := range slices.Chunk(overdue, expireBatch) {
			s.tell(s.expire(h, batch, now)...)
		}
	}
}

// spared tells whether an instance stays as it is while the switch check is
// off: until it has been silent for ClientTimeout, or longer if it says so.
func (h *shard) spared(slot uint32, now stamp) bool {
	state, p := h.slots.state(slot), h.periods.value(h.slots.record(slot).periods)
	longest := max(stamp(ClientTimeout.Milliseconds()), stamp(p.expire))
	return now-p.last(state.due(), state.healthy()) <= longest
}

// expire marks and deletes those of the slots that are still overdue, and gives
// the services that changed by it.
func (s *Store) expire(h *shard, overdue []uint32, now stamp) (changed []Service) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, slot := range overdue {
		v := h.numbered[h.slots.record(slot).service]
		state := h.slots.state(slot)
		if state.due() >= now || state.healthy() && !s.markSilent(h, v, slot, state) {
			continue
		}
		if n := len(changed); n == 0 || changed[n-1] != v.name {
			changed = append(changed, v.name)
		}
		if h.slots.state(slot).due() < now {
			h.remove(v, slot, now)
			s.expiries.Add(1)
		}
	}
	return changed
}

// markSilent makes an instance unhealthy, unless a beat comes in between.
func (s *Store) markSilent(h *shard, v *service, slot uint32, state word) bool {
	r := h.slots.record(slot)
	p := h.periods.value(r.periods)
	next := state.with(p.due(p.last(state.due(), true), false), false)
	if !h.slots.word(slot).CompareAndSwap(uint64(state), uint64(next)) {
		return false
	}
	h.unhealthy++
	v.unhealthy++
	r.revision = s.changes.Add(1)
	return true
}
