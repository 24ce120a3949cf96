// Package prober asks the persistent instances of a registry whether they are
// alive, and writes what follows: unhealthy when one is not, healthy when it is
// again. It never creates an instance and never deletes one.
//
//	list -> target -> schedule -> check (ask) -> health (judge) -> write
//
// The rules stand in small values that know no clock and do no I/O: core joins
// them, Prober drives core with goroutines, timers and a registry.
package prober

import (
	"context"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

// Registry is where the instances stand and their health is written.
type Registry interface {
	// List gives the persistent instances with their true health, page by page.
	List(ctx context.Context, from string) (registry.Page, error)
	// Get gives one instance; it is read just before a write.
	Get(ctx context.Context, key registry.Key) (registry.Instance, error)
	// SetHealth changes only the health, and only of what was seen: ErrStale
	// when it changed since, ErrNotFound when it is gone.
	SetHealth(ctx context.Context, seen registry.Instance, healthy bool) error
}

// Asker asks one question within the deadline of the context; check.Asker is
// one.
type Asker interface {
	Ask(ctx context.Context, question check.Spec) check.Answer
}
