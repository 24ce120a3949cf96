package nacos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

const (
	// budgetTime is how long a call takes at most, all its attempts together:
	// shorter than the 5 s between two beats.
	budgetTime = 4 * time.Second
	// attemptTime is how long one server gets at most. Nacos holds the 503 of
	// an overload back for 1 s, and a node that is not responsible takes up to
	// 2 s to forward a beat.
	attemptTime = 2500 * time.Millisecond
	// attemptLeast is what a server gets even when many are left to ask.
	attemptLeast = 1200 * time.Millisecond
	// roundsMost keeps a registry that is overloaded from being asked more
	// often than a beat a second.
	roundsMost = 3
	// hopJitter is the most that is waited before the next server of a round,
	// so that a thousand agents do not fall on the survivor in one instant.
	hopJitter = 150 * time.Millisecond
	// roundJitter is the most that is waited before the second round; it
	// doubles (full jitter).
	roundJitter = 600 * time.Millisecond
)

// task names what is done for errors, and lets it be given up between two
// attempts.
type task struct {
	what, on string          // "beat", "group@@name@ip:port"
	stop     <-chan struct{} // no attempt starts once closed; may be nil
}

func (t task) failed(why error) error { return fmt.Errorf("cannot %s %s: %w", t.what, t.on, why) }

func (t task) stopped() bool {
	select {
	case <-t.stop:
		return true
	default:
		return false
	}
}

// errLeaving ends a call whose instance is being deregistered.
var errLeaving = errors.New("the instance is being deregistered")

// try asks the servers in turn until one gives an answer that no other server
// would give better: each once a round, with full jitter between rounds, within
// the budget. It is the only place where anything is tried again.
func (c *Client) try(parent context.Context, what task, ask func(context.Context, *server) error) error {
	ctx, cancel := context.WithTimeout(parent, c.budget)
	defer cancel()
	last := error(&failure{word: registry.ErrUnavailable, text: "no time left to ask"})
	for round := range roundsMost {
		var heard []error
		order := c.pool.round(time.Now())
		for i, s := range order {
			if round+i > 0 && (run.Wait(ctx, pauseBefore(round, i)) != nil || noTime(ctx)) {
				return what.failed(ended(parent, heard, last))
			}
			if what.stopped() {
				return what.failed(errLeaving)
			}
			err := c.attempt(ctx, s, len(order)-i, ask)
			if !blamed(err) {
				return c.settled(s, what, err, heard)
			}
			if errors.Is(parent.Err(), context.Canceled) {
				return what.failed(context.Cause(parent)) // nobody's fault
			}
			c.pool.bad(s, time.Now())
			heard = append(heard, err)
		}
		last = nobody(heard)
	}
	return what.failed(last)
}

// ended says why no more time is spent: the caller gave up, or what the servers
// of this round said, or those of the round before.
func ended(parent context.Context, heard []error, last error) error {
	switch {
	case errors.Is(parent.Err(), context.Canceled):
		return context.Cause(parent)
	case len(heard) > 0:
		return nobody(heard)
	}
	return last
}

// attempt asks one server, for its share of the time that is left.
func (c *Client) attempt(ctx context.Context, s *server, left int, ask func(context.Context, *server) error) error {
	until, _ := ctx.Deadline() // try has set one
	share := min(max(time.Until(until)/time.Duration(left), attemptLeast), attemptTime)
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	return ask(ctx, s)
}

// settled ends a call: the server answered as a registry does, whether it did
// what was asked or refused; or nobody had to be asked.
func (c *Client) settled(s *server, what task, err error, heard []error) error {
	var f *failure
	if errors.As(err, &f) && f.unasked {
		return what.failed(err)
	}
	left := c.pool.good(s)
	if left != nil && c.log != nil {
		entry := c.log.WithField("registry", s.base)
		if len(heard) > 0 {
			entry = entry.WithField("cause", heard[0].Error())
		}
		entry.Warn("registry changed")
	}
	if err != nil {
		return what.failed(err)
	}
	return nil
}

// blamed tells that another server may do better.
func blamed(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.blame
}

func pauseBefore(round, i int) time.Duration {
	if i > 0 {
		return rand.N(hopJitter)
	}
	return rand.N(roundJitter << (round - 1))
}

// noTime tells that too little is left for an attempt that could succeed.
func noTime(ctx context.Context) bool {
	until, ok := ctx.Deadline()
	return ok && time.Until(until) < 50*time.Millisecond
}

// nobody joins what the servers of a round said. What follows from it follows
// from the last one.
func nobody(heard []error) error {
	if len(heard) == 1 {
		return heard[0]
	}
	texts := make([]string, len(heard))
	for i, err := range heard {
		texts[i] = err.Error()
	}
	return &failure{word: registry.ErrUnavailable, cause: heard[len(heard)-1], text: "no registry did it: " + strings.Join(texts, "; ")}
}
