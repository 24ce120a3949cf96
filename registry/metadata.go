package registry

import (
	"context"
	"fmt"
	"maps"
)

// PutMetadata lays metadata over what is there, key by key, for the named
// instances of a service or, when none is named, for all of them; an overlay's
// other keys stay (PUT of instance/metadata/batch). It gives those it did it
// for; instances that are not known are left out.
func (s *Store) PutMetadata(ctx context.Context, service Service, only []Key, metadata map[string]string) ([]Key, error) {
	return s.layMetadata(ctx, service, only, metadata, false)
}

// DropMetadata takes keys out of the overlays of the named instances of a
// service, or of all of them: what clients published shows again. It gives
// those it did it for.
func (s *Store) DropMetadata(ctx context.Context, service Service, only []Key, names []string) ([]Key, error) {
	metadata := make(map[string]string, len(names))
	for _, name := range names {
		metadata[name] = ""
	}
	return s.layMetadata(ctx, service, only, metadata, true)
}

func (s *Store) layMetadata(ctx context.Context, service Service, only []Key, metadata map[string]string, drop bool) ([]Key, error) {
	service = service.normal()
	keys, ephemeral := s.chosen(service, only)
	if len(keys) == 0 || len(metadata) == 0 {
		return keys, nil
	}
	m := command{op: opMetadata, service: service, ephemeral: ephemeral, drop: drop, metadata: encodeMetadata(metadata)}
	for _, k := range keys {
		m.places = append(m.places, place{k.IP, k.Cluster, k.Port})
	}
	if err := s.submit(ctx, m); err != nil {
		return nil, fmt.Errorf("cannot change metadata of %d instances: %w", len(keys), err)
	}
	for _, k := range keys {
		if !drop {
			s.sayOdd(k, metadata)
		}
	}
	return keys, nil
}

// chosen gives the keys of the named instances that are known, or of all. A
// cluster in a name must match, "" is any.
func (s *Store) chosen(service Service, only []Key) (keys []Key, ephemeral bool) {
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[service]
	if v == nil {
		return nil, false
	}
	key := func(slot uint32) Key {
		r := h.slots.record(slot)
		return Key{Service: v.name, Cluster: h.clusters.value(r.cluster), IP: h.ip(r), Port: r.port, Ephemeral: v.ephemeral}
	}
	if len(only) == 0 {
		for _, slot := range v.slots {
			keys = append(keys, key(slot))
		}
		return keys, v.ephemeral
	}
	for _, k := range only {
		slot, known := h.find(v, k.IP, k.Port)
		if !known {
			continue
		}
		if found := key(slot); k.Cluster == "" || k.Cluster == found.Cluster {
			keys = append(keys, found)
		}
	}
	return keys, v.ephemeral
}

func (s *Store) applyMetadata(h *shard, m command) error {
	values := mustMetadata(m.metadata)
	for _, at := range m.places {
		if v := h.services[m.service]; m.drop && (v == nil || v.overlays[at] == nil) {
			continue
		}
		one := command{op: opOverlay, service: m.service, ephemeral: m.ephemeral, ip: at.ip, cluster: at.cluster, port: at.port}
		one.overlay.Metadata = map[string]string{}
		if v := h.services[m.service]; v != nil && v.overlays[at] != nil {
			maps.Copy(one.overlay.Metadata, v.overlays[at].Metadata)
		}
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
