package registry_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/registrytest"
)

func TestStoreKeepsTheRules(t *testing.T) {
	can := registrytest.Can{Revisions: true, CompareAndSet: true, Expiry: true, Enabled: true}
	for _, rule := range registrytest.Rules {
		if !rule.Applies(can) {
			t.Errorf("the store need not keep %q", rule.Name)
		}
		t.Run(rule.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rule.Check(t, open(t), can) })
		})
	}
}

// The rules in one bubble, as a wire does it.
func TestStoreKeepsTheRulesInOneBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registrytest.Run(t, func(t *testing.T) registrytest.Registry { return open(t) },
			registrytest.Can{Revisions: true, CompareAndSet: true, Expiry: true, Enabled: true})
	})
}

func open(t *testing.T) *registry.Store {
	s := registry.NewStore()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}
