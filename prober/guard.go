package prober

import (
	"math/bits"
	"time"
)

// pause notices that the process itself was stopped: a signal, a suspended
// machine, a stolen CPU. The scheduler comes by at least every tickMost; when
// it did not for longer than most, what happened in between says nothing about
// any target.
type pause struct {
	most       time.Duration
	seen, wall time.Duration
}

// came notes that the process is running, and tells that it was not for too
// long. wall is the wall clock: it goes on during a suspend, when now does not.
// A step of the wall clock forward looks the same and does as little harm.
func (p *pause) came(now, wall time.Duration) (stopped bool) {
	stopped = p.seen > 0 && (now-p.seen > p.most || wall-p.wall > p.most)
	p.seen, p.wall = max(now, p.seen), wall
	return stopped
}

// mostPause is half the timeout: a shorter stop cannot by itself turn an answer
// in time into a timeout. Under half a second everyday scheduling would trip it,
// over two seconds a confirmation is due in between.
func mostPause(timeout time.Duration) time.Duration {
	return min(max(timeout/2, 500*time.Millisecond), 2*time.Second)
}

// sight tells whether the prober sees anything at all. It is fed with the
// answers of targets that have answered before; silence of a target that is
// known to be down is no news and is left out.
type sight struct {
	round  uint32 // grows with each sign of life of the network
	silent int    // targets that fell silent since then, each counted once
	asked  uint64 // the latest 64 questions: 1 could not be asked
	n      int
}

// Blind are five targets silent at once without one other answer, or five
// questions and more than half of the latest that could not be asked.
const blindLeast = 5

// answered: something came back, be it a refusal: there is a network.
func (s *sight) answered() {
	if s.silent > 0 {
		s.round++
		s.silent = 0
	}
	s.push(0)
}

// quiet: nothing came back until the timeout. mark is the target's own memory
// of having been counted.
func (s *sight) quiet(mark *uint32) {
	s.push(0)
	if *mark != s.round+1 {
		*mark = s.round + 1
		s.silent++
	}
}

// unasked: the question could not be asked.
func (s *sight) unasked() { s.push(1) }

func (s *sight) push(bit uint64) {
	s.asked = s.asked<<1 | bit
	s.n = min(s.n+1, 64)
}

func (s *sight) blind() bool {
	unasked := bits.OnesCount64(s.asked)
	return s.silent >= blindLeast || unasked >= blindLeast && unasked*2 > s.n
}

// contact remembers whether the registry could be reached. A registry that
// answers "no" is reached.
type contact struct{ made, lost bool }

// tried notes the outcome of a call and tells whether that changed anything.
func (c *contact) tried(reached bool) (changed bool) {
	changed = c.lost == reached || reached && !c.made
	c.made, c.lost = c.made || reached, !reached
	return changed
}

// ok: the registry was reached the last time.
func (c *contact) ok() bool { return c.made && !c.lost }

// belief decides whether a list that lacks known targets is believed at once.
type belief struct{ doubted bool }

// A list is suspicious that is empty, or lacks more than a fifth of what is
// known and at least five.
const (
	lackShare = 5
	lackLeast = 5
)

// holds is shown each complete list once: how many targets are known, and how
// many of them it lacks. A suspicious list is believed the second time in a row.
func (b *belief) holds(known, lacking int) bool {
	empty := known > 0 && lacking == known
	small := lacking >= lackLeast && lacking*lackShare > known
	b.doubted = (empty || small) && !b.doubted
	return !b.doubted
}
