package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// errCannot says that this machine does not allow a fault.
var errCannot = errors.New("cannot be made here")

func cannot(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errCannot, fmt.Sprintf(format, args...))
}

// scene is one fault and what came of it.
type scene struct {
	*house
	fault
	seen
	ledger
	client  *client
	address string // of the registry; the same after each restart
	folder  string // of this fault
	data    string // of the registry
	env     []string
	random  *rand.Rand
	seed    uint64
	servers []*server
	written atomic.Uint64 // numbers that writers have written

	made, ended, cannot, note string
	lost, broken              []string
}

// newScene gives each fault a loopback address of its own: a port that is taken
// again after a restart would else be somebody's outgoing port meanwhile.
func newScene(h *house, f fault, i int) *scene {
	s := &scene{house: h, fault: f, seed: rand.Uint64()}
	pid := os.Getpid()
	s.address = fmt.Sprintf("127.%d.%d.%d:8848", 10+pid%200, pid/200%250, 1+i)
	s.folder = filepath.Join(h.temp, fmt.Sprintf("%02d", i))
	s.data = filepath.Join(s.folder, "data")
	s.random = rand.New(rand.NewPCG(s.seed, 0))
	s.client = newClient(s.address, &s.seen)
	return s
}

// play brings the fault about and looks at what every fault promises.
func (s *scene) play(ctx context.Context) {
	err := os.Mkdir(s.folder, 0o700)
	if err == nil {
		err = s.do(ctx, s)
	}
	switch {
	case errors.Is(err, errCannot):
		s.cannot = strings.TrimPrefix(err.Error(), errCannot.Error()+": ")
	case err != nil && ctx.Err() == nil:
		s.break_("%v", err)
	}
	for _, server := range s.servers {
		server.kill()
		if said := server.trouble(); said != "" {
			s.break_("the registry said: %s", said)
		}
	}
	for _, l := range s.lost {
		s.break_("lost: %s", l)
	}
	if len(s.broken) > 0 {
		s.break_("seed %d; the log ends:\n%s", s.seed, s.logTail())
	}
}

// break_ notes a broken promise.
func (s *scene) break_(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

// promise notes a broken promise unless it was kept.
func (s *scene) promise(kept bool, format string, args ...any) {
	if !kept {
		s.break_(format, args...)
	}
}

func (s *scene) outcome() string {
	switch {
	case s.cannot != "":
		return "not made here: " + s.cannot
	case len(s.broken) > 0:
		return "BROKEN: " + s.broken[0]
	}
	return "kept"
}

// logTail gives the last lines of the registry that ran last.
func (s *scene) logTail() string {
	if len(s.servers) == 0 {
		return "nothing was started"
	}
	return s.servers[len(s.servers)-1].tail(8)
}

// plain takes out of a text what is another in each run.
func (s *scene) plain(text string) string {
	text = strings.NewReplacer(s.data, "DATA", s.folder, "FOLDER", s.address, "ADDRESS").Replace(text)
	return random.ReplaceAllString(text, "$1...")
}

// random are the names that the registry makes up.
var random = regexp.MustCompile(`(\.writable-|snapshots/)[0-9-]+`)

func (s *scene) lostText() string {
	if len(s.lost) > 0 {
		return fmt.Sprintf("**%d: %s**", len(s.lost), s.lost[0])
	}
	return "nothing"
}

func (s *scene) sawText() string {
	return strings.Trim(s.seen.String()+"; "+s.note, "; ")
}

// some gives how many moments or seeds there are in a full run or a short one.
func (s *scene) some(full, short int) int {
	if s.short {
		return short * s.times
	}
	return full * s.times
}

// either gives the time or size for a full run or a short one.
func (s *scene) either(full, short int) int {
	if s.short {
		return short
	}
	return full
}

// until asks again and again, for so long at most.
func (s *scene) until(ctx context.Context, longest time.Duration, what string, right func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for !right() {
		if err := run.Wait(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("not within %v: %s", longest, what)
		}
	}
	return nil
}
