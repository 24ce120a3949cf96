package prober

import (
	"math"
	"time"
)

// phased gives the first instant after that lies on a target's own phase. All
// are counted from the start of the process; offset is what the wall clock
// said then, so that a restart finds the same phases. The phase is the hash of
// the target's key: load is flat and no two restarts ask all at once.
func phased(after, offset time.Duration, hash uint64, interval time.Duration) time.Duration {
	phase := time.Duration(hash % uint64(interval))
	since := (after + offset%interval - phase) % interval
	if since < 0 {
		since += interval
	}
	return after - since + interval
}

// hashOf is FNV-1a with a final mix (splitmix64), because FNV alone spreads the
// last bytes badly. It must never change: a restart would shift every phase.
func hashOf(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211 // no part holds this byte, being UTF-8
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// ref names a row of the table; a row that was given to another target since
// has another generation.
type ref struct {
	row        int32
	generation uint32
}

// appointment is when a row is asked.
type appointment struct {
	due time.Duration
	ref ref
}

// agenda is a heap of appointments, four children to a node: half the depth of
// a binary one. It holds no pointers. A row that got another appointment leaves
// the old one in: whoever takes it out compares it with what the row says.
type agenda []appointment

func (a *agenda) add(due time.Duration, r ref) {
	h := append(*a, appointment{due, r})
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent].due <= due {
			break
		}
		h[i], i = h[parent], parent
	}
	h[i] = appointment{due, r}
	*a = h
}

// next gives the earliest appointment's time, far away when there is none.
func (a agenda) next() time.Duration {
	if len(a) == 0 {
		return math.MaxInt64
	}
	return a[0].due
}

// take removes the earliest appointment; there must be one.
func (a *agenda) take() appointment {
	h := *a
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*a = h
	i := 0
	for {
		least, child := i, 4*i+1
		for end := min(child+4, len(h)); child < end; child++ {
			if h[child].due < last.due && (least == i || h[child].due < h[least].due) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], i = h[least], least
	}
	if len(h) > 0 {
		h[i] = last
	}
	return first
}

// queue is first in, first out, of refs; it shrinks when it has emptied.
type queue struct {
	refs []ref
	head int
}

func (q *queue) push(r ref) { q.refs = append(q.refs, r) }

func (q *queue) len() int { return len(q.refs) - q.head }

func (q *queue) pop() (ref, bool) {
	if q.head == len(q.refs) {
		return ref{}, false
	}
	r := q.refs[q.head]
	q.head++
	switch {
	case q.head == len(q.refs) && cap(q.refs) > 4096:
		*q = queue{}
	case q.head == len(q.refs):
		q.refs, q.head = q.refs[:0], 0
	case q.head >= 1024 && q.head > len(q.refs)/2:
		q.refs, q.head = q.refs[:copy(q.refs, q.refs[q.head:])], 0
	}
	return r, true
}
