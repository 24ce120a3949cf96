package nacos

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A server that failed is asked after the others for this long; the time
// doubles with each failure that follows a cool-down, and is drawn between half
// and whole, so that a thousand agents do not come back in the same instant.
const (
	coolFirst = time.Second
	coolMost  = 30 * time.Second
)

// server is one registry and what is known of it. The pool's lock guards the
// fields below it.
type server struct {
	serverURL
	base string // serverURL.String

	fails int       // failures in a row, a burst counts once
	until time.Time // cooling down before this
	kind  kind      // what the server said it is
	asked time.Time // when; zero: not known
	epoch uint64    // connections opened when it said so
	dials uint64    // connections opened to it so far
	full  bool      // wants full beats

	addrs []netip.Addr // of the latest connections
}

// pool orders the servers of a round: the healthy one that answered last, the
// other healthy ones in random order, then those cooling down, the one whose
// time ends first in front. Nobody is left out: a cool-down is a preference.
type pool struct {
	mu      sync.Mutex
	servers []*server
	sticky  *server
}

func newPool(list []serverURL) *pool {
	p := &pool{}
	for _, a := range list {
		s := &server{serverURL: a, base: a.String()}
		if addr, err := netip.ParseAddr(a.host); err == nil {
			s.addrs = []netip.Addr{addr.Unmap().WithZone("")}
		}
		p.servers = append(p.servers, s)
	}
	return p
}

func (p *pool) round(now time.Time) []*server {
	if len(p.servers) == 1 {
		return p.servers
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	order := slices.Clone(p.servers)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	rank := func(s *server) int {
		switch {
		case s.until.After(now):
			return 2
		case s != p.sticky:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b *server) int {
		if by := cmp.Compare(rank(a), rank(b)); by != 0 || rank(a) < 2 {
			return by
		}
		return a.until.Compare(b.until)
	})
	return order
}

// good notes that s answered as a registry does. It gives the server that was
// left for it, or nil when nothing changed.
func (p *pool) good(s *server) (left *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.fails, s.until = 0, time.Time{}
	if p.sticky == s {
		return nil
	}
	left, p.sticky = p.sticky, s
	return left
}

// bad notes a failure of s. Its kind is asked anew afterwards: who restarts may
// come back as somebody else.
func (p *pool) bad(s *server, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.asked = time.Time{}
	if s.until.After(now) {
		return // failures of calls that ran side by side are one failure
	}
	cool := min(coolFirst<<min(s.fails, 10), coolMost)
	s.fails++
	s.until = now.Add(cool/2 + rand.N(cool/2))
}

// dialed notes a new connection to endpoint.
func (p *pool) dialed(endpoint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		if s.endpoint() == endpoint {
			s.dials++
		}
	}
}

// known gives what s said it is. It is not known any more once a new
// connection was opened, unless s said it a moment ago: a burst of calls opens
// several.
func (p *pool) known(s *server, now time.Time) (kind, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.asked.IsZero() || s.epoch != s.dials && now.Sub(s.asked) > 5*time.Second {
		return kind{}, false
	}
	return s.kind, true
}

func (p *pool) learned(s *server, k kind, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.kind, s.asked, s.epoch = k, now, s.dials
}

func (p *pool) wantsFull(s *server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.full
}

// anyFull tells whether a beat may be a full one, that can create.
func (p *pool) anyFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.servers, func(s *server) bool { return s.full })
}

func (p *pool) setFull(s *server, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.full = full
}
