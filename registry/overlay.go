package registry

import (
	"context"
	"fmt"
	"maps"
)

// overlay is an Overlay in its place.
type overlay struct {
	Overlay
	revision uint64 // command that set it last
	attached bool   // its instance is there
	since    stamp  // when it went
}

// metadata is nil for no overlay.
func (o *overlay) metadata() map[string]string {
	if o == nil {
		return nil
	}
	return o.Metadata
}

// merge lays what is set in the change over what was set before.
func (o *Overlay) merge(change Overlay, whole bool) {
	if change.Weight != nil {
		o.Weight = change.Weight
	}
	if change.Enabled != nil {
		o.Enabled = change.Enabled
	}
	if change.Metadata != nil || whole {
		o.Metadata = change.Metadata
	}
}

// changedBy tells whether merge would make a difference.
func (o *Overlay) changedBy(change Overlay, whole bool) bool {
	return change.Weight != nil && (o.Weight == nil || *o.Weight != *change.Weight) ||
		change.Enabled != nil && (o.Enabled == nil || *o.Enabled != *change.Enabled) ||
		(change.Metadata != nil || whole) && !maps.Equal(o.Metadata, change.Metadata)
}

// apply lays the overlay over an instance; the metadata map is a new one.
func (o *overlay) apply(i *Instance) {
	if o.Weight != nil {
		i.Weight = *o.Weight
	}
	if o.Enabled != nil {
		i.Enabled = *o.Enabled
	}
	if len(o.Metadata) > 0 {
		i.Metadata = maps.Clone(i.Metadata)
		maps.Copy(i.Metadata, o.Metadata)
	}
}

// Override lays an operator's word over an instance; what is nil stays as it
// is, metadata replaces the metadata set before (PATCH). ErrNotFound when the
// instance is unknown; a Cluster in the key must match.
func (s *Store) Override(ctx context.Context, k Key, o Overlay) error {
	if o.Weight != nil {
		if err := CheckWeight(*o.Weight); err != nil {
			return err
		}
	}
	now, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	return s.lay(ctx, now.Key, o, false)
}

// Update sets the whole overlay of an instance, which need not exist while its
// service does (PUT): a *Refusal when the service is unknown. Without a Cluster
// in the key it lies on the default one.
func (s *Store) Update(ctx context.Context, k Key, weight float64, enabled bool, metadata map[string]string) error {
	k = k.normal()
	if err := CheckWeight(weight); err != nil {
		return err
	}
	ephemeral, exists := s.kind(k.Service)
	if !exists {
		return &Refusal{ServiceUnknown, fmt.Sprintf(
			"service not found, namespace: %s, service: Service{namespace='%s', group='%s', name='%s', ephemeral=%t, revision=0}",
			k.Namespace, k.Namespace, k.Group, k.Name, k.Ephemeral)}
	}
	k.Ephemeral = ephemeral
	return s.lay(ctx, k, Overlay{Weight: &weight, Enabled: &enabled, Metadata: metadata}, true)
}

func (s *Store) lay(ctx context.Context, k Key, o Overlay, whole bool) error {
	if err := s.change(ctx, command{op: opOverlay, overlay: o, whole: whole}.aim(k)); err != nil {
		return err
	}
	s.sayOdd(k, o.Metadata)
	return nil
}

// Overlay gives what operators set on an instance, whether it exists or not.
func (s *Store) Overlay(k Key) (o Overlay, exists bool) {
	k = k.normal()
	h := s.shard(k.Service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[k.Service]
	if v == nil || v.overlays[place{k.IP, k.Cluster, k.Port}] == nil {
		return Overlay{}, false
	}
	o = v.overlays[place{k.IP, k.Cluster, k.Port}].Overlay
	o.Metadata = maps.Clone(o.Metadata)
	return o, true
}

// kind tells whether a service is ephemeral, if it exists.
func (s *Store) kind(service Service) (ephemeral, exists bool) {
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	return v != nil && v.ephemeral, v != nil
}

// applyOverlay carries an overlay command out.
func (s *Store) applyOverlay(h *shard, m command) error {
	now := s.clock.now()
	v := h.services[m.service]
	if v == nil && !m.ephemeral {
		return &Refusal{ServiceUnknown, fmt.Sprintf("service %s not found!", m.service.Grouped())}
	}
	if v == nil {
		v = s.addService(h, m.service, true, now)
	}
	at := place{m.ip, m.cluster, m.port}
	o := v.overlays[at]
	if o == nil {
		o = &overlay{}
		if v.overlays == nil {
			v.overlays = map[place]*overlay{}
		}
		v.overlays[at] = o
	}
	o.merge(m.overlay, m.whole)
	o.revision, v.revision = s.applied, s.applied
	if slot, ok := h.findIn(v, at); ok {
		o.attached = true
		s.reperiod(h, v, slot, o)
	} else {
		o.since = now
		h.idle[v] = struct{}{}
	}
	if len(v.slots) == 0 {
		v.idleSince = now
	}
	return nil
}

// findIn finds the instance that stands where an overlay lies.
func (h *shard) findIn(v *service, at place) (slot uint32, ok bool) {
	slot, ok = h.find(v, at.ip, at.port)
	return slot, ok && h.clusters.value(h.slots.record(slot).cluster) == at.cluster
}

// reperiod gives an instance whose overlay changed its new periods, counted
// from when it was last heard of.
func (s *Store) reperiod(h *shard, v *service, slot uint32, o *overlay) {
	h.retime(v, slot, o)
	r := h.slots.record(slot)
	if r.revision = s.applied; v.ephemeral {
		r.revision = s.changes.Add(1)
	}
}

// retime reads the periods of an instance anew, counted from when it was last
// heard of.
func (h *shard) retime(v *service, slot uint32, o *overlay) {
	r := h.slots.record(slot)
	old := h.periods.value(r.periods)
	h.setPeriods(r, periodsOf(o.metadata(), mustMetadata(h.metadata.value(r.metadata)), v.config.keeps()))
	if !v.ephemeral {
		return
	}
	w := h.slots.word(slot)
	for { // a beat may come in between
		state := word(w.Load())
		due := h.periods.value(r.periods).due(old.last(state.due(), state.healthy()), state.healthy())
		if w.CompareAndSwap(uint64(state), uint64(state.with(due, state.healthy()))) {
			return
		}
	}
}

// applyForget drops an overlay that nobody changed since that was decided.
func (s *Store) applyForget(h *shard, m command) {
	v := h.services[m.service]
	if v == nil {
		return
	}
	at := place{m.ip, m.cluster, m.port}
	if o := v.overlays[at]; o != nil && o.revision == m.revision {
		delete(v.overlays, at)
	}
}
