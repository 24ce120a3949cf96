package raftlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
)

// currentTerm is raft's key for its term.
var currentTerm = []byte("CurrentTerm")

// findSnapshot finds the newest snapshot and proves that no snapshot is one
// that raft would pass over. What a crash left half-written is removed: the log
// still holds what it was made from.
func (f *files) findSnapshot() error {
	dir := f.path(snapshotsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the snapshots: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), tmpSuffix):
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("cannot remove an unfinished snapshot: %w", err)
			}
		case e.IsDir():
			names = append(names, e.Name())
		}
	}
	f.snapshots, err = raft.NewFileSnapshotStoreWithLogger(f.folder, max(keepSnapshots, len(names)), f.logger)
	if err != nil {
		return err
	}
	listed, err := f.snapshots.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(listed, func(s *raft.SnapshotMeta) bool { return s.ID == name })
		if i < 0 {
			return damage(filepath.Join(dir, name, "meta.json"), errors.New("it cannot be read, or speaks of another snapshot"))
		}
		if prefix := fmt.Sprintf("%d-%d-", listed[i].Term, listed[i].Index); !strings.HasPrefix(name, prefix) {
			return damage(filepath.Join(dir, name, "meta.json"), errors.New("its term and index are not those of its name"))
		}
	}
	if len(listed) > 0 {
		f.newest = listed[0]
	}
	f.snapshots, err = raft.NewFileSnapshotStoreWithLogger(f.folder, keepSnapshots, f.logger)
	return err
}

// proveLog reads every entry of the log and proves that it is the one that was
// written, that none is missing, and that the log joins the snapshot.
func (f *files) proveLog() error {
	node, err := f.bolt.Get(nodeKey)
	if err != nil {
		return fmt.Errorf("it does not say whose log it is: %w", err)
	}
	f.node = raft.ServerID(node)
	first, err := f.bolt.FirstIndex()
	if err != nil {
		return err
	}
	last, err := f.bolt.LastIndex()
	if err != nil {
		return err
	}
	if err := f.proveJoint(first, last); err != nil {
		return err
	}
	term, err := f.proveEntries(first, last)
	if err != nil {
		return err
	}
	if now, err := f.bolt.GetUint64(currentTerm); err != nil || now < term {
		return fmt.Errorf("its term is %d although an entry is of term %d", now, term)
	}
	return nil
}

// proveJoint compares what the log begins and ends with to the snapshot.
func (f *files) proveJoint(first, last uint64) error {
	var covered uint64
	if f.newest != nil {
		covered = f.newest.Index
		servers := f.newest.Configuration.Servers
		if !slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == f.node }) {
			return fmt.Errorf("it is the log of %q, but the meta.json of snapshot %s is of others", f.node, f.newest.ID)
		}
	}
	switch {
	case last == 0 && covered == 0:
		return errors.New("it is empty")
	case first > covered+1:
		return fmt.Errorf("it begins with entry %d although the snapshots end with entry %d", first, covered)
	case last < covered && last != 0:
		return fmt.Errorf("it ends with entry %d although the newest snapshot goes to entry %d", last, covered)
	}
	return nil
}

// proveEntries reads the entries and returns the highest term.
func (f *files) proveEntries(first, last uint64) (term uint64, err error) {
	for i := first; i <= last && last > 0; i++ {
		var entry raft.Log
		if err := f.bolt.GetLog(i, &entry); err != nil {
			return 0, fmt.Errorf("entry %d cannot be read: %w", i, err)
		}
		if entry.Index != i || entry.Term < term || entry.Type > raft.LogConfiguration {
			return 0, fmt.Errorf("entry %d is not the one that was written", i)
		}
		term = entry.Term
		switch {
		case entry.Type == raft.LogCommand:
			_, err = unseal(entry.Data)
		case entry.Type == raft.LogConfiguration:
			err = f.proveConfiguration(entry.Data)
		case len(entry.Data) > 0: // a command whose type has changed: raft would pass over it
			err = errors.New("an entry of its type has no data")
		}
		if err != nil {
			return 0, fmt.Errorf("entry %d is not the one that was written: %w", i, err)
		}
	}
	return term, nil
}

// proveConfiguration tells whether the voters of an entry can be read and we
// are among them; raft panics on one that cannot be read.
func (f *files) proveConfiguration(data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its voters cannot be read: %v", r)
		}
	}()
	servers := raft.DecodeConfiguration(data).Servers
	if !slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == f.node && s.Suffrage == raft.Voter }) {
		return fmt.Errorf("we (%q) are not among its voters", f.node)
	}
	return nil
}
