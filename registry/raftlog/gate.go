package raftlog

import (
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/registry"
)

const (
	minFree = 64 << 20 // bytes; a few minutes of a busy registry, and one snapshot of 300 000 instances
	minPart = 50       // one part in so many of the disk: 2 %
	lookAge = 250 * time.Millisecond
)

// gate keeps commands out while the disk is nearly full: raft steps down, flaps
// and panics on a full one. It opens again at a quarter more than it shuts at.
type gate struct {
	folder  string
	least   uint64 // bytes
	log     *logrus.Entry
	measure func(folder string) (free, size uint64, err error)

	mu     sync.Mutex
	looked time.Time
	shut   bool
	full   bool // a write has failed for want of room, whatever the disk says
	free   uint64
}

// measure asks how much of the folder's disk this user may still fill.
func measure(folder string) (free, size uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, 0, fmt.Errorf("cannot ask for the free space of %s: %w", folder, err)
	}
	return uint64(st.Bavail) * uint64(st.Bsize), uint64(st.Blocks) * uint64(st.Bsize), nil
}

// pass returns nil, or an error that wraps registry.ErrUnavailable. It looks at
// the disk at most four times a second.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.looked) >= lookAge {
		g.looked = now
		g.look()
	}
	if g.full {
		return fmt.Errorf("%w: the disk of %s is full", registry.ErrUnavailable, g.folder)
	}
	if g.shut {
		return fmt.Errorf("%w: only %d MB are free on the disk of %s", registry.ErrUnavailable, g.free>>20, g.folder)
	}
	return nil
}

// look moves the gate; a disk that cannot be measured leaves it where it is.
func (g *gate) look() {
	free, size, err := g.measure(g.folder)
	if err != nil {
		return
	}
	g.free = free
	least := max(g.least, size/minPart)
	switch {
	case !g.shut && free < least:
		g.shut = true
		g.log.WithField("state", "refusing writes").WithField("cause", fmt.Sprintf("%d MB free, %d MB needed", free>>20, least>>20)).
			Error("the disk is nearly full")
	case g.shut && free >= least+least/4:
		g.shut = false
		g.log.WithField("state", "taking writes").Warn("the disk has room again")
	}
}

// setFull notes what the last write met.
func (g *gate) setFull(full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if full == g.full {
		return
	}
	g.full = full
	if full {
		g.log.WithField("state", "waiting for room").Error("the disk is full")
	} else {
		g.log.WithField("state", "writing").Warn("the disk takes writes again")
	}
}
