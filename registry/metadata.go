package registry

import (
	"context"
	"fmt"
	"maps"
)

// PutMetadata lays metadata over the given instances of a service, key by key:
// the other keys of their overlays stay (PUT of instance/metadata/batch). It
// gives those it did it for; one that is not known is left out. A Cluster in a
// key must match, "" is any; the kind in it is of no account.
func (s *Store) PutMetadata(ctx context.Context, service Service, instances []Key, metadata map[string]string) ([]Key, error) {
	return s.layMetadata(ctx, service, instances, metadata, false)
}

// DropMetadata takes keys out of the overlays of the given instances: what their
// clients published shows again. Otherwise it is like PutMetadata.
func (s *Store) DropMetadata(ctx context.Context, service Service, instances []Key, names []string) ([]Key, error) {
	metadata := make(map[string]string, len(names))
	for _, name := range names {
		metadata[name] = ""
	}
	return s.layMetadata(ctx, service, instances, metadata, true)
}

func (s *Store) layMetadata(ctx context.Context, service Service, instances []Key, metadata map[string]string, drop bool) ([]Key, error) {
	service = service.normal()
	known, ephemeral := s.known(service, instances)
	if len(known) == 0 || len(metadata) == 0 {
		return known, nil
	}
	m := command{op: opMetadata, service: service, ephemeral: ephemeral, drop: drop, metadata: encodeMetadata(metadata)}
	for _, k := range known {
		m.places = append(m.places, place{k.IP, k.Cluster, k.Port})
	}
	if err := s.submit(ctx, m); err != nil {
		return nil, fmt.Errorf("cannot change metadata of %d instances: %w", len(known), err)
	}
	if !drop {
		s.sayOdd(known[0], metadata)
	}
	return known, nil
}

// known gives the full keys of those instances that are there.
func (s *Store) known(service Service, instances []Key) (found []Key, ephemeral bool) {
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	if v == nil {
		return nil, false
	}
	for _, k := range instances {
		slot, there := h.find(v, k.IP, k.Port)
		if !there {
			continue
		}
		cluster := h.clusters.value(h.slots.record(slot).cluster)
		if k.Cluster == "" || k.Cluster == cluster {
			found = append(found, Key{v.name, cluster, k.IP, k.Port, v.ephemeral})
		}
	}
	return found, v.ephemeral
}

func (s *Store) applyMetadata(h *shard, m command) error {
	values := mustMetadata(m.metadata)
	for _, at := range m.places {
		var laid *overlay
		if v := h.services[m.service]; v != nil {
			laid = v.overlays[at]
		}
		if m.drop && laid == nil {
			continue
		}
		one := command{op: opOverlay, service: m.service, ephemeral: m.ephemeral, ip: at.ip, cluster: at.cluster, port: at.port}
		one.overlay.Metadata = map[string]string{}
		maps.Copy(one.overlay.Metadata, laid.metadata())
		for name, value := range values {
			if m.drop {
				delete(one.overlay.Metadata, name)
			} else {
				one.overlay.Metadata[name] = value
			}
		}
		if err := s.applyOverlay(h, one); err != nil {
			return err
		}
	}
	return nil
}
