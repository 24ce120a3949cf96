package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// CreateService makes a service with metadata: a *Refusal when it exists.
// Empty, it is cleaned up after 60 s like any other.
func (s *Store) CreateService(ctx context.Context, c ServiceConfig) error {
	c.Service = c.Service.normal()
	if c.Name == "" {
		return &Refusal{Incomplete, "Param 'serviceName' is required."}
	}
	if _, exists := s.kind(c.Service); exists {
		return serviceExists(c.Service)
	}
	if err := s.roomForService(c.Service); err != nil {
		return err
	}
	if !c.Ephemeral { // until it is there, no ephemeral instance may come in
		h := s.shard(c.Service)
		h.mu.Lock()
		h.claim(c.Service)
		h.mu.Unlock()
		defer s.unclaim(c.Service)
	}
	return s.submit(ctx, c.command(c.Ephemeral, false))
}

func serviceExists(service Service) error {
	return &Refusal{ServiceExists, fmt.Sprintf("specified service %s already exists!", service.Grouped())}
}

// UpdateService replaces threshold, metadata and selector of a service; the
// kind and the clusters stay. From then on protection is armed.
func (s *Store) UpdateService(ctx context.Context, c ServiceConfig) error {
	c.Service = c.Service.normal()
	ephemeral, exists := s.kind(c.Service)
	if !exists {
		return unknownService(c.Service)
	}
	return s.change(ctx, c.command(ephemeral, true))
}

func (c ServiceConfig) command(ephemeral, mustExist bool) command {
	return command{
		op: opService, service: c.Service, ephemeral: ephemeral, mustExist: mustExist,
		threshold: c.ProtectThreshold, metadata: encodeMetadata(c.Metadata), selector: c.Selector,
	}
}

func unknownService(service Service) error {
	return &Refusal{ServiceUnknown, fmt.Sprintf("service %s not found!", service.Grouped())}
}

// DeleteService removes a service without instances, with all that was set for
// it: a *Refusal when it has some or is unknown.
func (s *Store) DeleteService(ctx context.Context, service Service) error {
	service = service.normal()
	m, gone, err := s.startDelete(service)
	if gone {
		s.tell(service)
	}
	if gone || err != nil {
		return err
	}
	return s.submit(ctx, m)
}

// startDelete removes a service of which the log knows nothing at once, and
// gives the command for one of which it does.
func (s *Store) startDelete(service Service) (m command, gone bool, err error) {
	h := s.shard(service)
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.services[service]
	switch {
	case v == nil:
		return m, false, unknownService(service)
	case len(v.slots) > 0:
		return m, false, inUse(service)
	case v.durable():
		return command{op: opDelete, service: service, ephemeral: v.ephemeral}, false, nil
	}
	s.removeService(h, v)
	return m, true, nil
}

func inUse(service Service) error {
	return &Refusal{ServiceInUse, fmt.Sprintf("Service %s is not empty, can't be delete. Please unregister instance first", service.Grouped())}
}

// SetCluster configures a cluster of a service, which need not have instances:
// a *Refusal when the service is unknown. From then on protection is armed.
func (s *Store) SetCluster(ctx context.Context, c ClusterConfig) error {
	c.Service = c.Service.normal()
	ephemeral, exists := s.kind(c.Service)
	if !exists {
		return &Refusal{ServiceUnknown, "service not found:" + c.Grouped()}
	}
	return s.change(ctx, command{
		op: opCluster, service: c.Service, ephemeral: ephemeral, cluster: cmp.Or(c.Name, DefaultCluster),
		checker: c.Checker, metadata: encodeMetadata(c.Metadata),
	})
}

func (s *Store) applyService(h *shard, m command) error {
	v := h.services[m.service]
	switch {
	case v != nil && v.durable() && !m.mustExist:
		return serviceExists(m.service)
	case v == nil && m.mustExist && !m.ephemeral:
		return unknownService(m.service)
	}
	c, err := s.configOf(h, m)
	if err != nil {
		return err
	}
	c.threshold, c.metadata, c.selector = m.threshold, m.metadata, m.selector
	kept := c.keep
	if c.readKeep(); kept != c.keep {
		h.retimeAll(h.services[m.service])
	}
	return nil
}

