package registry

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/sidebeat/sidebeat/run"
)

// Log makes commands durable and applies them to the store in one order. A nil
// Log applies at once and keeps nothing.
type Log interface {
	// Append returns after the command is durable and applied, with what
	// Store.Apply returned for it. ErrUnavailable: not taken.
	Append(ctx context.Context, command []byte) (any, error)
}

// Store holds the instances of all services in memory: the model of Nacos 2.x.
// What is persistent, and what operators set, goes through a Log; ephemeral
// instances never touch it. All methods are safe for concurrent use.
//
// Locks are taken in the order applying, shard, watchers; none is held while a
// command is appended or somebody is told.
type Store struct {
	log    Log
	odd    func(k Key, name, value string)
	limits Limits
	clock  *clock
	seed   maphash.Seed
	shards [shardCount]shard

	applying sync.Mutex // one command at a time, in the order of the log
	applied  uint64     // commands applied ever; the revision of what is durable
	saved    Switches   // as the log knows them; those in force may differ
	damaged  atomic.Pointer[Damage]

	switches atomic.Pointer[Switches]             // as they are in force
	created  atomic.Pointer[map[string]Namespace] // by id; never changed in place

	changes     atomic.Uint64 // revision of what is ephemeral
	expiries    atomic.Uint64
	watchers    watchers
	names       names
	oddOnes     oddOnes
	subscribers subscribers
}

// shardCount spreads the services over so many locks.
const shardCount = 64

// NewStore returns an empty store that keeps nothing on disk. It is ready to
// use; without Run nothing expires.
func NewStore() *Store {
	s := &Store{clock: newClock(), seed: maphash.MakeSeed()}
	s.saved = defaultSwitches()
	inForce := s.saved
	s.switches.Store(&inForce)
	s.created.Store(&map[string]Namespace{})
	// A revision seen before a restart must not fit anything after it.
	s.changes.Store(1<<40 + rand.Uint64N(1<<48))
	return s
}

// UseLog makes the store durable. Call it before anything else.
func (s *Store) UseLog(l Log) { s.log = l }

// OnOddPeriod has tell called for a preserved.* period that is no plain number
// and therefore counts as the default: once for each service, name and value.
// Call it before anything else. No lock is held during tell.
func (s *Store) OnOddPeriod(tell func(k Key, name, value string)) { s.odd = tell }

// Run expires silent instances and cleans up empty services until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	return run.All(ctx,
		func(ctx context.Context) error {
			return run.Every(ctx, sweepPeriod, sweepPeriod, func(context.Context) { s.sweep() })
		},
		// Apart from the sweep, because it may wait for the disk.
		func(ctx context.Context) error {
			return run.Every(ctx, cleanPeriod, cleanPeriod, s.clean)
		},
	)
}

func (s *Store) shard(service Service) *shard {
	return &s.shards[s.shardNumber(maphash.String(s.seed, service.Namespace), maphash.String(s.seed, service.Name))]
}

func (s *Store) shardOfBytes(namespace, name []byte) *shard {
	return &s.shards[s.shardNumber(maphash.Bytes(s.seed, namespace), maphash.Bytes(s.seed, name))]
}

func (s *Store) shardNumber(namespace, name uint64) uint64 {
	return (namespace*31 + name) % shardCount
}

// Counts sums up.
func (s *Store) Counts() Counts {
	sum := Counts{Expiries: s.expiries.Load()}
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		sum.Services += len(h.services)
		sum.Ephemeral += h.ephemeral
		sum.Persistent += len(h.index) - h.ephemeral
		sum.Unhealthy += h.unhealthy
		h.mu.RUnlock()
		sum.Beats += h.beats.Load()
	}
	return sum
}

// submit makes a command durable and gives what came of it.
func (s *Store) submit(ctx context.Context, m command) error {
	var result any
	if s.log == nil {
		result = s.Apply(0, m.encode())
	} else {
		var err error
		if result, err = s.log.Append(ctx, m.encode()); err != nil {
			return fmt.Errorf("cannot write a change of %s: %w", m.subject(), err)
		}
	}
	if err, failed := result.(error); failed {
		return err
	}
	return nil
}

// change is submit for what an operator says, which is said again and again by
// those who want to be sure: what changes nothing is not written down.
func (s *Store) change(ctx context.Context, m command) error {
	if s.needless(m) {
		return nil
	}
	return s.submit(ctx, m)
}

func (s *Store) needless(m command) bool {
	h := s.shard(m.service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	v := h.services[m.service]
	if v == nil || len(v.slots) == 0 { // an empty service begins its 60 s anew
		return false
	}
	if m.op == opOverlay {
		o := v.overlays[place{m.ip, m.cluster, m.port}]
		return o != nil && !o.changedBy(m.overlay, m.whole)
	}
	c := v.config
	if c == nil {
		return false
	}
	if m.op == opService {
		return c.threshold == m.threshold && c.metadata == m.metadata && c.selector == m.selector
	}
	known, set := c.clusters[m.cluster]
	return set && known == clusterConfig{m.checker, m.metadata}
}
