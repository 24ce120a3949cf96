package registry

import (
	"bytes"
	"fmt"
	"io"
)

// snapshotHead begins every snapshot: a name and the version of what follows.
// CRC32C of everything, head included, ends it.
var snapshotHead = []byte("sidebeat\x01")

// stored is a service as the log knows it.
type stored struct {
	name      Service
	ephemeral bool
	revision  uint64
	config    *config
	overlays  []storedOverlay
	instances []Instance // their Service is not filled in
	encoded   []string   // metadata of the instances
}

type storedOverlay struct {
	at       place
	overlay  Overlay
	revision uint64
}

// Snapshot copies the durable part as it is after the last command applied;
// write may be called later and at any time.
func (s *Store) Snapshot() (write func(io.Writer) error, err error) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if err := s.Damaged(); err != nil {
		return nil, fmt.Errorf("cannot take a snapshot: %w", err)
	}
	c := codec{buf: bytes.Clone(snapshotHead)}
	c.number(&s.applied)
	more := true
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		for _, v := range h.services {
			if v.durable() {
				c.bits(&more)
				h.store(&c, v)
			}
		}
		h.mu.RUnlock()
	}
	more = false
	c.bits(&more)
	sealed := c.seal()
	return func(w io.Writer) error {
		if _, err := w.Write(sealed); err != nil {
			return fmt.Errorf("cannot write a snapshot: %w", err)
		}
		return nil
	}, nil
}

// store writes one service.
func (h *shard) store(c *codec, v *service) {
	one := stored{name: v.name, ephemeral: v.ephemeral, revision: v.revision, config: v.config}
	for at, o := range v.overlays {
		one.overlays = append(one.overlays, storedOverlay{at, o.Overlay, o.revision})
	}
	one.head(c)
	if v.ephemeral {
		c.count(0)
		return
	}
	c.count(len(v.slots))
	for _, slot := range v.slots {
		r := h.slots.record(slot)
		i := Instance{
			Key:    Key{IP: h.ip(r), Port: r.port, Cluster: h.clusters.value(r.cluster)},
			Weight: r.weight, Enabled: r.flags&flagDisabled == 0, Healthy: h.slots.state(slot).healthy(), Revision: r.revision,
		}
		encoded := h.metadata.value(r.metadata)
		storeInstance(c, &i, &encoded)
	}
}

// head lists the fields of a service except its instances, for both ways.
func (o *stored) head(c *codec) {
	configured := o.config != nil
	c.service(&o.name)
	c.bits(&o.ephemeral, &configured)
	c.number(&o.revision)
	if configured {
		if c.reading {
			o.config = &config{}
		}
		o.config.fields(c)
	}
	n := c.count(len(o.overlays))
	if c.reading {
		o.overlays = make([]storedOverlay, n)
	}
	for i := range o.overlays {
		l := &o.overlays[i]
		l.at.fields(c)
		c.overlay(&l.overlay)
		c.number(&l.revision)
	}
}

func (g *config) fields(c *codec) {
	c.float(&g.threshold)
	c.metadata(&g.metadata)
	c.text(&g.selector)
	n := c.count(len(g.clusters))
	if !c.reading {
		for name, cluster := range g.clusters {
			cluster.fields(c, &name)
		}
		return
	}
	g.clusters = make(map[string]clusterConfig, n)
	for range n {
		var name string
		var cluster clusterConfig
		cluster.fields(c, &name)
		g.clusters[name] = cluster
	}
}

func (k *clusterConfig) fields(c *codec, name *string) {
	c.text(name)
	c.checker(&k.checker)
	c.metadata(&k.metadata)
}

func storeInstance(c *codec, i *Instance, encoded *string) {
	c.text(&i.IP)
	c.port(&i.Port)
	c.text(&i.Cluster)
	c.float(&i.Weight)
	c.bits(&i.Enabled, &i.Healthy)
	c.metadata(encoded)
	c.number(&i.Revision)
}

// Restore replaces the durable part by a snapshot. Ephemeral instances stay
// where the snapshot has no persistent service of that name. After an error the
// store is as it was.
func (s *Store) Restore(r io.Reader) error {
	applied, services, err := readSnapshot(r)
	if err != nil {
		return fmt.Errorf("cannot restore a snapshot: %w", err)
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	changed := s.replace(applied, services)
	s.tell(changed...)
	return nil
}

func readSnapshot(r io.Reader) (applied uint64, services []stored, err error) {
	sealed, err := io.ReadAll(r)
	if err != nil {
		return 0, nil, err
	}
	body, err := unseal(sealed)
	if err != nil {
		return 0, nil, err
	}
	fields, known := bytes.CutPrefix(body, snapshotHead)
	if !known {
		return 0, nil, fmt.Errorf("it begins with %.9q, not with %q", body, snapshotHead)
	}
	c := codec{buf: fields, reading: true}
	c.number(&applied)
	var more bool
	for c.bits(&more); more && c.err == nil; c.bits(&more) {
		services = append(services, readStored(&c))
	}
	if c.err == nil && len(c.buf) > 0 {
		return 0, nil, fmt.Errorf("%d bytes are left over", len(c.buf))
	}
	return applied, services, c.err
}

func readStored(c *codec) (o stored) {
	o.head(c)
	n := c.count(0)
	o.instances, o.encoded = make([]Instance, n), make([]string, n)
	for i := range o.instances {
		storeInstance(c, &o.instances[i], &o.encoded[i])
		o.instances[i].Metadata = c.decoded[o.encoded[i]]
	}
	return o
}

// replace swaps the durable part under all locks at once.
func (s *Store) replace(applied uint64, services []stored) (changed []Service) {
	now := s.clock.now()
	for i := range s.shards {
		s.shards[i].mu.Lock()
		defer s.shards[i].mu.Unlock()
	}
	s.applied = applied
	for i := range s.shards {
		changed = append(changed, s.shards[i].clearDurable(now)...)
	}
	for i := range services {
		s.restore(&services[i], now)
		changed = append(changed, services[i].name)
	}
	s.names.spoil()
	return changed
}

// clearDurable forgets all that came from the log.
func (h *shard) clearDurable(now stamp) (changed []Service) {
	for name, v := range h.services {
		if !v.durable() {
			continue
		}
		changed = append(changed, name)
		v.config, v.overlays = nil, nil
		if !v.ephemeral || len(v.slots) == 0 {
			h.removeService(v)
		}
	}
	return changed
}

func (s *Store) restore(o *stored, now stamp) {
	h := s.shard(o.name)
	v := h.services[o.name]
	if v != nil && !o.ephemeral {
		h.removeService(v)
		v = nil
	}
	if v == nil {
		v = h.addService(o.name, o.ephemeral, now)
	}
	v.revision, v.config = o.revision, o.config
	for _, l := range o.overlays {
		if v.overlays == nil {
			v.overlays = map[place]*overlay{}
		}
		laid := &overlay{Overlay: l.overlay, revision: l.revision, since: now}
		v.overlays[l.at] = laid
		h.idle[v] = struct{}{}
		if slot, ok := h.findIn(v, l.at); ok { // an ephemeral one that stayed
			laid.attached = true
			s.reperiod(h, v, slot, laid)
		}
	}
	for i := range o.instances {
		one := &o.instances[i]
		if _, twice := h.find(v, one.IP, one.Port); twice {
			continue // no store writes that; two slots for one key would be worse
		}
		slot := h.insert(v, one.IP, one.Port)
		h.publish(v, slot, *one, o.encoded[i], now)
		h.slots.record(slot).revision = one.Revision
	}
}
