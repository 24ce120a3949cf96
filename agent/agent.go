package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// ErrStillListed is wrapped by the error of Run when an instance could not be
// deregistered: the registry finds it silent after its own time.
var ErrStillListed = errors.New("it may still be listed")

// Registry is what the agent needs of a registry. Every method keeps to the
// deadline of its context. ErrNotFound: it has to be registered again;
// ErrRefused: trying again cannot help.
type Registry interface {
	// Register makes the instance or replaces what was published of it.
	Register(context.Context, registry.Instance) error
	// Beat says that an ephemeral instance lives, and is told the pace.
	Beat(context.Context, registry.Instance) (next time.Duration, err error)
	// Mark sets healthy, enabled and weight as given, by whatever way this
	// registry honours.
	Mark(context.Context, registry.Instance) error
	// Deregister takes the instance out; one that is not there is no error.
	Deregister(context.Context, registry.Key) error
	// Get gives what the registry believes, with the true health.
	Get(context.Context, registry.Key) (registry.Instance, error)
}

// Asker asks a question within the deadline of the context; *check.Asker does.
type Asker interface {
	Ask(context.Context, check.Spec) check.Answer
}

// Agent looks after all apps of one process.
type Agent struct {
	// Route gives our address on the way to the registry; nil: the one on the
	// default route is taken. Set it before Run.
	Route func(context.Context) (netip.Addr, error)
	// Push takes what an app says of itself; nil: there is no such endpoint.
	Push func(name string, ok bool, ttl time.Duration, note string)

	apps   []*app
	finder finder

	mu    sync.Mutex
	taken map[*app]registry.Key
}

// New makes an agent of validated settings; it does no I/O but to read the
// file of apps.
func New(c Config, r Registry, ask Asker, log *logrus.Logger) (*Agent, error) {
	plans, err := c.declared()
	if err != nil {
		return nil, err
	}
	g := &Agent{finder: finder{podIP: c.PodIP, outside: outside}, taken: map[*app]registry.Key{}}
	for _, p := range plans {
		a := newApp(p, r, ask, log)
		if p.host == "" {
			a.find = func(ctx context.Context) (string, error) { return g.locate(ctx, a) }
		} else {
			g.taken[a] = a.life.declared.Key
		}
		g.apps = append(g.apps, a)
	}
	return g, nil
}

// locate finds the address of an app, and refuses one under which another app
// of ours is registered: there is one loop an instance.
func (g *Agent) locate(ctx context.Context, a *app) (string, error) {
	f := g.finder
	f.loopback = a.loopback
	if f.route = g.Route; f.route == nil {
		f.route = f.outside
	}
	host, err := f.find(ctx)
	if err != nil {
		return "", err
	}
	key := a.plan.instance().Key
	key.IP = host
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, k := range g.taken {
		if other != a && k.Service == key.Service && k.Address() == key.Address() {
			return "", fmt.Errorf("cannot register %s: another app of this agent has the same address", key)
		}
	}
	g.taken[a] = key
	return host, nil
}

// Run looks after the apps until the context ends; then it drains them and
// returns when they are out of the registry or SIDEBEAT_DRAIN and some seconds
// have passed. The error wraps ErrStillListed when one could not be taken out.
func (g *Agent) Run(ctx context.Context) error {
	var parts []run.Part
	for _, a := range g.apps {
		parts = append(parts, a.Run)
	}
	return run.All(ctx, parts...)
}

// Drain takes all apps out of the registry and returns when that is done or
// the context ends. Run goes on, but registers nothing any more.
func (g *Agent) Drain(ctx context.Context) error {
	for _, a := range g.apps {
		a.drain()
	}
	for _, a := range g.apps {
		select {
		case <-a.drained:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the drain: %w", ctx.Err())
		}
	}
	var faults []error
	for _, a := range g.apps {
		a.mu.Lock()
		faults = append(faults, a.life.result())
		a.mu.Unlock()
	}
	return errors.Join(faults...)
}

// Healthy tells whether the loops turn. It says nothing about the apps or the
// registry: an agent is not started again because they are down.
func (g *Agent) Healthy() error {
	var faults []error
	for _, a := range g.apps {
		faults = append(faults, a.turning(time.Now()))
	}
	return errors.Join(faults...)
}

func (a *app) turning(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, until := range a.alive {
		if until.IsZero() || !now.After(until) || a.life.phase == left {
			continue
		}
		if i == 0 {
			return fmt.Errorf("the loop that beats for %s does not turn", a.service)
		}
		return fmt.Errorf("check %d of %s does not turn", i, a.service)
	}
	return nil
}

// Ready tells whether every app is up and registered as it should be.
func (g *Agent) Ready() error {
	var faults []error
	for _, a := range g.apps {
		faults = append(faults, a.ready(time.Now()))
	}
	return errors.Join(faults...)
}

func (a *app) ready(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.life
	switch {
	case l.phase != serving:
		return fmt.Errorf("%s is %s", a.service, l.phase)
	case a.panel.verdict != health.Up:
		return fmt.Errorf("%s is %s", a.service, a.panel.verdict)
	case l.stale(now):
		return fmt.Errorf("the checks of %s do not answer", a.service)
	case l.holds != there || l.acked != status{true, true} || l.again:
		return fmt.Errorf("%s is not registered as it should be", a.service)
	}
	return nil
}
