package raftlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/sidebeat/sidebeat/run"
)

const (
	// trailing is how many commands a snapshot leaves in the log, for a
	// follower that is only a little behind.
	trailing = 512
	// worthASnapshot is how many commands make a snapshot at the end of Run
	// worth its time, so that the next start need not replay them.
	worthASnapshot = 1024
	// callTimeout bounds a call to ourselves through the in-memory transport.
	callTimeout = time.Second
	lookEvery   = time.Second
)

// raftConfig is how raft runs here. Its timeouts of 1 s are kept, because with
// several voters shorter ones cost elections whenever a machine is busy.
func raftConfig(node raft.ServerID, logger hclog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = node
	c.Logger = logger
	c.MaxAppendEntries = maxInFlight
	c.BatchApplyCh = true                    // what waits together is made durable together
	c.SnapshotInterval = 1000000 * time.Hour // we ask for snapshots ourselves, by count
	c.TrailingLogs = trailing
	c.NoSnapshotRestoreOnStart = true // Open has restored it, and proved it first
	c.NoLegacyTelemetry = true
	return c
}

// Run serves the log until the context ends, then answers what is in flight and
// closes the files. It ends with an error when the log cannot be trusted any
// more: a damaged command, a disk that fails.
func (l *Log) Run(ctx context.Context) error {
	defer l.files.close()
	address, transport := raft.NewInmemTransportWithTimeout(raft.ServerAddress(l.files.node), callTimeout)
	transport.Connect(address, transport)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &guarded{BoltStore: l.files.bolt, ctx: ctx, gate: l.gate, failed: make(chan error, 1)}
	r, err := raft.NewRaft(raftConfig(l.files.node, l.files.logger), l.machine, store, store, l.files.snapshots, transport)
	if err != nil {
		close(l.stopping)
		return fmt.Errorf("cannot start the log in %s: %w", l.folder, err)
	}
	l.raft.Store(r)
	serve := func(context.Context) error {
		err := run.All(ctx, l.lead(transport, address), l.shorten, l.watch, until(l.machine.damaged, cancel), until(store.failed, cancel))
		return errors.Join(err, l.stop(err == nil))
	}
	if err := run.All(context.WithoutCancel(ctx), serve, l.collect); err != nil {
		return fmt.Errorf("cannot go on with the log in %s: %w", l.folder, err)
	}
	return nil
}

// lead keeps Ready true to what raft says. raft's channel holds the latest word
// only and never holds raft up; its NotifyCh would, while we wait for a barrier.
func (l *Log) lead(transport *raft.InmemTransport, self raft.ServerAddress) run.Part {
	return func(ctx context.Context) error {
		r := l.raft.Load()
		l.standUp(transport, self)
		for {
			select {
			case leads := <-r.LeaderCh():
				l.setReady(leads && r.Barrier(0).Error() == nil)
				if !leads {
					l.standUp(transport, self)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// standUp makes the only voter lead within milliseconds, instead of after the
// second or two in which it would listen for another leader that cannot be.
// Should it fail, raft elects by itself.
func (l *Log) standUp(transport *raft.InmemTransport, self raft.ServerAddress) {
	r := l.raft.Load()
	servers := r.GetConfiguration().Configuration().Servers
	if len(servers) != 1 || servers[0].ID != l.files.node || r.State() == raft.Leader {
		return
	}
	request := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(l.files.node), Addr: []byte(self)}}
	if err := transport.TimeoutNow(l.files.node, self, request, &raft.TimeoutNowResponse{}); err != nil {
		l.log.WithField("cause", err.Error()).Debug("the log waits for an election")
	}
}

// readiness gives the channel that is closed while the log is ready.
func (l *Log) readiness() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

func (l *Log) setReady(ready bool) {
	if ready == l.Ready() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ready {
		close(l.ready)
	} else {
		l.ready = make(chan struct{})
	}
}

// shorten replaces commands by a snapshot whenever enough have come together.
func (l *Log) shorten(ctx context.Context) error {
	for {
		select {
		case <-l.machine.full:
			l.snapshot()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// snapshot writes a snapshot, unless the disk is nearly full. A failed one is
// no loss, since the log still holds everything.
func (l *Log) snapshot() {
	if l.gate.pass() != nil {
		return
	}
	err := l.raft.Load().Snapshot().Error()
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		l.log.WithField("cause", err.Error()).Error("the registry's snapshot failed")
	}
}

// watch looks at the disk now and then, so that the line about its state comes
// although nobody writes.
func (l *Log) watch(ctx context.Context) error {
	return run.Every(ctx, lookEvery, lookEvery, func(context.Context) { _ = l.gate.pass() })
}

// until is a part that ends with what comes out of the channel. It tells so at
// once, because raft may hold up the other parts until it hears it.
func until(failure <-chan error, tell func()) run.Part {
	return func(ctx context.Context) error {
		select {
		case err := <-failure:
			tell()
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop ends the log in order: nothing more is taken, what is in flight is
// answered, much is made short, raft ends.
func (l *Log) stop(sound bool) error {
	close(l.stopping)
	for range maxInFlight {
		l.slots <- struct{}{}
	}
	close(l.flights)
	if sound && l.machine.since.Load() >= worthASnapshot {
		l.snapshot()
	}
	l.setReady(false)
	if err := l.raft.Load().Shutdown().Error(); err != nil {
		return fmt.Errorf("cannot stop the log: %w", err)
	}
	return nil
}
