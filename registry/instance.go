package registry

import (
	"context"
	"fmt"
)

// Register adds an instance or replaces what its client published before. An
// ephemeral one counts as heard of now. What an operator set stays.
func (s *Store) Register(ctx context.Context, i Instance) error { return s.register(ctx, i, false) }

// Mark is Register that never creates: ErrNotFound when unknown.
func (s *Store) Mark(ctx context.Context, i Instance) error { return s.register(ctx, i, true) }

func (s *Store) register(ctx context.Context, i Instance, mustExist bool) error {
	i.Key = i.Key.normal()
	if err := CheckInstance(i); err != nil {
		return err
	}
	register := s.registerPersistent
	if i.Ephemeral {
		register = s.registerEphemeral
	}
	if err := register(ctx, i, mustExist); err != nil {
		return err
	}
	s.sayOdd(i.Key, i.Metadata)
	return nil
}

func (s *Store) registerEphemeral(_ context.Context, i Instance, mustExist bool) error {
	encoded := encodeMetadata(i.Metadata)
	changed, err := s.putEphemeral(i, encoded, mustExist)
	if changed {
		s.tell(i.Service)
	}
	return err
}

func (s *Store) putEphemeral(i Instance, encoded string, mustExist bool) (changed bool, err error) {
	now := s.clock.now()
	h := s.shard(i.Service)
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.services[i.Service]
	if v != nil && !v.ephemeral || v == nil && h.claims[i.Service] > 0 {
		return false, conflict(i.Service, false)
	}
	slot, exists := uint32(0), false
	if v != nil {
		slot, exists = h.find(v, i.IP, i.Port)
	}
	if mustExist && !exists {
		return false, missing(i.Key, v != nil && len(v.slots) > 0)
	}
	if !exists {
		if err := s.roomFor(i.Service, v); err != nil {
			return false, err
		}
	}
	if v == nil {
		v = s.addService(h, i.Service, true, now)
	}
	if !exists {
		slot = h.insert(v, i.IP, i.Port)
	}
	if changed = h.publish(v, slot, i, encoded, now) || !exists; changed {
		h.slots.record(slot).revision = s.changes.Add(1)
	}
	return changed, nil
}

// publish puts what a client said of its instance into the slot and tells
// whether it differs from what was there.
func (h *shard) publish(v *service, slot uint32, i Instance, encoded string, now stamp) (changed bool) {
	r := h.slots.record(slot)
	changed = h.slots.state(slot).healthy() != i.Healthy || r.weight != i.Weight ||
		(r.flags&flagDisabled == 0) != i.Enabled || (r.flags&flagNoID != 0) != i.NoID ||
		h.metadata.value(r.metadata) != encoded || h.clusters.value(r.cluster) != i.Cluster
	r.weight = i.Weight
	r.flags &^= flagDisabled | flagNoID
	if !i.Enabled {
		r.flags |= flagDisabled
	}
	if i.NoID {
		r.flags |= flagNoID
	}
	h.swap(&r.metadata, encoded, &h.metadata)
	if h.clusters.value(r.cluster) != i.Cluster {
		h.detach(v, r, now)
		h.swap(&r.cluster, i.Cluster, &h.clusters)
	}
	o := v.overlays[place{i.IP, i.Cluster, i.Port}]
	if o != nil {
		o.attached = true
	}
	h.setPeriods(r, periodsOf(o.metadata(), i.Metadata, v.config.keeps()))
	due := never
	if v.ephemeral {
		due = h.periods.value(r.periods).due(now, i.Healthy)
	}
	h.setHealth(v, slot, due, i.Healthy)
	return changed
}

// detach starts the 60 s for which the overlay of an instance that left is kept.
func (h *shard) detach(v *service, r *record, now stamp) {
	if o := v.overlays[place{h.ip(r), h.clusters.value(r.cluster), r.port}]; o != nil {
		o.attached, o.since = false, now
		h.idle[v] = struct{}{}
	}
}

func (h *shard) swap(number *uint32, value string, in *interner[string]) {
	old := *number
	*number = in.take(value)
	in.drop(old)
}

func (h *shard) setPeriods(r *record, p periods) {
	old := r.periods
	r.periods = h.periods.take(p)
	h.periods.drop(old)
}

func (s *Store) registerPersistent(ctx context.Context, i Instance, mustExist bool) error {
	m := command{
		op: opRegister, weight: i.Weight, enabled: i.Enabled, healthy: i.Healthy, noID: i.NoID,
		metadata: encodeMetadata(i.Metadata), mustExist: mustExist,
	}.aim(i.Key)
	needless, err := s.claim(m)
	if err != nil || needless {
		return err
	}
	defer s.unclaim(i.Service)
	return s.submit(ctx, m)
}

// claim keeps ephemeral instances out of the service while a persistent one is
// on its way through the log. It tells when the command would change nothing;
// then, and with an error, nothing is claimed.
func (s *Store) claim(m command) (needless bool, err error) {
	h := s.shard(m.service)
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.services[m.service]
	if v != nil && v.ephemeral {
		return false, conflict(m.service, true)
	}
	slot, exists := uint32(0), false
	if v != nil {
		slot, exists = h.find(v, m.ip, m.port)
	}
	switch {
	case exists && h.publishes(slot, m):
		return true, nil
	case !exists && !m.mustExist:
		if err := s.roomFor(m.service, v); err != nil {
			return false, err
		}
	}
	h.claim(m.service)
	return false, nil
}

