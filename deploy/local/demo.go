package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidebeat/sidebeat/admin"
)

// A step has to be seen within so long; all of them take a quarter of a minute.
const (
	stepWithin = 15 * time.Second
	beatWithin = 3 * time.Second // the demo's agent beats every second
)

var errMissing = errors.New("the demo has not seen all it should")

// step is one act and what must be seen after it.
type step struct {
	act  string
	do   func() error
	seen string
	so   func() bool
	most time.Duration // 0: stepWithin
}

// demo plays the life of both apps and of the registry.
func demo(ctx context.Context, s *site) error {
	fmt.Printf("two small apps in %s that know no registry: orders has an agent, ledger is probed\n\n", s.language)
	began := time.Now()
	for _, part := range [][]step{s.lifeOfOrders(ctx), s.lifeOfLedger(ctx), s.lifeOfRegistry(ctx)} {
		for _, step := range part {
			if err := s.play(ctx, step); err != nil {
				return fmt.Errorf("%w: %w", errMissing, err)
			}
		}
	}
	fmt.Printf("\nall was seen, in %.0f s\n", time.Since(began).Seconds())
	return nil
}

// play does one step and prints how long it took until it was seen.
func (s *site) play(ctx context.Context, step step) error {
	began := time.Now()
	err := step.do()
	if err == nil {
		err = s.await(ctx, cmp.Or(step.most, stepWithin), step.seen, s.registry, step.so)
	}
	mark := "✔"
	if err != nil {
		mark = "✘"
	}
	fmt.Printf("%s %5.1f s  %s: %s\n", mark, time.Since(began).Seconds(), step.act, step.seen)
	if err != nil && s.agent != nil {
		err = fmt.Errorf("%w\nthe agent's last words:\n%s\nthe registry's last words:\n%s", err, s.agent.lastWords(), s.registry.lastWords())
	}
	return err
}

func nothing() error { return nil }

// The four states in which an app can be listed.
func (s *site) healthy(ctx context.Context, a app) func() bool {
	return func() bool {
		all, err := s.client.list(ctx, a.service)
		return err == nil && len(all) == 1 && all[0].Healthy
	}
}

func (s *site) unhealthy(ctx context.Context, a app) func() bool {
	return func() bool {
		all, err := s.client.list(ctx, a.service)
		return err == nil && len(all) == 1 && !all[0].Healthy
	}
}

func (s *site) gone(ctx context.Context, a app) func() bool {
	return func() bool { all, err := s.client.list(ctx, a.service); return err == nil && len(all) == 0 }
}

// agentWorks asks the agent itself.
func (s *site) agentWorks(ctx context.Context) bool {
	status, _, err := admin.Get(ctx, "127.0.0.1:"+port(s.agentAdmin), "/healthz")
	return err == nil && status == 200
}

func (s *site) lifeOfOrders(ctx context.Context) []step {
	waits := func() bool { return s.agentWorks(ctx) && s.gone(ctx, s.orders)() }
	return []step{
		{act: "registry started", do: func() error { return s.startRegistry(ctx) }, seen: "it serves", so: func() bool { return s.serves(ctx) }},
		{act: "agent started before its app", do: s.startAgent, seen: "it works, and nothing is listed", so: waits},
		{act: "orders started", do: s.startOrders, seen: "orders is registered and healthy", so: s.healthy(ctx, s.orders)},
		{act: "orders killed", do: func() error { s.ordersRuns.kill(); return nil }, seen: "orders is unhealthy", so: s.unhealthy(ctx, s.orders)},
		{act: "orders stays down", do: nothing, seen: "orders is gone from the list", so: s.gone(ctx, s.orders)},
		{act: "orders started", do: s.startOrders, seen: "orders is back and healthy", so: s.healthy(ctx, s.orders)},
	}
}

func (s *site) lifeOfLedger(ctx context.Context) []step {
	register := func() error {
		if err := s.startLedger(); err != nil {
			return err
		}
		return s.client.registerPersistent(ctx, s.ledger)
	}
	return []step{
		{act: "ledger started and registered as persistent", do: register, seen: "ledger is listed and healthy", so: s.healthy(ctx, s.ledger)},
		{act: "ledger killed", do: func() error { s.ledgerRuns.kill(); return nil }, seen: "ledger is unhealthy and still listed", so: s.unhealthy(ctx, s.ledger)},
		{act: "ledger started", do: s.startLedger, seen: "ledger is healthy again", so: s.healthy(ctx, s.ledger)},
	}
}

func (s *site) lifeOfRegistry(ctx context.Context) []step {
	restart := func() error {
		s.registry.kill()
		return s.startRegistry(ctx)
	}
	stopAgent := func() error { s.agent.stop(); return nil }
	return []step{
		{act: "registry killed with -9 and started again", do: restart, seen: "ledger is still listed", so: s.healthy(ctx, s.ledger)},
		{act: "orders' agent goes on", do: nothing, seen: "orders is there again within a beat", so: s.healthy(ctx, s.orders), most: beatWithin},
		{act: "agent stopped", do: stopAgent, seen: "orders has left the list", so: s.gone(ctx, s.orders)},
	}
}
