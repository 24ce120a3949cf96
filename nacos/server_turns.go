package nacos

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// places are taken by reads that are not prompt, and by lists that have to be
// rendered. They take half of the processors at most: a thousand at once would
// otherwise stand before each beat in the queue. Who waits does so behind those
// of his own address: the addresses take turns, so that one that asks for a
// thousand reads costs another the time of one. Nobody who has a place asks for
// another.
type places struct {
	mu      sync.Mutex
	free    int
	waiting map[*guest][]chan struct{} // closed when it is their turn
	order   []*guest                   // who waits, each once, the next first
}

func newPlaces() *places {
	return &places{free: max(1, runtime.GOMAXPROCS(0)/2), waiting: map[*guest][]chan struct{}{}}
}

// enter takes a place for an address, nil for all that came through no Bound,
// and reports false when there was none until the context ended; leave gives it
// back. Without places there is no end of them.
func (p *places) enter(ctx context.Context, from *guest) bool {
	if p == nil {
		return true
	}
	turn := p.queue(from)
	if turn == nil {
		return true
	}
	select {
	case <-turn:
		return true
	case <-ctx.Done():
		return !p.withdraw(from, turn)
	}
}

// queue takes a free place and gives nil, or gives what to wait for.
func (p *places) queue(from *guest) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 {
		p.free--
		return nil
	}
	turn := make(chan struct{})
	if len(p.waiting[from]) == 0 {
		p.order = append(p.order, from)
	}
	p.waiting[from] = append(p.waiting[from], turn)
	return turn
}

// withdraw reports false when the place was given meanwhile.
func (p *places) withdraw(from *guest, turn chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.waiting[from], turn)
	if at < 0 {
		return false
	}
	if p.waiting[from] = slices.Delete(p.waiting[from], at, at+1); len(p.waiting[from]) == 0 {
		delete(p.waiting, from)
		p.order = slices.DeleteFunc(p.order, func(g *guest) bool { return g == from })
	}
	return true
}

func (p *places) leave() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) == 0 {
		p.free++
		return
	}
	next := p.order[0]
	p.order = p.order[1:]
	all := p.waiting[next]
	if len(all) == 1 {
		delete(p.waiting, next)
	} else {
		p.waiting[next] = all[1:]
		p.order = append(p.order, next)
	}
	close(all[0])
}