func (h *shard) claim(service Service) {
	if h.claims == nil {
		h.claims = map[Service]int{}
	}
	h.claims[service]++
}

func (s *Store) unclaim(service Service) {
	h := s.shard(service)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims[service]--; h.claims[service] == 0 {
		delete(h.claims, service)
	}
}

// publishes tells whether the slot already says what the command would make it
// say.
func (h *shard) publishes(slot uint32, m command) bool {
	r := h.slots.record(slot)
	return r.weight == m.weight && (r.flags&flagDisabled == 0) == m.enabled && (r.flags&flagNoID != 0) == m.noID &&
		h.slots.state(slot).healthy() == m.healthy &&
		h.metadata.value(r.metadata) == m.metadata && h.clusters.value(r.cluster) == m.cluster
}

// Deregister removes an instance; one that is unknown, or of the other kind, is
// no error. The cluster plays no part, as in 2.x.
func (s *Store) Deregister(ctx context.Context, k Key) error {
	k = k.normal()
	if k.Ephemeral {
		s.deregisterEphemeral(k)
		return nil
	}
	if !s.holds(k) {
		return nil
	}
	return s.submit(ctx, command{op: opDeregister}.aim(k))
}

func (s *Store) deregisterEphemeral(k Key) {
	if s.takeOut(k) {
		s.tell(k.Service)
	}
}

// takeOut removes an instance from memory.
func (s *Store) takeOut(k Key) bool {
	now := s.clock.now()
	h := s.shard(k.Service)
	h.mu.Lock()
	defer h.mu.Unlock()
	v, slot, ok := h.lookup(k)
	if ok {
		h.remove(v, slot, now)
	}
	return ok
}

// lookup finds an instance of the right kind, whatever its cluster.
func (h *shard) lookup(k Key) (v *service, slot uint32, ok bool) {
	if v = h.services[k.Service]; v == nil || v.ephemeral != k.Ephemeral {
		return v, 0, false
	}
	slot, ok = h.find(v, k.IP, k.Port)
	return v, slot, ok
}

// holds tells whether the instance is known; the cluster plays no part.
func (s *Store) holds(k Key) bool {
	h := s.shard(k.Service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, _, ok := h.lookup(k)
	return ok
}

// Get gives the true state of an instance with the overlay applied. A Cluster
// in the key must match; "" is any.
func (s *Store) Get(_ context.Context, k Key) (Instance, error) {
	k.Service = k.Service.normal()
	h := s.shard(k.Service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v, slot, ok := h.lookup(k)
	if ok && k.Cluster != "" {
		ok = h.clusters.value(h.slots.record(slot).cluster) == k.Cluster
	}
	if !ok {
		return Instance{}, missing(k, v != nil && len(v.slots) > 0)
	}
	return h.instance(v, slot, memo{}), nil
}

// SetHealth changes the health of an instance and nothing else, if it has not
// changed since it was seen (Revision 0: whatever it is). ErrStale: it has.
// ErrNotFound: gone.
func (s *Store) SetHealth(ctx context.Context, seen Instance, healthy bool) error {
	seen.Key = seen.Key.normal()
	m := command{op: opHealth, healthy: healthy, revision: seen.Revision}.aim(seen.Key)
	if seen.Ephemeral {
		changed, err := s.putHealth(m, 0)
		if changed {
			s.tell(m.service)
		}
		return err
	}
	if needless, err := s.judge(m); err != nil || needless {
		return err
	}
	return s.submit(ctx, m)
}

// judge tells, without changing anything, what a health command would come to.
func (s *Store) judge(m command) (needless bool, err error) {
	h := s.shard(m.service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, slot, err := h.fit(m)
	if err != nil {
		return false, err
	}
	return h.slots.state(slot).healthy() == m.healthy, nil
}

// fit finds the instance of a health command if it is what the command saw.
func (h *shard) fit(m command) (*service, uint32, error) {
	k := Key{Service: m.service, Cluster: m.cluster, IP: m.ip, Port: m.port, Ephemeral: m.ephemeral}
	v, slot, ok := h.lookup(k)
	if !ok {
		return nil, 0, missing(k, v != nil && len(v.slots) > 0)
	}
	if now := h.slots.record(slot).revision; m.revision != 0 && m.revision != now {
		return nil, 0, fmt.Errorf("cannot set health of %s: %w (revision %d is now %d)", k, ErrStale, m.revision, now)
	}
	return v, slot, nil
}

// putHealth carries a health command out; revision 0 draws one of the ephemeral
// ones.
func (s *Store) putHealth(m command, revision uint64) (changed bool, err error) {
	h := s.shard(m.service)
	h.mu.Lock()
	defer h.mu.Unlock()
	v, slot, err := h.fit(m)
	if err != nil {
		return false, err
	}
	old := h.slots.state(slot)
	if old.healthy() == m.healthy {
		return false, nil
	}
	r := h.slots.record(slot)
	due := never
	if v.ephemeral { // the silence goes on, only what follows from it is another thing
		p := h.periods.value(r.periods)
		due = p.due(p.last(old.due(), old.healthy()), m.healthy)
		revision = s.changes.Add(1)
	}
	h.setHealth(v, slot, due, m.healthy)
	r.revision = revision
	if !v.ephemeral {
		v.revision = revision
	}
	return true, nil
}
