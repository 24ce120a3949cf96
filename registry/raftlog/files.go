package raftlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

const (
	lockName     = "lock"
	logName      = "raft.db"
	newLogName   = "raft.db.new"
	snapshotsDir = "snapshots" // the name is raft's
	stateName    = "state.bin" // the name is raft's
	tmpSuffix    = ".tmp"      // of a snapshot that was never finished; raft's

	keepSnapshots = 2
	lockTimeout   = time.Second
)

// wayOn ends every message about damage.
const wayOn = "nothing was changed; put back a copy of the whole folder, or move the folder away to start empty " +
	"(ephemeral instances come back by themselves with their next beat, persistent ones have to be registered again)"

// nodeKey holds the name of this voter, made up when the folder is new.
var nodeKey = []byte("SidebeatNode")

// files are the open files of one folder.
type files struct {
	folder    string
	node      raft.ServerID
	lock      *os.File
	bolt      *raftboltdb.BoltStore
	snapshots *raft.FileSnapshotStore
	newest    *raft.SnapshotMeta // nil: none yet
	logger    hclog.Logger
}

func openFiles(folder string, log *logrus.Entry) (*files, error) {
	f := &files{folder: folder, logger: raftLogger(log)}
	if err := f.open(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *files) open() error {
	var err error
	if f.lock, err = lockFolder(f.folder); err != nil {
		return err
	}
	if f.snapshots, err = raft.NewFileSnapshotStoreWithLogger(f.folder, keepSnapshots, f.logger); err != nil {
		return err
	}
	if err := f.findSnapshot(); err != nil {
		return err
	}
	if err := f.ensureLog(); err != nil {
		return err
	}
	path := f.path(logName)
	if err := proveBolt(path); err != nil {
		return damage(path, err)
	}
	if f.bolt, err = openBolt(path); err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}
	if err := f.proveLog(); err != nil {
		return damage(path, err)
	}
	return nil
}

func (f *files) path(name string) string { return filepath.Join(f.folder, name) }

func damage(path string, why error) error {
	return fmt.Errorf("%s is damaged: %w; %s", path, why, wayOn)
}

// close gives the folder back.
func (f *files) close() error {
	var errs []error
	if f.bolt != nil {
		errs = append(errs, f.bolt.Close())
	}
	if f.lock != nil {
		// Closing alone leaves it locked for as long as a process that was just
		// forked here has not begun its own program.
		errs = append(errs, unix.Flock(int(f.lock.Fd()), unix.LOCK_UN), f.lock.Close())
	}
	f.bolt, f.lock = nil, nil
	return errors.Join(errs...)
}

// lockFolder keeps other processes out until the file is closed. It fails at
// once and names the process that has the folder.
func lockFolder(folder string) (*os.File, error) {
	path := filepath.Join(folder, lockName)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write to it: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		holder := make([]byte, 20)
		n, _ := lock.ReadAt(holder, 0)
		return nil, fmt.Errorf("it is in use by another process (%s)", strings.TrimSpace("pid "+string(holder[:n])))
	}
	if err := lock.Truncate(0); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write %s: %w", path, err), lock.Close())
	}
	// Best effort: the number only makes somebody else's message better.
	_, _ = lock.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return lock, nil
}

func openBolt(path string) (*raftboltdb.BoltStore, error) {
	return raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{
		Timeout:        lockTimeout,
		FreelistType:   bbolt.FreelistMapType, // the array type is slow when much is free
		NoFreelistSync: true,                  // the free list is found again at the start
	}})
}

// ensureLog makes the log of a new folder. It appears under its name only when
// it is whole, so that an empty or half-made one is always damage.
func (f *files) ensureLog() error {
	if _, err := os.Stat(f.path(logName)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if f.newest != nil {
		return fmt.Errorf("%s is missing although %s holds a snapshot: %s", f.path(logName), f.path(snapshotsDir), wayOn)
	}
	fresh := f.path(newLogName)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove what an earlier start has left: %w", err)
	}
	if err := f.bootstrap(fresh); err != nil {
		return fmt.Errorf("cannot make %s: %w", fresh, err)
	}
	if err := os.Rename(fresh, f.path(logName)); err != nil {
		return fmt.Errorf("cannot finish the new log: %w", err)
	}
	return syncFolder(f.folder)
}

// bootstrap writes a log that says that its only voter is this node.
func (f *files) bootstrap(path string) error {
	bolt, err := openBolt(path)
	if err != nil {
		return err
	}
	node := raft.ServerID(rand.Text())
	err = errors.Join(bolt.Set(nodeKey, []byte(node)), raft.BootstrapCluster(raftConfig(node, f.logger), bolt, bolt, f.snapshots, nil,
		raft.Configuration{Servers: []raft.Server{{ID: node, Address: raft.ServerAddress(node)}}}))
	return errors.Join(err, bolt.Close())
}

func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("cannot sync %s: %w", folder, err)
	}
	return nil
}

// restore brings the machine to the newest snapshot. raft would go on with an
// older one when the newest is torn, and so forget what came between.
func (f *files) restore(m Machine) error {
	if f.newest == nil {
		return nil
	}
	path := filepath.Join(f.path(snapshotsDir), f.newest.ID, stateName) + ", or the meta.json beside it,"
	_, source, err := f.snapshots.Open(f.newest.ID)
	if err != nil {
		return damage(path, err)
	}
	defer source.Close()
	if err := m.Restore(source); err != nil {
		return damage(path, err)
	}
	return nil
}
