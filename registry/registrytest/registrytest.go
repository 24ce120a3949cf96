// Package registrytest holds every implementation of a registry to the same
// rules: the store in process, and a client over each wire.
package registrytest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
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
	Revisions     bool // Get gives a Revision that grows with each change
	CompareAndSet bool // SetHealth refuses what is stale, and List works
	Expiry        bool // silence has its consequences while the test runs
}

// Run holds a registry to the rules. open gives an empty one; what it started
// must have ended when its cleanups are done. It works in a synctest bubble.
func Run(t *testing.T, open func(t *testing.T) Registry, can Can) {
	t.Helper()
	_ = open(t)
}
