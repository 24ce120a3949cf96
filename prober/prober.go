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
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
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

// Prober is the whole: make one with New, set the fields, call Run
// once. All other methods are safe for concurrent use.
type Prober struct {
	// Changed tells of changes in the registry until the context ends, when
	// the registry is in the process: then they are listed at once. It may be
	// nil.
	Changed func(ctx context.Context, tell func([]registry.Service)) error
	// Observe tells whether another prober works inside the registry; then
	// this one writes nothing. It is asked before each listing; nil: nobody
	// does.
	Observe func(ctx context.Context) (bool, error)
	// Paused tells whether health checks are switched off: then nobody is asked
	// and nothing is written. It is called several times a second; nil: never.
	Paused func() bool

	registry Registry
	asker    Asker
	log      *logrus.Logger
	start    time.Time
	wall     time.Time // start, without its monotonic part

	workers *run.Set
	toWrite run.Bell
	toList  run.Bell

	mu   sync.Mutex
	core *core

	// When each loop came by last, in nanoseconds since the start; 0: Run was
	// not called yet.
	scheduled, listed, wrote atomic.Int64
}

// New checks the settings and makes a prober. It starts nothing.
func New(cfg Config, reg Registry, ask Asker, log *logrus.Logger) (*Prober, error) {
	if err := cfg.Probe.Validate(); err != nil {
		return nil, err
	}
	in, err := newScope(&cfg.Probe)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	p := &Prober{
		registry: reg, asker: ask, log: log, start: now, wall: now.Round(0),
		workers: run.NewSet(cfg.ProbeInFlight), toWrite: run.NewBell(), toList: run.NewBell(),
		core: newCore(cfg.Probe, in, time.Duration(now.UnixNano())),
	}
	p.core.wall = func(time.Duration) time.Duration { return time.Now().Round(0).Sub(p.wall) }
	return p, nil
}

// Run probes until the context ends, and returns when nothing of it runs any
// more.
func (p *Prober) Run(ctx context.Context) error {
	defer p.workers.Wait()
	for _, loop := range []*atomic.Int64{&p.scheduled, &p.listed, &p.wrote} {
		loop.Store(int64(p.now()))
	}
	parts := []run.Part{p.schedule, p.list, p.write}
	if p.Changed != nil {
		parts = append(parts, func(ctx context.Context) error {
			return p.Changed(ctx, func([]registry.Service) { p.toList.Ring() })
		})
	}
	return run.All(ctx, parts...)
}

func (p *Prober) now() time.Duration { return time.Since(p.start) }

// with calls do with the core and the time, under the lock, and writes the log
// lines it left when the lock is free again.
func (p *Prober) with(do func(c *core, now time.Duration)) {
	p.mu.Lock()
	do(p.core, p.now())
	lines := p.core.lines
	p.core.lines = nil
	p.mu.Unlock()
	for _, l := range lines {
		p.log.WithFields(l.fields).Log(l.level, l.text)
	}
}
