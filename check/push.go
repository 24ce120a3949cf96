package check

import (
	"fmt"
	"sync"
	"time"
)

const (
	maxPushName  = 128  // bytes
	maxPushNames = 1024 // names of strangers are not remembered without end
)

// pushed is what an app said last. at is compared on the monotonic clock.
type pushed struct {
	ok   bool
	ttl  time.Duration
	note string
	at   time.Time
}

type pushes struct {
	mu    sync.Mutex
	born  time.Time
	known map[string]pushed
}

func (p *pushes) put(name string, said pushed) {
	if len(name) > maxPushName {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = make(map[string]pushed)
	}
	if _, found := p.known[name]; found || len(p.known) < maxPushNames {
		p.known[name] = said
	}
}

func (p *pushes) ask(name string, ttl time.Duration) Answer {
	p.mu.Lock()
	said, found := p.known[name]
	p.mu.Unlock()
	if !found {
		return unheard(time.Since(p.born), ttl)
	}
	return heard(said, time.Since(said.at), ttl)
}

// unheard is the answer for an app that has not said anything in the time we
// have been listening: it may have done so just before we were started.
func unheard(listening, ttl time.Duration) Answer {
	if listening < ttl {
		return Answer{Kind: Unknown, Reason: "nothing pushed yet"}
	}
	return Answer{Kind: Sick, Reason: fmt.Sprintf("nothing pushed in %v", ttl)}
}

func heard(said pushed, ago, ttl time.Duration) Answer {
	if said.ttl > 0 {
		ttl = said.ttl
	}
	ago = ago.Round(100 * time.Millisecond)
	switch {
	case ago >= ttl:
		return Answer{Kind: Sick, Reason: fmt.Sprintf("last push %v ago, over %v", ago, ttl)}
	case !said.ok:
		return Answer{Kind: Sick, Reason: "pushed as failing: " + said.note}
	case said.note != "":
		return Answer{Kind: Well, Reason: fmt.Sprintf("pushed %v ago: %s", ago, said.note)}
	}
	return Answer{Kind: Well, Reason: fmt.Sprintf("pushed %v ago", ago)}
}
