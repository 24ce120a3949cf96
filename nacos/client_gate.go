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
	mu     sync.Mutex
	keys   map[registry.Key]*passage
	doubts map[registry.Key]time.Time // when a call that can create ended without an answer
}

// passage is what is under way for one instance.
type passage struct {
	leaving int // deregistrations under way
	calls   map[*flight]struct{}
}

// flight is one call.
type flight struct {
	stop   chan struct{} // no further attempt once closed
	cancel context.CancelCauseFunc
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
	ctx, cancel := context.WithCancelCause(ctx)
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
	f.cancel(nil)
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
			f.cancel(errLeaving)
		}
	}
	g.mu.Unlock()
	patience, cancel := context.WithTimeout(ctx, patienceOf(ctx))
	defer cancel()
	for _, f := range flights {
		select {
		case <-f.ended:
		case <-patience.Done():
			f.cancel(errLeaving)
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

// doubt notes that a request that can create was sent and not answered: the
// server may still carry it out.
func (g *gate) doubt(key registry.Key, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.doubts == nil {
		g.doubts = map[registry.Key]time.Time{}
	}
	g.doubts[key] = now
}

// settle gives the time after which an instance that was deregistered must be
// deregistered again, or 0. A server that has not done in one more attempt what
// it was asked for is taken to have dropped it.
func (g *gate) settle(key registry.Key, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.doubts[key]
	delete(g.doubts, key)
	if !ok {
		return 0
	}
	return max(attemptTime-now.Sub(at), 0)
}

// patienceOf is one attempt, or half of the time that is left: the rest is for
// the deregistration itself.
func patienceOf(ctx context.Context) time.Duration {
	if until, ok := ctx.Deadline(); ok {
		return min(attemptTime, time.Until(until)/2)
	}
	return attemptTime
}
