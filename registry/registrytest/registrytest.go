// Package registrytest holds every implementation of a registry to the same
// rules: the store in process, and a client over each wire.
package registrytest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// Registry is what the agent and the prober need, together.
type Registry interface {
	Register(context.Context, registry.Instance) error
	Beat(context.Context, registry.Instance) (time.Duration, error)
	Mark(context.Context, registry.Instance) error
	Deregister(context.Context, registry.Key) error
	Get(context.Context, registry.Key) (registry.Instance, error)
	List(ctx context.Context, from string) (registry.Page, error)
	SetHealth(ctx context.Context, seen registry.Instance, healthy bool) error
}

// Can says what a registry is able to promise.
type Can struct {
	Revisions     bool          // Get gives a Revision that grows with each change
	CompareAndSet bool          // SetHealth refuses what is stale, and List works
	Expiry        bool          // silence has its consequences, in the time of the test
	Enabled       bool          // Get tells whether an instance is enabled
	Lag           time.Duration // how long a read may be behind the writes; 0: not at all
}

// Rule is one promise. Check fails the test when the registry, which must be
// empty, breaks it.
type Rule struct {
	Name  string
	Check func(t *testing.T, r Registry, can Can)
	needs func(Can) bool // nil: everybody has to keep it
}

// Applies tells whether a registry has to keep the rule.
func (r Rule) Applies(can Can) bool { return r.needs == nil || r.needs(can) }

// Run holds a registry to all Rules that apply, one after another and without
// subtests, so that it works in a synctest bubble. open gives an empty registry
// each time; what it starts must end by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Registry, can Can) {
	t.Helper()
	for _, rule := range Rules {
		if rule.Applies(can) && !t.Failed() {
			rule.Check(t, open(t), can)
			if t.Failed() {
				t.Errorf("the rule that broke: %s", rule.Name)
			}
		}
	}
}

func compareAndSet(can Can) bool { return can.CompareAndSet }
func revisions(can Can) bool     { return can.Revisions }
func expiry(can Can) bool        { return can.Expiry }

// harness is one registry under one test.
type harness struct {
	*testing.T
	Registry
	can Can
}

// instance gives a healthy one of 10.0.0.x.
func instance(service string, last string, ephemeral bool) registry.Instance {
	return registry.Instance{
		Key: registry.Key{
			Service: registry.Service{Namespace: "dev", Group: "shop", Name: service},
			Cluster: "DEFAULT", IP: "10.0.0." + last, Port: 8080, Ephemeral: ephemeral,
		},
		Weight: 1, Enabled: true, Healthy: true, Metadata: map[string]string{},
	}
}

// must stops the test at an error.
func (h harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// read waits until the registry says what is wanted, as long as it may lag.
func (h harness) read(k registry.Key, right func(registry.Instance, error) bool) (registry.Instance, error) {
	h.Helper()
	deadline := time.Now().Add(h.can.Lag)
	for {
		got, err := h.Get(h.Context(), k)
		if right(got, err) || !time.Now().Before(deadline) {
			return got, err
		}
		h.must(run.Wait(h.Context(), 50*time.Millisecond))
	}
}

// sees checks that the registry has the instance as it should be; the revision
// does not matter, nor does enabled where the registry does not tell it.
func (h harness) sees(want registry.Instance) registry.Instance {
	h.Helper()
	ignore := []string{"Revision"}
	if !h.can.Enabled {
		ignore = append(ignore, "Enabled")
	}
	options := cmp.Options{cmpopts.IgnoreFields(registry.Instance{}, ignore...), cmpopts.EquateEmpty()}
	got, err := h.read(want.Key, func(got registry.Instance, err error) bool {
		return err == nil && cmp.Equal(want, got, options)
	})
	if err != nil {
		h.Fatalf("cannot read %s back: %v", want.Key, err)
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		h.Fatalf("%s is not what it should be (-want +got):\n%s", want.Key, diff)
	}
	return got
}

// misses checks that the registry does not know the instance.
func (h harness) misses(k registry.Key) {
	h.Helper()
	_, err := h.read(k, func(_ registry.Instance, err error) bool { return err != nil })
	h.fails("reading "+k.String(), err, registry.ErrNotFound)
}

// pages reads the whole list.
func (h harness) pages() (all []registry.Instance, pages int) {
	h.Helper()
	for from := ""; ; {
		page, err := h.List(h.Context(), from)
		h.must(err)
		if len(page.Failed) > 0 {
			h.Fatalf("could not read %v", page.Failed)
		}
		all, pages = append(all, page.Instances...), pages+1
		if from = page.Next; from == "" {
			return all, pages
		}
	}
}
