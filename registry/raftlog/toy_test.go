package raftlog_test

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry/raftlog"
)

// toy is a Machine that remembers every command and how often it came.
type toy struct {
	mu      sync.Mutex
	state   map[string]int
	applied int
	broken  error
}

func newToy() *toy { return &toy{state: map[string]int{}} }

// Apply answers how often the command has come; "refuse" is answered with an
// error, "damage" breaks the machine.
func (m *toy) Apply(_ uint64, command []byte) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied++
	switch string(command) {
	case "refuse":
		return errors.New("refused")
	case "damage":
		m.broken = errors.New("the toy is broken")
		return m.broken
	}
	m.state[string(command)]++
	return m.state[string(command)]
}

func (m *toy) Damaged() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

func (m *toy) Snapshot() (func(io.Writer) error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state := maps.Clone(m.state)
	return func(w io.Writer) error { return gob.NewEncoder(w).Encode(state) }, nil
}

func (m *toy) Restore(r io.Reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.state)
	return gob.NewDecoder(r).Decode(&m.state)
}

func (m *toy) count(command string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state[command]
}

func (m *toy) has() (commands, applied int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.state), m.applied
}

// lines is a log output that tests read.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func logger(w io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(w)
	return log
}

// running is an open log and what it takes to end it.
type running struct {
	*raftlog.Log
	machine *toy
	lines   *lines
	stop    func() error // ends Run and gives its error; may be called again
	ended   <-chan struct{}
}

// start opens and runs a log and waits until it is ready.
func start(t *testing.T, c raftlog.Config) running {
	t.Helper()
	r := running{machine: newToy(), lines: new(lines)}
	c.Log = logger(r.lines)
	log, err := raftlog.Open(c, r.machine)
	if err != nil {
		t.Fatal(err)
	}
	r.Log = log
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var result error
	go func() { defer close(ended); result = log.Run(ctx) }()
	r.ended = ended
	r.stop = func() error { cancel(); <-ended; return result }
	t.Cleanup(func() { r.stop() })
	if err := log.WaitReady(t.Context()); err != nil {
		t.Fatal(err, r.stop(), r.lines)
	}
	return r
}
