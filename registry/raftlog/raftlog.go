// Package raftlog is the durable log behind the registry's store: commands are
// written by hashicorp/raft to a bbolt file, applied in one order, and replaced
// by a snapshot now and then. One voter or several is one code path; for now
// the only voter is this process, and no port is opened.
//
// What is kept in the folder: lock (who uses it), raft.db (the commands since
// the last snapshot) and snapshots/.
package raftlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// maxInFlight is how many commands may wait for the disk at the same time, and
// so the most that are made durable by one fsync. raft takes 1024 at most.
const maxInFlight = 512

// Machine is what the log brings to life: *registry.Store.
type Machine interface {
	// Apply executes one command. It is called by one goroutine, in the order
	// of the index, and again for each command after the last snapshot when the
	// process starts.
	Apply(index uint64, command []byte) any
	// Damaged is asked after an Apply that gave an error. An error says that a
	// command is not what was once appended: Run then ends with it, since going
	// on without the command would make up another history.
	Damaged() error
	// Snapshot notes the state quickly; write is called later, beside Apply.
	Snapshot() (write func(io.Writer) error, err error)
	// Restore replaces the state by one that Snapshot's write has written.
	Restore(io.Reader) error
}

// Config says where the log is and when it refuses.
type Config struct {
	Folder string // must exist; used by one process at a time
	// MinFree is the space in bytes under which nothing is appended any more;
	// 0: 64 MiB. It never goes below 2 % of the disk.
	MinFree uint64
	Log     *logrus.Logger
}

// Log is the log of one folder. Open it, Run it, Append to it.
type Log struct {
	folder   string
	log      *logrus.Entry
	files    *files
	gate     *gate
	machine  *machine
	slots    chan struct{}
	flights  chan flight
	stopping chan struct{} // closed when Run begins to stop
	raft     atomic.Pointer[raft.Raft]

	mu    sync.Mutex
	ready chan struct{} // closed while the log leads and has replayed
}

// flight is a command that raft has taken and not answered yet.
type flight struct {
	future raft.ApplyFuture
	done   chan outcome
}

type outcome struct {
	result any
	err    error
}

// Open opens the log of the folder, proves every file that is needed and brings
// the machine to the state of the last snapshot; what was appended since is
// applied at the beginning of Run. An error says which file is damaged and how
// to go on; nothing is ever dropped in silence. Whoever does not Run the log
// has to Close it.
func Open(c Config, m Machine) (*Log, error) {
	entry := c.Log.WithFields(nil)
	files, err := openFiles(c.Folder, entry)
	if err != nil {
		return nil, fmt.Errorf("cannot open the registry's data in %s: %w", c.Folder, err)
	}
	if err := files.restore(m); err != nil {
		files.close()
		return nil, fmt.Errorf("cannot open the registry's data in %s: %w", c.Folder, err)
	}
	l := &Log{
		folder:   c.Folder,
		log:      entry,
		files:    files,
		gate:     &gate{folder: c.Folder, least: cmp.Or(c.MinFree, minFree), log: entry, measure: measure},
		slots:    make(chan struct{}, maxInFlight),
		flights:  make(chan flight, maxInFlight),
		stopping: make(chan struct{}),
		ready:    make(chan struct{}),
	}
	l.machine = &machine{Machine: m, full: run.NewBell(), damaged: make(chan error, 1)}
	return l, nil
}

// Close closes the files of a Log that is not Run.
func (l *Log) Close() error { return l.files.close() }

// Ready tells that this process leads and that the machine has every command.
func (l *Log) Ready() bool {
	select {
	case <-l.readiness():
		return true
	default:
		return false
	}
}

// WaitReady returns nil as soon as the log is ready, an error when the context
// or Run ends before.
func (l *Log) WaitReady(ctx context.Context) error {
	if l.Ready() {
		return nil
	}
	select {
	case <-l.readiness():
		return nil
	case <-l.stopping:
		return errors.New("cannot wait for the log: it was stopped")
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for the log: %w", ctx.Err())
	}
}

// Writable returns nil, or an error that wraps registry.ErrUnavailable and says
// why nothing can be appended now.
func (l *Log) Writable() error {
	if !l.Ready() {
		return fmt.Errorf("%w: its log has no leader yet", registry.ErrUnavailable)
	}
	return l.gate.pass()
}

// Append makes the command durable, applies it and returns what the machine
// answered. An error that wraps registry.ErrUnavailable and does not speak of
// an unknown outcome says that the command was not taken. When the context ends
// or leadership is lost while the command is on its way, the error says that
// the outcome is unknown: the command may still be applied.
func (l *Log) Append(ctx context.Context, command []byte) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot append to the log: %w", err)
	}
	if err := l.Writable(); err != nil {
		return nil, fmt.Errorf("cannot append to the log: %w", err)
	}
	select {
	case l.slots <- struct{}{}:
	case <-l.stopping:
		return nil, fmt.Errorf("cannot append to the log: %w: it is shutting down", registry.ErrUnavailable)
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot append to the log: %w", ctx.Err())
	}
	f := flight{l.raft.Load().Apply(seal(command), 0), make(chan outcome, 1)}
	l.flights <- f
	select {
	case o := <-f.done:
		return o.result, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot tell whether the command was appended, its outcome is unknown: %w", ctx.Err())
	}
}

// collect hands the answers of raft to those who wait for them, until the
// channel is closed. Waiting for raft cannot be cut short by a context, so it
// is done here and not in Append. Whoever holds a slot has room in the channel.
func (l *Log) collect(context.Context) error {
	for f := range l.flights {
		err := f.future.Error()
		f.done <- outcome{f.future.Response(), explain(err)}
		<-l.slots
	}
	return nil
}

// explain sorts raft's errors into "was not taken" and "nobody knows".
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("cannot append to the log: %w: %w", registry.ErrUnavailable, err)
	default:
		return fmt.Errorf("cannot tell whether the command was appended, its outcome is unknown: %w: %w", registry.ErrUnavailable, err)
	}
}
