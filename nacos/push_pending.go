package nacos

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// ackTime is how long an ack may take: then the push is sent once more, and
// after as long again it is given up
// (com.alibaba.nacos.naming.constants.Constants.ACK_TIMEOUT_NANOS,
// UdpConnector.Retransmitter).
const ackTime = 10 * time.Second

// resendTick is how often overdue acks are looked at.
const resendTick = 100 * time.Millisecond

// mostPending bounds the bytes of the datagrams that are kept to be sent again.
const mostPending = 64 << 20

// pending holds the pushes that somebody has not acknowledged yet. It is
// bounded by the subscriptions and in bytes. A push of a list to everybody takes
// the place of all earlier ones of that list, so that nothing older is ever sent
// after it.
type pending struct {
	mu     sync.Mutex
	last   int64
	rounds map[int64]*round
	of     map[listKey]map[int64]*round
	queue  []*round // by due; those that ended too
	bytes  int      // of bodies
}

// round is one push of one list, to one or many.
type round struct {
	list    listKey
	moment  int64
	body    []byte
	waiting map[netip.AddrPort]struct{}
	sent    time.Time
	due     time.Time
	again   bool
}

func newPending() pending {
	return pending{rounds: map[int64]*round{}, of: map[listKey]map[int64]*round{}}
}

func newRound(list listKey, moment int64, body []byte) *round {
	return &round{list: list, moment: moment, body: body, waiting: map[netip.AddrPort]struct{}{}}
}

// moment gives each push its name: µs, because the Node client reads it as a
// double and could not give back the nanoseconds of Nacos after 104 days of
// uptime; every one later than the one before.
func (u *pending) moment(now time.Time) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = max(u.last+1, now.UnixMicro())
	return u.last
}

// add notes a push before it is sent; false when there is no place for one.
func (u *pending) add(r *round, whole bool, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if whole { // even if it goes to nobody: it is too large for all
		for _, before := range u.of[r.list] {
			u.end(before)
		}
	}
	if len(r.waiting) == 0 {
		return true
	}
	if u.bytes+len(r.body) > mostPending {
		return false
	}
	u.bytes += len(r.body)
	r.sent, r.due = now, now.Add(ackTime)
	u.rounds[r.moment] = r
	if u.of[r.list] == nil {
		u.of[r.list] = map[int64]*round{}
	}
	u.of[r.list][r.moment] = r
	u.queue = append(u.queue, r)
	return true
}

// ack notes the answer of one to what was sent first then; false when nothing
// of the kind was asked.
func (u *pending) ack(from netip.AddrPort, moment int64) (sent time.Time, asked bool) {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.rounds[moment]
	if r == nil {
		return time.Time{}, false
	}
	_, asked = r.waiting[from]
	if delete(r.waiting, from); len(r.waiting) == 0 {
		u.end(r)
	}
	return r.sent, asked
}

// end forgets a round; its place in the queue is given up when it is due.
func (u *pending) end(r *round) {
	u.bytes -= len(r.body)
	delete(u.rounds, r.moment)
	if delete(u.of[r.list], r.moment); len(u.of[r.list]) == 0 {
		delete(u.of, r.list)
	}
	r.waiting, r.body = nil, nil
}

// delivery is a push for those who have not acknowledged it.
type delivery struct {
	body []byte
	to   []netip.AddrPort
}

// overdue gives what has to be sent again and counts whom it gives up.
func (u *pending) overdue(now time.Time) (again []delivery, givenUp int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.queue) > 0 && !u.queue[0].due.After(now) {
		r := u.queue[0]
		u.queue[0] = nil
		u.queue = u.queue[1:]
		switch {
		case r.waiting == nil: // ended
		case r.again:
			givenUp += len(r.waiting)
			u.end(r)
		default:
			r.again, r.due = true, now.Add(ackTime)
			u.queue = append(u.queue, r)
			again = append(again, delivery{r.body, slices.Collect(maps.Keys(r.waiting))})
		}
	}
	return again, givenUp
}
