package check

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// defaultTimeout holds when neither the context nor the Spec carries one: a
// question always ends.
const defaultTimeout = 3200 * time.Millisecond

// Asker asks questions. It keeps what outlives one question: compiled options,
// CA files, what apps pushed, when heartbeat files changed. Use NewAsker.
type Asker struct {
	policy   netpolicy.Policy
	dialName func(ctx context.Context, network, address string) (net.Conn, error) // to a name server
	plans    plans
	roots    roots
	pushed   pushes
	files    heartbeats
	closed   atomic.Bool
	asking   sync.RWMutex // held for reading by every question in flight
}

// NewAsker returns an Asker that contacts what the policy allows.
func NewAsker(policy netpolicy.Policy) *Asker {
	return &Asker{
		policy:   policy,
		dialName: new(net.Dialer).DialContext,
		pushed:   pushes{born: time.Now()},
	}
}

// Ask asks once and answers by the deadline of ctx or the timeout of the Spec,
// whichever is earlier (3.2 s where there is neither). A program that does not
// stop when told gets up to 0.4 s more. The answer is Unknown when the question
// could not be asked: that says nothing about the target. Ask may be called by
// many goroutines at once; it starts nothing that outlives it.
func (a *Asker) Ask(ctx context.Context, s Spec) Answer {
	start := time.Now()
	ctx, cancel := bound(ctx, s.timeout)
	defer cancel()
	answer := a.ask(ctx, start, s)
	answer.Reason = printable(answer.Reason)
	if answer.Took == 0 {
		answer.Took = time.Since(start)
	}
	return answer
}

func bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); !ok && limit == 0 {
		limit = defaultTimeout
	}
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

func (a *Asker) ask(ctx context.Context, start time.Time, s Spec) Answer {
	a.asking.RLock()
	defer a.asking.RUnlock()
	if a.closed.Load() {
		return Answer{Kind: Unknown, Reason: "stopped before asking"}
	}
	if ctx.Err() != nil {
		return Answer{Kind: Unknown, Reason: "stopped before asking"}
	}
	switch s.scheme {
	case "tcp":
		return a.askTCP(ctx, s)
	case "none":
		return Answer{Kind: Well, Reason: "not asked"}
	}
	p, err := a.plans.of(s)
	if err != nil {
		return Answer{Kind: Unknown, Reason: err.Error()}
	}
	switch s.scheme {
	case "http", "https":
		return a.askHTTP(ctx, start, s, p)
	case "exec":
		return askExec(ctx, start, s, p)
	case "file":
		return a.files.ask(s.target, p.age)
	case "push":
		return a.pushed.ask(s.target, p.ttl)
	}
	return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot ask a check of kind %q", s.scheme)}
}

// Push notes what an app says of itself under this name; the check push:NAME
// reads it. It counts for ttl, or for the check's own ttl when ttl is 0 or
// less. The note is shown with the answer.
func (a *Asker) Push(name string, ok bool, ttl time.Duration, note string) {
	a.pushed.put(name, pushed{ok: ok, ttl: ttl, note: printable(note), at: time.Now()})
}

// Close waits for the questions in flight and answers Unknown to later ones.
func (a *Asker) Close() {
	a.closed.Store(true)
	a.asking.Lock()
	defer a.asking.Unlock()
}
