package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// model is the registry as one would explain it: maps, and a scan of all of
// them whenever time goes by.
type model struct {
	now       time.Duration // time that counts
	services  map[string]*modelService
	instances map[string]*modelInstance // by service/ip
	overlays  map[string]*modelOverlay  // by service/ip: all is in one cluster
}

type modelService struct {
	ephemeral bool
	emptyAt   time.Duration
}

type modelInstance struct {
	Instance
	last            time.Duration
	timeout, expire time.Duration
}

type modelOverlay struct {
	weight  *float64
	enabled *bool
	goneAt  time.Duration
}

func (m *model) inhabited(service string) bool {
	for _, one := range m.instances {
		if one.Name == service {
			return true
		}
	}
	return false
}

func name(k Key) string { return k.Name + "/" + k.IP }

func (m *model) register(one Instance, timeout, expire time.Duration, mustExist bool) error {
	v, known := m.services[one.Name], m.instances[name(one.Key)]
	if mustExist && (known == nil || v.ephemeral != one.Ephemeral) {
		if v != nil && v.ephemeral != one.Ephemeral {
			return ErrRefused
		}
		return ErrNotFound
	}
	if v != nil && v.ephemeral != one.Ephemeral {
		return ErrRefused
	}
	if v == nil {
		m.services[one.Name] = &modelService{ephemeral: one.Ephemeral}
	}
	m.instances[name(one.Key)] = &modelInstance{one, m.now, timeout, expire}
	return nil
}

func (m *model) remove(one *modelInstance) {
	delete(m.instances, name(one.Key))
	if o := m.overlays[name(one.Key)]; o != nil {
		o.goneAt = m.now
	}
	if !m.inhabited(one.Name) {
		m.services[one.Name].emptyAt = m.now
	}
}

func (m *model) find(k Key) *modelInstance {
	if one := m.instances[name(k)]; one != nil && one.Ephemeral == k.Ephemeral {
		return one
	}
	return nil
}

func (m *model) tick(passed time.Duration) {
	m.now += passed
	for _, one := range m.instances {
		silence := m.now - one.last
		if !one.Ephemeral {
			continue
		}
		if silence > one.timeout {
			one.Healthy = false
		}
		if silence > one.expire {
			m.remove(one)
		}
	}
	for at, o := range m.overlays {
		if m.instances[at] == nil && m.now-o.goneAt >= time.Minute {
			delete(m.overlays, at)
		}
	}
	for service, v := range m.services {
		if !m.inhabited(service) && m.now-v.emptyAt >= time.Minute {
			m.forget(service)
		}
	}
}

func (m *model) forget(service string) {
	delete(m.services, service)
	maps.DeleteFunc(m.overlays, func(at string, _ *modelOverlay) bool { return at[:len(service)+1] == service+"/" })
}

// restart loses what is ephemeral, but for the overlays, which hold their
// service for a minute more.
func (m *model) restart() {
	for _, one := range m.instances {
		if one.Ephemeral {
			delete(m.instances, name(one.Key))
		}
	}
	for at, o := range m.overlays {
		if m.instances[at] == nil {
			o.goneAt = m.now
		}
	}
	for service, v := range m.services {
		held := !v.ephemeral
		for at := range m.overlays {
			held = held || at[:len(service)+1] == service+"/"
		}
		if !held {
			delete(m.services, service)
		}
		v.emptyAt = m.now
	}
}

// seen is the instance as it should be read.
func (m *model) seen(one *modelInstance) string {
	weight, enabled := one.Weight, one.Enabled
	if o := m.overlays[name(one.Key)]; o != nil {
		if o.weight != nil {
			weight = *o.weight
		}
		if o.enabled != nil {
			enabled = *o.enabled
		}
	}
	return fmt.Sprintf("weight %v enabled %v healthy %v", weight, enabled, one.Healthy)
}

func TestStoreBehavesAsTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(t *rapid.T) {
			p := &play{s: NewStore(), m: &model{
				services: map[string]*modelService{}, instances: map[string]*modelInstance{}, overlays: map[string]*modelOverlay{}}}
			t.Repeat(map[string]func(*rapid.T){
				"register": p.register, "mark": p.mark, "beat": p.beat, "deregister": p.deregister, "health": p.health,
				"override": p.override, "update": p.update, "delete": p.deleteService,
				"wait": p.wait, "wait more": p.wait, "wait long": p.waitLong, "stop": p.stop, "restart": p.restart,
				"": p.check,
			})
		})
	})
}

// timeless hides the method Deadline, which must not be called in a bubble.
type timeless struct{ testing.TB }

// play is the store and the model side by side.
type play struct {
	s *Store
	m *model
}

func (p *play) key(t *rapid.T) Key {
	return Key{
		Service:   Service{DefaultNamespace, DefaultGroup, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "service")},
		Cluster:   DefaultCluster,
		IP:        rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "web-1"}).Draw(t, "ip"),
		Port:      8080,
		Ephemeral: rapid.SampledFrom([]bool{true, true, false}).Draw(t, "ephemeral"),
	}
}

