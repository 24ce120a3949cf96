package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// Whoever kills an app to see what happens gets it back by itself.
const (
	backAfter = 15 * time.Second
	pollEvery = 250 * time.Millisecond
)

// runForever starts everything, says where to look, and tells the changes until
// the context ends.
func runForever(ctx context.Context, s *site) error {
	if err := s.startRegistry(ctx); err != nil {
		return err
	}
	for _, start := range []func() error{s.startOrders, s.startLedger, s.startAgent} {
		if err := start(); err != nil {
			return err
		}
	}
	if err := s.client.registerPersistent(ctx, s.ledger); err != nil {
		return err
	}
	s.sayWhereToLook(os.Stdout)
	keep := keeper{site: s, down: map[*process]time.Time{}}
	changes := changes{known: map[string]bool{}, answers: true}
	err := run.Every(ctx, 0, pollEvery, func(ctx context.Context) {
		now := time.Now()
		all, err := s.client.all(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, line := range append(changes.see(all, err), keep.look(ctx, now)...) {
			fmt.Println(now.Format("15:04:05"), "", line)
		}
	})
	fmt.Println("\nstopping ...")
	return err
}

// sayWhereToLook prints addresses and lines to copy.
func (s *site) sayWhereToLook(w io.Writer) {
	at := s.client.address
	fmt.Fprintf(w, `
two small apps in %s that know no registry:
  orders  http://127.0.0.1:%d  process %-7d its agent registers it and beats for it
  ledger  tcp 127.0.0.1:%d     process %-7d persistent: the registry probes it every %s

look at the registry, http://%s/nacos
  curl '%[7]s/nacos/v1/ns/service/list?pageNo=1&pageSize=10'
  curl '%[7]s/nacos/v1/ns/instance/list?serviceName=orders'
  curl '%[7]s/nacos/v1/ns/instance/list?serviceName=ledger'
at the agent and the prober
  curl 127.0.0.1:%d/status
  curl 127.0.0.1:%d/targets
change something (whatever was killed comes back after %v)
  kill %d     # orders
  kill %d     # ledger
  curl -X POST   '%[7]s/nacos/v1/ns/instance?serviceName=mine&ip=127.0.0.1&port=%[4]d&ephemeral=false'
  curl -X DELETE '%[7]s/nacos/v1/ns/instance?serviceName=mine&ip=127.0.0.1&port=%[4]d&ephemeral=false'
data and logs are in %[13]s
Ctrl-C ends all of it and leaves nothing behind. What changes:

`, s.language, s.orders.port, s.ordersRuns.pid(), s.ledger.port, s.ledgerRuns.pid(), s.probe, at,
		s.agentAdmin, s.admin, backAfter, s.ordersRuns.pid(), s.ledgerRuns.pid(), s.folder)
}

// changes turns what is listed into lines about what changed.
type changes struct {
	known   map[string]bool // instance to healthy
	order   []string        // of known
	answers bool            // the registry did, the last time
}

// see compares a list, or the failure to get it, to the one before.
func (c *changes) see(all []seen, err error) (lines []string) {
	if answers := err == nil; answers != c.answers {
		c.answers = answers
		lines = append(lines, map[bool]string{true: "the registry answers again", false: "the registry does not answer"}[answers])
	}
	if err != nil {
		return lines
	}
	words := map[bool]string{true: "healthy", false: "unhealthy"}
	before, order := c.known, c.order
	c.known, c.order = make(map[string]bool, len(all)), nil
	for _, s := range all {
		name := s.name()
		c.known[name], c.order = s.Healthy, append(c.order, name)
		if healthy, known := before[name]; !known {
			lines = append(lines, fmt.Sprintf("%s is listed, %s", name, words[s.Healthy]))
		} else if healthy != s.Healthy {
			lines = append(lines, fmt.Sprintf("%s is %s", name, words[s.Healthy]))
		}
	}
	for _, name := range order {
		if _, listed := c.known[name]; !listed {
			lines = append(lines, name+" is gone from the list")
		}
	}
	return lines
}

// keeper starts again what somebody has killed.
type keeper struct {
	*site
	down map[*process]time.Time // since when
}

// look tells what it saw and did.
func (k *keeper) look(ctx context.Context, now time.Time) (lines []string) {
	for _, a := range []struct {
		runs  **process
		start func() error
	}{
		{&k.registry, func() error { return k.startRegistry(ctx) }},
		{&k.ordersRuns, k.startOrders}, {&k.ledgerRuns, k.startLedger}, {&k.agent, k.startAgent},
	} {
		p := *a.runs
		if p.alive() {
			continue
		}
		since, told := k.down[p]
		if !told {
			k.down[p] = now
			lines = append(lines, fmt.Sprintf("the process of %s has ended", p.name))
		}
		if told && now.Sub(since) >= backAfter {
			delete(k.down, p)
			err := a.start()
			line := fmt.Sprintf("%s is started again", p.name)
			if err != nil {
				line = err.Error()
			} else {
				line += fmt.Sprintf(", process %d", (*a.runs).pid())
			}
			lines = append(lines, line)
		}
	}
	return lines
}
