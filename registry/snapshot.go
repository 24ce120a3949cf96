package registry

import (
	"bytes"
	"fmt"
	"io"
)

// snapshotHead begins every snapshot; the version of what follows comes after
// it. CRC32C of everything, head included, ends it.
var snapshotHead = []byte("sidebeat")

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
	c := codec{buf: append(bytes.Clone(snapshotHead), formatVersion), version: formatVersion}
	c.number(&s.applied)
	s.saved.fields(&c)
	c.namespaces(*s.created.Load())
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
			NoID: r.flags&flagNoID != 0,
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
	if c.reading && c.err == nil {
		g.readKeep()
	}
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
	c.bits(&i.Enabled, &i.Healthy, &i.NoID)
	c.metadata(encoded)
	c.number(&i.Revision)
}

// Restore replaces the durable part by a snapshot. Ephemeral instances stay
// where the snapshot has no persistent service of that name. After an error the
// store is as it was.
func (s *Store) Restore(r io.Reader) error {
	read, err := readSnapshot(r)
	if err != nil {
		return fmt.Errorf("cannot restore a snapshot: %w", err)
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	changed := s.replace(read)
	s.tell(changed...)
	return nil
}

// image is what a snapshot holds.
type image struct {
	applied    uint64
	switches   Switches
	namespaces map[string]Namespace
	services   []stored
}

func readSnapshot(r io.Reader) (read image, err error) {
	sealed, err := io.ReadAll(r)
	if err != nil {
		return read, err
	}
	body, err := unseal(sealed)
	if err != nil {
		return read, err
	}
	fields, known := bytes.CutPrefix(body, snapshotHead)
	if !known || len(fields) == 0 {
		return read, fmt.Errorf("it begins with %.9q, not with %q", body, snapshotHead)
	}
	if fields[0] == 0 || fields[0] > formatVersion {
		return read, fmt.Errorf("its version is %d, this program knows those up to %d", fields[0], formatVersion)
	}
	c := codec{buf: fields[1:], reading: true, version: fields[0]}
	read.fields(&c)
	if c.err == nil && len(c.buf) > 0 {
		return read, fmt.Errorf("%d bytes are left over", len(c.buf))
	}
	return read, c.err
}

// fields reads; version 1 knew neither switches nor namespaces.
func (o *image) fields(c *codec) {
	o.switches, o.namespaces = defaultSwitches(), map[string]Namespace{}
	c.number(&o.applied)
	if c.version >= 2 {
		o.switches.fields(c)
		o.namespaces = c.namespaces(nil)
	}
	var more bool
	for c.bits(&more); more && c.err == nil; c.bits(&more) {
		o.services = append(o.services, readStored(c))
	}
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
func (s *Store) replace(by image) (changed []Service) {
	now := s.clock.now()
	for i := range s.shards {
		s.shards[i].mu.Lock()
		defer s.shards[i].mu.Unlock()
	}
	s.applied, s.saved = by.applied, by.switches
	s.switches.Store(&by.switches)
	s.created.Store(&by.namespaces)
	for i := range s.shards {
		changed = append(changed, s.clearDurable(&s.shards[i], now)...)
	}
	for i := range by.services {
		s.restore(&by.services[i], now)
		changed = append(changed, by.services[i].name)
	}
	return changed
}

// clearDurable forgets all that came from the log.
func (s *Store) clearDurable(h *shard, now stamp) (changed []Service) {
	for name, v := range h.services {
		if !v.durable() {
			continue
		}
		changed = append(changed, name)
		v.config, v.overlays = nil, nil
		if !v.ephemeral || len(v.slots) == 0 {
			s.removeService(h, v)
			continue
		}
		h.retimeAll(v)
	}
	return changed
}

func (s *Store) restore(o *stored, now stamp) {
	h := s.shard(o.name)
	v := h.services[o.name]
	if v != nil && !o.ephemeral {
		s.removeService(h, v)
		v = nil
	}
	if v == nil {
		v = s.addService(h, o.name, o.ephemeral, now)
	}
	v.revision, v.config = o.revision, o.config
	if v.config.keeps() {
		h.retimeAll(v) // ephemeral ones that stayed
	}
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
