package raftlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
)

// InFlight tells tests that a command is on its way.
func (l *Log) InFlight() bool { return len(l.slots) > 0 }

// BreakFile makes every write fail from now on.
func (l *Log) BreakFile() error { return l.files.bolt.Close() }

func TestWhatRaftSays(t *testing.T) {
	f := func(level logrus.Level, say func(hclog.Logger), want string) {
		t.Helper()
		var b strings.Builder
		log := logrus.New()
		log.SetOutput(&b)
		log.SetLevel(level)
		log.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true, DisableColors: true})
		say(raftLogger(log.WithFields(nil)))
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
	warn := func(l hclog.Logger) { l.Warn("heartbeat timeout reached", "last", "n1") }
	fault := func(l hclog.Logger) {
		l.With("node", 1).Error("failed to commit logs", "error", "disk", "servers", hclog.Fmt("%d of %d", 1, 2))
	}
	f(logrus.InfoLevel, warn, "")
	f(logrus.DebugLevel, warn, "level=debug msg=\"the registry's log says\" cause=\"heartbeat timeout reached last=n1\"\n")
	f(logrus.InfoLevel, fault, "level=error msg=\"the registry's log reports a fault\" cause=\"failed to commit logs node=1 error=disk servers=1 of 2\"\n")
}

// The gate shuts under its limit, opens a quarter above it, and says each once.
func TestGate(t *testing.T) {
	f := func(least, size uint64, free []uint64, want string) {
		t.Helper()
		var b strings.Builder
		log := logrus.New()
		log.SetOutput(&b)
		var now uint64
		g := &gate{least: least, log: log.WithFields(nil), measure: func(string) (uint64, uint64, error) {
			if now == 0 {
				return 0, 0, errors.New("cannot be measured")
			}
			return now, size, nil
		}}
		var got strings.Builder
		synctest.Test(t, func(t *testing.T) {
			for _, now = range free {
				time.Sleep(lookAge)
				err := g.pass()
				if err != nil && !errors.Is(err, registry.ErrUnavailable) {
					t.Error(err)
				}
				got.WriteString(map[bool]string{true: "+", false: "-"}[err == nil])
			}
		})
		if got.WriteString(fmt.Sprint(strings.Count(b.String(), "\n"))); got.String() != want {
			t.Errorf("least %d of %d, free %v: got %s, want %s; said:\n%s", least, size, free, got.String(), want, &b)
		}
	}
	f(100, 1000, []uint64{500, 100, 99, 100, 124, 125, 100, 99}, "++---++-3")
	f(100, 10_000, []uint64{500, 200, 199, 249, 250}, "++--+2") // 2 % of the disk are more
	f(100, 1000, []uint64{500, 0, 99, 0, 500, 0}, "++--++2")    // what cannot be measured changes nothing
}

// A look at the disk is made at most four times a second.
func TestGateLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		g := &gate{log: logrus.New().WithFields(nil), measure: func(string) (uint64, uint64, error) { looks++; return 1, 1, nil }}
		for range 1000 {
			time.Sleep(time.Millisecond)
			g.pass()
		}
		if looks < 3 || looks > 4 {
			t.Errorf("%d looks in a second, want 4", looks)
		}
	})
}

// A log that loses its lead again and again never holds raft up by not hearing
// of it: it can always be stopped.
func TestFlappingCanBeStopped(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	l, err := Open(Config{Folder: t.TempDir(), Log: log}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	store := &guarded{BoltStore: l.files.bolt, ctx: ctx, gate: l.gate, failed: make(chan error, 1)}
	store.broken.Store(true) // each lead ends with its first write
	address, transport := raft.NewInmemTransportWithTimeout(raft.ServerAddress(l.files.node), callTimeout)
	transport.Connect(address, transport)
	r, err := raft.NewRaft(raftConfig(l.files.node, l.files.logger), l.machine, store, store, l.files.snapshots, transport)
	if err != nil {
		t.Fatal(err)
	}
	l.raft.Store(r)
	ended := make(chan error, 1)
	go func() { ended <- l.lead(transport, address)(ctx) }()
	for r.CurrentTerm() < 200 {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := r.Shutdown().Error(); err != nil {
		t.Error(err)
	}
}
