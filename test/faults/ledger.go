package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ledger knows what a registry has acknowledged: for each thing the value that
// it must have, and those that it may have because nobody knows what became of
// a write that was not acknowledged.
type ledger struct {
	gate  sync.RWMutex // held by whoever writes; shut while somebody reads all
	mu    sync.Mutex
	facts map[string]fact
	taken map[string]int // acknowledged writes, by what was written
}

type fact struct {
	value string // "": it is not there
	maybe []string
}

// tried notes a write of the kind.
func (l *ledger) tried(kind, name, value string, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.facts == nil {
		l.facts, l.taken = map[string]fact{switchName: {value: switchDefault}}, map[string]int{}
	}
	if acknowledged {
		l.taken[kind]++
		l.facts[name] = fact{value: value}
		return
	}
	f := l.facts[name]
	l.facts[name] = fact{f.value, append(slices.Clip(f.maybe), value)}
}

// compare gives what is not as it was acknowledged.
func (l *ledger) compare(found map[string]string) (lost []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.facts)) {
		f := l.facts[name]
		if got := found[name]; got != f.value && !slices.Contains(f.maybe, got) {
			lost = append(lost, fmt.Sprintf("%s is %q, acknowledged was %q", name, got, f.value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, known := l.facts[name]; !known && !thereFromTheStart(name) {
			lost = append(lost, fmt.Sprintf("%s is %q, and nobody wrote it", name, found[name]))
		}
	}
	return lost
}

// settle takes what was found for certain: after a restart nothing is on its
// way any more.
func (l *ledger) settle(found map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.facts {
		l.facts[name] = fact{value: found[name]}
	}
}

// acked gives the number of acknowledged writes for the table.
func (l *ledger) acked() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum, each := 0, []string{}
	for _, kind := range slices.Sorted(maps.Keys(l.taken)) {
		sum += l.taken[kind]
		each = append(each, fmt.Sprintf("%d %s", l.taken[kind], kind))
	}
	if sum == 0 {
		return ""
	}
	return fmt.Sprintf("%d writes (%s)", sum, strings.Join(each, ", "))
}

// hold keeps writers still while do runs.
func (l *ledger) hold(do func() error) error {
	l.gate.Lock()
	defer l.gate.Unlock()
	return do()
}

// check reads everything durable and compares it with the ledger. restarted:
// the process has begun anew since the last write.
func (s *scene) check(ctx context.Context, restarted bool) error {
	return s.hold(func() error {
		found, err := s.client.everything(ctx)
		if err != nil {
			return fmt.Errorf("cannot read what is there: %w", err)
		}
		s.lost = append(s.lost, s.compare(found)...)
		if restarted {
			s.settle(found)
		}
		return nil
	})
}
