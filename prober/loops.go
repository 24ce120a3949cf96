package prober

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// The scheduler looks at least every tickMost, which is how a stop of the
// process is noticed, and at most every tickLeast, so that many questions are
// started at one waking.
const (
	tickMost  = 100 * time.Millisecond
	tickLeast = 2 * time.Millisecond
)

// How the registry is read: every listEvery, on a change not before listGap
// and listPause times what the last listing took (so that a registry in which
// something always changes costs 5 % of a CPU at most), after a failure within a random
// part of listRetry. A list that shrank a lot is read again after listRetry
// when the registry is in the process, where nothing can be lost on the way.
const (
	listEvery = 10 * time.Second
	listGap   = 200 * time.Millisecond
	listPause = 20
	listRetry = 2 * time.Second
	listMost  = 60 * time.Second
	pageMost  = 5 * time.Second
	manyPages = 100_000 // a registry that names ever more pages is broken
)

// writeMost bounds one read or one write of an instance.
const writeMost = 3 * time.Second

// staleTries is how often an instance that changes under the writer's hands is
// read again before its write goes back to the queue.
const staleTries = 3

// schedule starts the questions that are due.
func (p *Prober) schedule(ctx context.Context) error {
	for {
		var waiting int
		var again time.Duration
		paused := p.paused()
		p.with(func(c *core, now time.Duration) {
			c.rest(now, paused)
			waiting, again = c.tick(now)
		})
		p.scheduled.Store(int64(p.now()))
		for waiting > 0 && p.workers.Go(func() { p.work(ctx) }) {
			waiting--
		}
		if err := run.Wait(ctx, min(max(again, tickLeast), tickMost)); err != nil {
			return err
		}
	}
}

// work asks until nothing is due any more.
func (p *Prober) work(ctx context.Context) {
	for ctx.Err() == nil {
		var j job
		var some bool
		p.with(func(c *core, now time.Duration) { j, some = c.take(now) })
		if !some {
			return
		}
		p.ask(ctx, j)
	}
}

func (p *Prober) ask(ctx context.Context, j job) {
	limited, cancel := context.WithTimeout(ctx, j.timeout)
	a := p.asker.Ask(limited, j.question)
	cancel()
	var ring bool
	p.with(func(c *core, now time.Duration) {
		if ctx.Err() != nil {
			a = check.Answer{Kind: check.Unknown, Reason: "the prober stops"}
		}
		c.settle(now, j, a)
		ring = c.wantsWriter()
	})
	if ring {
		p.toWrite.Ring()
	}
}

// list reads the registry again and again.
func (p *Prober) list(ctx context.Context) error {
	for {
		began := p.now()
		wait, err := p.listOnce(ctx)
		p.listed.Store(int64(p.now()))
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.with(func(c *core, now time.Duration) { c.tally.unlisted++; c.reach(now, err) })
			wait = listRetry/4 + rand.N(listRetry*3/4)
		}
		p.toWrite.Ring()
		took := p.now() - began
		rung, err := run.WaitOr(ctx, wait, p.toList)
		if err == nil && rung {
			err = run.Wait(ctx, max(listGap, listPause*took)-(p.now()-began-took))
		}
		if err != nil {
			return err
		}
	}
}

// listOnce reads the whole list and tells when to do so again.
func (p *Prober) listOnce(ctx context.Context) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, listMost)
	defer cancel()
	if err := p.observe(ctx); err != nil {
		return 0, err
	}
	p.with(func(c *core, now time.Duration) { c.begin(now) })
	var unread []registry.Service
	from := ""
	for range manyPages {
		page, err := p.page(ctx, from)
		if err != nil {
			return 0, fmt.Errorf("cannot list the instances: %w", err)
		}
		unread = append(unread, page.Failed...)
		if from = page.Next; from == "" {
			return p.finish(unread), nil
		}
	}
	return 0, errors.New("cannot list the instances: the list has no end")
}

func (p *Prober) page(ctx context.Context, from string) (registry.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, pageMost)
	defer cancel()
	page, err := p.registry.List(ctx, from)
	if err != nil {
		return page, err
	}
	if page.Next != "" && page.Next == from {
		return page, errors.New("its pages go in a circle")
	}
	p.with(func(c *core, now time.Duration) { c.page(now, page) })
	return page, nil
}

func (p *Prober) finish(unread []registry.Service) (wait time.Duration) {
	wait = listEvery
	p.with(func(c *core, now time.Duration) {
		if !c.finish(now, unread) && p.Changed != nil {
			wait = listRetry
		}
	})
	return wait
}

func (p *Prober) observe(ctx context.Context) error {
	observing := false
	if p.Observe != nil {
		var err error
		if observing, err = p.Observe(ctx); err != nil {
			return fmt.Errorf("cannot ask whether another prober works: %w", err)
		}
	}
	p.with(func(c *core, now time.Duration) { c.observe(now, observing) })
	return nil
}

// write makes the health writes, one after the other: there is one writer.
func (p *Prober) write(ctx context.Context) error {
	for {
		var w write
		var wait time.Duration
		var some bool
		p.with(func(c *core, now time.Duration) { w, wait, some = c.next(now) })
		p.wrote.Store(int64(p.now()))
		if !some {
			if _, err := run.WaitOr(ctx, min(wait, listEvery), p.toWrite); err != nil {
				return err
			}
			continue
		}
		o, err := p.perform(ctx, w)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.with(func(c *core, now time.Duration) { c.wrote(now, w, o, err) })
	}
}

// perform reads the instance, compares and writes the difference.
func (p *Prober) perform(ctx context.Context, w write) (outcome, error) {
	var err error
	for range staleTries {
		var seen registry.Instance
		if seen, err = p.read(ctx, w.key); err != nil {
			return outcomeOf(err), err
		}
		if seen.Healthy == w.healthy {
			return already, nil
		}
		if bySomebody(seen.Metadata) && !w.took {
			return owned, nil
		}
		stands := false
		p.with(func(c *core, now time.Duration) { stands = c.stands(now, w) })
		if !stands {
			return dropped, nil
		}
		if err = p.set(ctx, seen, w.healthy); !errors.Is(err, registry.ErrStale) {
			return outcomeOf(err), err
		}
	}
	return failed, err
}

func (p *Prober) read(ctx context.Context, key registry.Key) (registry.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, writeMost)
	defer cancel()
	seen, err := p.registry.Get(ctx, key)
	var why error
	if outcomeOf(err) == failed {
		why = fmt.Errorf("cannot read %s: %w", key, err)
		p.toList.Ring()
	}
	if ctx.Err() == nil || why != nil {
		p.with(func(c *core, now time.Duration) { c.reach(now, why) })
	}
	return seen, err
}

func (p *Prober) set(ctx context.Context, seen registry.Instance, healthy bool) error {
	ctx, cancel := context.WithTimeout(ctx, writeMost)
	defer cancel()
	return p.registry.SetHealth(ctx, seen, healthy)
}

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return written
	case errors.Is(err, registry.ErrNotFound):
		return gone
	case errors.Is(err, registry.ErrRefused):
		return refused
	}
	return failed
}