// retimeAll reads the periods of all instances of a service anew.
func (h *shard) retimeAll(v *service) {
	for _, slot := range v.slots {
		r := h.slots.record(slot)
		h.retime(v, slot, v.overlays[place{h.ip(r), h.clusters.value(r.cluster), r.port}])
	}
}

func (s *Store) applyCluster(h *shard, m command) error {
	if h.services[m.service] == nil && !m.ephemeral {
		return &Refusal{ServiceUnknown, "service not found:" + m.service.Grouped()}
	}
	c, err := s.configOf(h, m)
	if err != nil {
		return err
	}
	if c.clusters == nil {
		c.clusters = map[string]clusterConfig{}
	}
	c.clusters[m.cluster] = clusterConfig{m.checker, m.metadata}
	return nil
}

// configOf gives the metadata of the service of a command, making both where
// they are missing.
func (s *Store) configOf(h *shard, m command) (*config, error) {
	now := s.clock.now()
	v := h.services[m.service]
	if v != nil && v.ephemeral && !m.ephemeral {
		var err error
		if v, err = s.persistentService(h, m, now); err != nil {
			return nil, err
		}
	}
	if v != nil && v.ephemeral != m.ephemeral {
		return nil, conflict(m.service, v.ephemeral)
	}
	if v == nil {
		v = s.addService(h, m.service, m.ephemeral, now)
	}
	if v.config == nil {
		v.config = &config{}
	}
	v.revision = s.applied
	if len(v.slots) == 0 {
		v.idleSince = now // as Nacos does: any change begins the 60 s anew
	}
	return v.config, nil
}

// applyDelete removes a service as the log knows it; one that is cleaned up only
// if it is still what it was when that was decided. Ephemeral instances that came in between stay.
func (s *Store) applyDelete(h *shard, m command) error {
	v := h.services[m.service]
	switch {
	case v == nil || m.revision != 0 && m.revision != v.revision:
		return nil
	case !v.ephemeral && len(v.slots) > 0:
		return inUse(m.service)
	case len(v.slots) > 0:
		v.config, v.overlays = nil, nil
		h.retimeAll(v)
		return nil
	}
	s.removeService(h, v)
	return nil
}

// Describe tells what is known of a service: a *Refusal when it is nothing.
func (s *Store) Describe(service Service) (ServiceInfo, error) {
	service = service.normal()
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	if v == nil {
		return ServiceInfo{}, &Refusal{ServiceUnknown, fmt.Sprintf(
			"service not found, namespace: %s, serviceName: %s", service.Namespace, service.Grouped())}
	}
	info := ServiceInfo{
		ServiceConfig: ServiceConfig{Service: v.name, Ephemeral: v.ephemeral, Metadata: map[string]string{}},
		Clusters:      h.clustersOf(v),
		Instances:     len(v.slots),
		Healthy:       len(v.slots) - int(v.unhealthy),
		HasMetadata:   v.config != nil,
	}
	if c := v.config; c != nil {
		info.ProtectThreshold, info.Metadata, info.Selector = c.threshold, mustMetadata(c.metadata), c.selector
	}
	return info, nil
}

// clustersOf lists the clusters that have instances.
func (h *shard) clustersOf(v *service) []ClusterConfig {
	names := map[string]struct{}{}
	for _, slot := range v.slots {
		names[h.clusters.value(h.slots.record(slot).cluster)] = struct{}{}
	}
	var all []ClusterConfig
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c, _ := v.cluster(name)
		all = append(all, c)
	}
	return all
}

// cluster gives the configuration of a cluster, or how Nacos treats it when
// nobody set one.
func (v *service) cluster(name string) (c ClusterConfig, set bool) {
	c = ClusterConfig{Cluster: Cluster{v.name, name}, Checker: DefaultChecker, Metadata: map[string]string{}}
	if v.config == nil {
		return c, false
	}
	known, set := v.config.clusters[name]
	if set {
		c.Checker, c.Metadata = known.checker, mustMetadata(known.metadata)
	}
	return c, set
}

// Cluster gives the configuration of a cluster, if somebody set one.
func (s *Store) Cluster(c Cluster) (config ClusterConfig, exists bool) {
	c.Service = c.Service.normal()
	h := s.shard(c.Service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	if v := h.services[c.Service]; v != nil {
		if config, exists = v.cluster(cmp.Or(c.Name, DefaultCluster)); exists {
			return config, true
		}
	}
	return ClusterConfig{}, false
}
