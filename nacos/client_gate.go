package nacos

import (
	"context"
	"sync"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// gate keeps writes of an instance from overtaking its deregistration. A beat
// that cannot create is cancelled; a call that can create is waited for,
// because a request that is cancelled may still be carried out by the server
// after the deregistration.
type gate struct {
	mu   sync.Mutex
	keys map[registry.Key]*passage
}

// passage is what is under way for one instance.
type passage struct {
	leaving int // deregistrations under way
	calls   map[*flight]struct{}
}

// flight is one call.
type flight struct {
	stop   chan struct{} // no further attempt once closed
	cancel context.CancelFunc
	ended  chan struct{}
	may    bool // create
}

// enter lets a write of key begin, or gives errLeaving. The flight's end must
// be told with leave.
func (g *gate) enter(ctx context.Context, key registry.Key, creates bool) (context.Context, *flight, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.passage(key)
	if p.leaving > 0 {
		return nil, nil, errLeaving
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &flight{stop: make(chan struct{}), cancel: cancel, ended: make(chan struct{}), may: creates}
	p.calls[f] = struct{}{}
	return ctx, f, nil
}

func (g *gate) passage(key registry.Key) *passage {
	p := g.keys[key]
	if p == nil {
		p = &passage{calls: map[*flight]struct{}{}}
		if g.keys == nil {
			g.keys = map[registry.Key]*passage{}
		}
		g.keys[key] = p
	}
	return p
}

func (g *gate) leave(key registry.Key, f *flight) {
	f.cancel()
	close(f.ended)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.keys[key].calls, f)
	g.tidy(key)
}

func (g *gate) tidy(key registry.Key) {
	if p := g.keys[key]; p.leaving == 0 && len(p.calls) == 0 {
		delete(g.keys, key)
	}
}

// shut lets no write of key begin until open is called, and waits for those
// under way: for at most one attempt, then they are cancelled.
func (g *gate) shut(ctx context.Context, key registry.Key) (open func()) {
	g.mu.Lock()
	p := g.passage(key)
	p.leaving++
	flights := make([]*flight, 0, len(p.calls))
	for f := range p.calls {
		flights = append(flights, f)
		if p.leaving == 1 {
			close(f.stop)
		}
		if !f.may {
			f.cancel()
		}
	}
	g.mu.Unlock()
	patience, cancel := context.WithTimeout(ctx, patienceOf(ctx))
	defer cancel()
	for _, f := range flights {
		select {
		case <-f.ended:
		case <-patience.Done():
			f.cancel()
			<-f.ended
		}
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		p.leaving--
		g.tidy(key)
	}
}

// patienceOf is one attempt, or half of the time that is left: the rest is for
// the deregistration itself.
func patienceOf(ctx context.Context) time.Duration {
	if until, ok := ctx.Deadline(); ok {
		return min(attemptTime, time.Until(until)/2)
	}
	return attemptTime
}
