package registry

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// One version never stands for two views: what was rendered for a version may
// be shown as long as that is the version.
func TestVersionStandsForOneView(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) { versions(rt) })
	})
}

func versions(t *rapid.T) {
	s := NewStore()
	ctx := context.Background()
	shown := map[string]string{}
	var services []Service
	for _, name := range []string{"a", "b"} {
		services = append(services, Service{DefaultNamespace, DefaultGroup, name})
	}
	draw := func(t *rapid.T) Instance {
		one := eph(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "service"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "ip"))
		one.Ephemeral = rapid.Bool().Draw(t, "ephemeral")
		one.Healthy, one.Enabled = rapid.Bool().Draw(t, "healthy"), rapid.IntRange(0, 3).Draw(t, "enabled") > 0
		one.Weight = float64(rapid.IntRange(1, 2).Draw(t, "weight"))
		one.Cluster = rapid.SampledFrom([]string{"DEFAULT", "east"}).Draw(t, "cluster")
		return one
	}
	image := taken(t, s)
	t.Repeat(map[string]func(*rapid.T){
		"register":   func(t *rapid.T) { _ = s.Register(ctx, draw(t)) },
		"deregister": func(t *rapid.T) { _ = s.Deregister(ctx, draw(t).Key) },
		"beat":       func(t *rapid.T) { _, _ = s.Beat(ctx, draw(t)) },
		"health":     func(t *rapid.T) { one := draw(t); _ = s.SetHealth(ctx, one, one.Healthy) },
		"override": func(t *rapid.T) {
			one := draw(t)
			_ = s.Override(ctx, one.Key, Overlay{Weight: &one.Weight, Enabled: &one.Enabled})
		},
		"metadata": func(t *rapid.T) {
			one := draw(t)
			_, _ = s.PutMetadata(ctx, one.Service, []Key{one.Key}, map[string]string{"a": fmt.Sprint(one.Weight)})
		},
		"service": func(t *rapid.T) {
			one := draw(t)
			_ = s.UpdateService(ctx, ServiceConfig{Service: one.Service, ProtectThreshold: one.Weight - 1})
		},
		"create": func(t *rapid.T) {
			one := draw(t)
			_ = s.CreateService(ctx, ServiceConfig{Service: one.Service, Ephemeral: one.Ephemeral})
		},
		"delete":   func(t *rapid.T) { _ = s.DeleteService(ctx, draw(t).Service) },
		"cluster":  func(t *rapid.T) { _ = s.SetCluster(ctx, ClusterConfig{Cluster: Cluster{draw(t).Service, "DEFAULT"}}) },
		"snapshot": func(t *rapid.T) { image = taken(t, s) },
		"restore": func(t *rapid.T) {
			if err := s.Restore(bytes.NewReader(image)); err != nil {
				t.Fatal(err)
			}
		},
		"wait": func(t *rapid.T) {
			for range rapid.IntRange(1, 80).Draw(t, "ticks") {
				time.Sleep(sweepPeriod)
				s.sweep()
				s.clean(ctx)
			}
		},
		"": func(t *rapid.T) {
			for _, service := range services {
				at := fmt.Sprint(service, s.Version(service))
				view := fmt.Sprintf("%+v", withoutRevisions(s.View(service, Query{})))
				if before, known := shown[at]; known && before != view {
					t.Fatalf("version %s stood for\n%s\nand now for\n%s", at, before, view)
				}
				shown[at] = view
			}
		},
	})
}

func withoutRevisions(v View) View {
	for i := range v.Instances {
		v.Instances[i].Revision = 0
	}
	return v
}

// The version stays while nothing changes, beats included, and none is given to
// what is not there.
func TestVersionStays(t *testing.T) {
	s := NewStore()
	l := life{t, s}
	one := eph("a", "1")
	if v := s.Version(one.Service); v != 0 {
		t.Errorf("no service has version %d", v)
	}
	l.register(one)
	before := s.Version(one.Service)
	l.beat(one)
	l.register(one, eph("b", "1"))
	if v := s.Version(one.Service); v != before || v == 0 {
		t.Errorf("got %d after %d", v, before)
	}
	l.register(eph("a", "2"))
	if v := s.Version(one.Service); v == before {
		t.Errorf("%d stays with another instance", v)
	}
}

// A service that is there but of which nobody was told yet has no version that
// stood for its absence.
func TestVersionFromTheStart(t *testing.T) {
	s := NewStore()
	service := eph("a", "1").Service
	h := s.shard(service)
	h.mu.Lock()
	h.addService(service, true, 0)
	h.mu.Unlock()
	if s.Version(service) == 0 {
		t.Error("it has the version of a service that is not there")
	}
}
