package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// heartbeat is what is known of one file. Its age is counted on the monotonic
// clock from when it was seen to have changed, so that a wall clock that jumps
// neither kills the app nor keeps it alive.
type heartbeat struct {
	modified time.Time // as the file system says
	changed  time.Time // when that was, on our clock
	asked    time.Time
}

// see takes the file's modification time at the moment now. Between two
// questions the file cannot be older than the first of them; at the first one
// the wall clock is believed, and a time in the future is now.
func (h heartbeat) see(modified, now time.Time) heartbeat {
	if h.asked.IsZero() || !modified.Equal(h.modified) {
		age := max(now.Round(0).Sub(modified), 0)
		if !h.asked.IsZero() {
			age = min(age, now.Sub(h.asked))
		}
		h.modified, h.changed = modified, now.Add(-age)
	}
	h.asked = now
	return h
}

type heartbeats struct {
	mu    sync.Mutex
	known map[string]heartbeat
}

func (f *heartbeats) ask(path string, limit time.Duration) Answer {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Answer{Kind: Sick, Reason: "no such file: " + path}
	}
	if err != nil {
		return Answer{Kind: Unknown, Reason: "cannot look at the file: " + err.Error()}
	}
	age := f.age(path, info.ModTime()).Round(time.Millisecond)
	if age >= limit {
		return Answer{Kind: Sick, Reason: fmt.Sprintf("file last touched %v ago, over %v", age, limit)}
	}
	return Answer{Kind: Well, Reason: fmt.Sprintf("file touched %v ago", age)}
}

func (f *heartbeats) age(path string, modified time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.known == nil {
		f.known = make(map[string]heartbeat)
	}
	h := f.known[path].see(modified, now)
	f.known[path] = h
	return now.Sub(h.changed)
}