func same(t *rapid.T, what string, got, want error) {
	t.Helper()
	if want == nil && got != nil || want != nil && !errors.Is(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (p *play) register(t *rapid.T) { p.publish(t, p.s.Register, false) }
func (p *play) mark(t *rapid.T)     { p.publish(t, p.s.Mark, true) }

func (p *play) publish(t *rapid.T, do func(context.Context, Instance) error, mustExist bool) {
	one := Instance{
		Key:     p.key(t),
		Weight:  float64(rapid.IntRange(0, 2).Draw(t, "weight")),
		Enabled: rapid.Bool().Draw(t, "enabled"),
		Healthy: rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "healthy"),
	}
	timeout, expire := 15*time.Second, 30*time.Second
	if rapid.Bool().Draw(t, "own periods") {
		timeout, expire = 7*time.Second, 6*time.Second
		one.Metadata = map[string]string{KeyBeatTimeout: "7000", KeyDeleteTimeout: "6000"}
	}
	same(t, "register", do(t.Context(), one), p.m.register(one, timeout, expire, mustExist))
}

func (p *play) beat(t *rapid.T) {
	k := p.key(t)
	var want error
	if one := p.m.find(k); one != nil && k.Ephemeral {
		one.last, one.Healthy = p.m.now, true
	} else {
		want = ErrNotFound
	}
	_, err := p.s.Beat(t.Context(), Instance{Key: k})
	same(t, "beat", err, want)
}

func (p *play) deregister(t *rapid.T) {
	k := p.key(t)
	same(t, "deregister", p.s.Deregister(t.Context(), k), nil)
	if one := p.m.find(k); one != nil {
		p.m.remove(one)
	}
}

func (p *play) health(t *rapid.T) {
	k, healthy := p.key(t), rapid.Bool().Draw(t, "healthy")
	var want error
	if one := p.m.find(k); one != nil {
		one.Healthy = healthy
	} else {
		want = ErrNotFound
	}
	same(t, "health", p.s.SetHealth(t.Context(), Instance{Key: k}, healthy), want)
}

func (p *play) override(t *rapid.T) {
	k, weight := p.key(t), float64(rapid.IntRange(3, 5).Draw(t, "weight"))
	var want error
	if p.m.find(k) != nil {
		p.m.overlay(k).weight = &weight
	} else {
		want = ErrNotFound
	}
	same(t, "override", p.s.Override(t.Context(), k, Overlay{Weight: &weight}), want)
}

func (m *model) overlay(k Key) *modelOverlay {
	if m.overlays[name(k)] == nil {
		m.overlays[name(k)] = &modelOverlay{}
	}
	m.overlays[name(k)].goneAt = m.now
	return m.overlays[name(k)]
}

func (p *play) update(t *rapid.T) {
	k, weight, enabled := p.key(t), float64(rapid.IntRange(6, 8).Draw(t, "weight")), rapid.Bool().Draw(t, "enabled")
	var want error
	if v := p.m.services[k.Name]; v != nil {
		o := p.m.overlay(k)
		o.weight, o.enabled = &weight, &enabled
		if !p.m.inhabited(k.Name) {
			v.emptyAt = p.m.now
		}
	} else {
		want = ErrRefused
	}
	same(t, "update", p.s.Update(t.Context(), k, weight, enabled, nil), want)
}

func (p *play) deleteService(t *rapid.T) {
	k := p.key(t)
	var want error
	if p.m.services[k.Name] == nil || p.m.inhabited(k.Name) {
		want = ErrRefused
	} else {
		p.m.forget(k.Name)
	}
	same(t, "delete", p.s.DeleteService(t.Context(), k.Service), want)
}

func (p *play) wait(t *rapid.T)     { p.ticks(rapid.IntRange(1, 12).Draw(t, "ticks")) }
func (p *play) waitLong(t *rapid.T) { p.ticks(rapid.IntRange(20, 140).Draw(t, "ticks")) }

func (p *play) ticks(n int) {
	for range n {
		time.Sleep(sweepPeriod)
		p.sweep(sweepPeriod)
	}
}

func (p *play) sweep(counts time.Duration) {
	p.s.sweep()
	p.s.clean(context.Background())
	p.m.tick(counts)
}

// stop is a process that does not run: of all that time one period counts.
func (p *play) stop(t *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(3, 100).Draw(t, "seconds")) * time.Second)
	p.sweep(sweepPeriod)
}

func (p *play) restart(t *rapid.T) {
	write, err := p.s.Snapshot()
	same(t, "snapshot", err, nil)
	var image bytes.Buffer
	same(t, "write", write(&image), nil)
	p.s = NewStore()
	same(t, "restore", p.s.Restore(&image), nil)
	p.m.restart()
}

func (p *play) check(t *rapid.T) {
	var want, got []string
	unhealthy := 0
	for _, one := range p.m.instances {
		want = append(want, name(one.Key)+" "+p.m.seen(one))
		if !one.Healthy {
			unhealthy++
		}
	}
	for _, service := range p.s.Services("", "") {
		for _, one := range p.s.All(service) {
			got = append(got, fmt.Sprintf("%s weight %v enabled %v healthy %v", name(one.Key), one.Weight, one.Enabled, one.Healthy))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("got %q\nwant %q", got, want)
	}
	c := p.s.Counts()
	if c.Unhealthy != unhealthy || c.Ephemeral+c.Persistent != len(want) || c.Services != len(p.m.services) {
		t.Fatalf("got %+v, want %d instances, %d unhealthy, services %v", c, len(want), unhealthy, p.m.services)
	}
}
