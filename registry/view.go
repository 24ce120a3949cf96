package registry

import "slices"

// memo spares decoding the same metadata again for each of many instances.
type memo map[uint32]map[string]string

func (m memo) read(h *shard, number uint32) map[string]string {
	values, known := m[number]
	if !known {
		values = mustMetadata(h.metadata.value(number))
		m[number] = values
	}
	return values
}

// instance reads a slot, with the overlay applied.
func (h *shard) instance(v *service, slot uint32, m memo) Instance {
	r := h.slots.record(slot)
	i := Instance{
		Key: Key{
			Service: v.name, Cluster: h.clusters.value(r.cluster),
			IP: h.ip(r), Port: r.port, Ephemeral: v.ephemeral,
		},
		Weight:   r.weight,
		Enabled:  r.flags&flagDisabled == 0,
		NoID:     r.flags&flagNoID != 0,
		Healthy:  h.slots.state(slot).healthy(),
		Metadata: m.read(h, r.metadata),
		Revision: r.revision,
	}
	if o := v.overlays[place{i.IP, i.Cluster, i.Port}]; o != nil {
		o.apply(&i)
	}
	return i
}

// All gives the true state of all instances of a service, disabled ones too,
// ordered by address. The metadata maps are shared among them and must not be
// changed.
func (s *Store) All(service Service) []Instance {
	service = service.normal()
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	if v == nil {
		return nil
	}
	all := make([]Instance, len(v.slots))
	m := memo{}
	for i, slot := range v.slots {
		all[i] = h.instance(v, slot, m)
	}
	return all
}

// View gives what consumers see: the enabled instances, as Nacos filters them
// (com.alibaba.nacos.naming.utils.ServiceUtil).
func (s *Store) View(service Service, q Query) View {
	service = service.normal()
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	if v == nil {
		return View{}
	}
	view := View{Exists: true, Ephemeral: v.ephemeral}
	m := memo{}
	healthy := 0
	for _, slot := range v.slots {
		i := h.instance(v, slot, m)
		if !i.Enabled || q.HealthyOnly && !i.Healthy || len(q.Clusters) > 0 && !slices.Contains(q.Clusters, i.Cluster) {
			continue
		}
		if i.Healthy {
			healthy++
		}
		view.Instances = append(view.Instances, i)
	}
	if view.Protected = v.config.protects(healthy, len(view.Instances)); view.Protected {
		for i := range view.Instances {
			view.Instances[i].Healthy = true
		}
	}
	return view
}

// protects tells whether so few are healthy that all have to be shown healthy,
// because the rest would not bear the load. Without metadata of the service
// nothing is protected; with it, at least the case that none is healthy is, for
// a threshold below 0 counts as 0. It is counted in 32 bits, as Nacos does.
func (c *config) protects(healthy, all int) bool {
	return c != nil && all > 0 && float32(healthy)/float32(all) <= float32(max(c.threshold, 0))
}
