package registry

import "fmt"

// Damage is the error of a command that cannot be applied because it is not
// what was written, or was written by a newer program. The process must stop.
type Damage struct {
	Index uint64 // of the log; 0: there is none
	Why   error
}

// Error says which command and why.
func (d *Damage) Error() string {
	return fmt.Sprintf("cannot apply command %d of the log: %v", d.Index, d.Why)
}

// Unwrap gives the reason.
func (d *Damage) Unwrap() error { return d.Why }

// Damaged tells whether the store met a command that it cannot apply; the
// process must not go on then: a command was lost, and nobody knows which.
func (s *Store) Damaged() error {
	if d := s.damaged.Load(); d != nil {
		return d
	}
	return nil
}

// Apply takes one command of the log, in its order. It returns nil or an error:
// a *Refusal, ErrStale or ErrNotFound when the command came to nothing, a
// *Damage for one that cannot be read; after that every Apply returns it. What
// a command does depends on the commands before it only.
func (s *Store) Apply(index uint64, encoded []byte) any {
	s.applying.Lock()
	defer s.applying.Unlock()
	if d := s.damaged.Load(); d != nil {
		return d
	}
	m, err := decodeCommand(encoded)
	if err != nil {
		d := &Damage{index, err}
		s.damaged.Store(d)
		return d
	}
	s.applied++
	if err := s.carryOut(m); err != nil {
		return err
	}
	if m.service.Name != "" {
		s.tell(m.service)
	}
	return nil
}

func (s *Store) carryOut(m command) error {
	switch m.op {
	case opHealth:
		_, err := s.putHealth(m, s.applied)
		return err
	case opSwitch:
		return s.applySwitch(m)
	case opNamespace, opNoNamespace:
		return s.applyNamespace(m)
	}
	h := s.shard(m.service)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.op {
	case opRegister:
		return s.applyRegister(h, m)
	case opDeregister:
		s.applyDeregister(h, m)
	case opService:
		return s.applyService(h, m)
	case opDelete:
		return s.applyDelete(h, m)
	case opCluster:
		return s.applyCluster(h, m)
	case opOverlay:
		return s.applyOverlay(h, m)
	case opForget:
		s.applyForget(h, m)
	case opMetadata:
		return s.applyMetadata(h, m)
	}
	return nil
}

func (s *Store) applyRegister(h *shard, m command) error {
	now := s.clock.now()
	v, err := s.persistentService(h, m, now)
	if err != nil {
		return err
	}
	slot, exists := uint32(0), false
	if v != nil {
		slot, exists = h.find(v, m.ip, m.port)
	}
	i := m.instance()
	switch {
	case m.mustExist && !exists:
		return missing(i.Key, v != nil && len(v.slots) > 0)
	case v == nil:
		v = s.addService(h, m.service, false, now)
	}
	if !exists {
		slot = h.insert(v, m.ip, m.port)
	}
	if h.publish(v, slot, i, m.metadata, now) || !exists {
		h.slots.record(slot).revision, v.revision = s.applied, s.applied
	}
	return nil
}

// persistentService finds the service of a command on persistent instances; nil
// when there is none. Only what the log knows of counts: ephemeral instances
// that came in between have to give way, and find out by their next beat.
func (s *Store) persistentService(h *shard, m command, now stamp) (*service, error) {
	v := h.services[m.service]
	switch {
	case v == nil || !v.ephemeral:
		return v, nil
	case v.durable():
		return nil, conflict(m.service, true)
	}
	s.removeService(h, v)
	return nil, nil
}

func (m command) instance() Instance {
	return Instance{
		Key:    Key{Service: m.service, Cluster: m.cluster, IP: m.ip, Port: m.port},
		Weight: m.weight, Enabled: m.enabled, Healthy: m.healthy, Metadata: mustMetadata(m.metadata),
		NoID: m.noID,
	}
}

func (s *Store) applyDeregister(h *shard, m command) {
	v := h.services[m.service]
	if v == nil || v.ephemeral {
		return
	}
	if slot, ok := h.find(v, m.ip, m.port); ok {
		h.remove(v, slot, s.clock.now())
		v.revision = s.applied
	}
}
