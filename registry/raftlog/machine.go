package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/sidebeat/sidebeat/run"
)

// compactAfter is how many commands a snapshot replaces. Replaying as many
// takes about 0.1 s at the next start.
const compactAfter = 8192

// castagnoli is the polynomial for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sealLen = crc32.Size

// seal puts the CRC32C of the command in front of it: bbolt does not notice a
// flipped bit in what it stores.
func seal(command []byte) []byte {
	sealed := make([]byte, sealLen, sealLen+len(command))
	binary.BigEndian.PutUint32(sealed, crc32.Checksum(command, castagnoli))
	return append(sealed, command...)
}

// unseal gives the command that was sealed.
func unseal(sealed []byte) ([]byte, error) {
	if len(sealed) < sealLen || binary.BigEndian.Uint32(sealed) != crc32.Checksum(sealed[sealLen:], castagnoli) {
		return nil, errors.New("its checksum is wrong")
	}
	return sealed[sealLen:], nil
}

// machine is a Machine as raft wants it. It never panics: after the first
// damaged command it applies nothing more.
type machine struct {
	Machine
	full    run.Bell     // rung each time compactAfter commands have come together
	since   atomic.Int64 // commands applied since the last snapshot
	damaged chan error   // the first damage, for Run
	broken  error
}

// Apply implements raft.FSM.
func (m *machine) Apply(entry *raft.Log) any {
	if m.broken != nil {
		return m.broken
	}
	command, err := unseal(entry.Data)
	if err != nil {
		return m.breakDown(entry.Index, err)
	}
	result := m.Machine.Apply(entry.Index, command)
	if _, failed := result.(error); failed {
		if err := m.Machine.Damaged(); err != nil {
			return m.breakDown(entry.Index, err)
		}
	}
	if n := m.since.Add(1); n%compactAfter == 0 {
		m.full.Ring()
	}
	return result
}

func (m *machine) breakDown(index uint64, why error) error {
	m.broken = fmt.Errorf("cannot apply command %d of the log: %w", index, why)
	m.damaged <- m.broken
	return m.broken
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.broken != nil {
		return nil, m.broken
	}
	write, err := m.Machine.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("cannot note the state for a snapshot: %w", err)
	}
	m.since.Store(0)
	return snapshot(write), nil
}

// Restore implements raft.FSM; it serves a follower that is sent a snapshot.
func (m *machine) Restore(source io.ReadCloser) error {
	defer source.Close()
	return m.Machine.Restore(source)
}

// snapshot is a noted state that raft wants written.
type snapshot func(io.Writer) error

// Persist implements raft.FSMSnapshot; raft closes or cancels the sink.
func (s snapshot) Persist(sink raft.SnapshotSink) error { return s(sink) }

// Release implements raft.FSMSnapshot.
func (snapshot) Release() {}
