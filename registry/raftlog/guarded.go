package raftlog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/sidebeat/sidebeat/run"
)

// errBroken is what raft hears after the first failed write.
var errBroken = errors.New("an earlier write failed")

// guarded is the file as raft sees it: never full and, for its term, never
// failing. raft steps down when it cannot write an entry, and panics when it
// cannot write its term.
type guarded struct {
	*raftboltdb.BoltStore
	ctx    context.Context // of Run: raft's own calls carry none
	gate   *gate
	failed chan error // the first failure that waiting cannot mend, for Run
	broken atomic.Bool
}

// StoreLog implements raft.LogStore.
func (g *guarded) StoreLog(entry *raft.Log) error { return g.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (g *guarded) StoreLogs(entries []*raft.Log) error {
	return g.write(func() error { return g.BoltStore.StoreLogs(entries) })
}

// DeleteRange implements raft.LogStore. It is called after a snapshot, which
// holds as much; what could not be deleted goes with the next one.
func (g *guarded) DeleteRange(first, last uint64) error {
	if err := g.gate.pass(); err != nil {
		return err
	}
	return g.BoltStore.DeleteRange(first, last)
}

// Set implements raft.StableStore.
func (g *guarded) Set(key, value []byte) error {
	return g.vote(func() error { return g.BoltStore.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (g *guarded) SetUint64(key []byte, value uint64) error {
	return g.vote(func() error { return g.BoltStore.SetUint64(key, value) })
}

// vote writes raft's term or vote. When that is impossible Run is about to end,
// and nothing can be acknowledged under a term that was not written, since
// StoreLogs refuses from then on: so raft need not hear of it, and panic.
func (g *guarded) vote(do func() error) error {
	if err := g.write(do); !errors.Is(err, errBroken) {
		return err
	}
	return nil
}

// write makes a write, waiting for room while the disk is full. Any other
// failure is final: after a failed fsync nobody knows what the file holds.
func (g *guarded) write(do func() error) error {
	for !g.broken.Load() {
		err := do()
		if err == nil {
			g.gate.setFull(false)
			return nil
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			g.fail(err)
			break
		}
		g.gate.setFull(true)
		if run.Wait(g.ctx, lookAge) != nil {
			g.broken.Store(true) // the log is ending: no failure, but nothing more is written
			break
		}
	}
	return errBroken
}

func (g *guarded) fail(err error) {
	if g.broken.CompareAndSwap(false, true) {
		g.failed <- fmt.Errorf("cannot write %s: %w", logName, err)
	}
}
