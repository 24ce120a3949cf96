package prober

import (
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
)

// tally counts what happens, for metrics and for the guards.
type tally struct {
	up, down, idle, held int // targets
	flying               int // questions on their way
	answers              [resultKinds]int64
	writes               [len(outcomeNames)]int64
	missed, stops        int64
	listings, unlisted   int64 // complete, failed
	lagSum               time.Duration
	lagMost              time.Duration // since it was last read
	lagCount             int64
}

// The results of a question, told apart in the metrics.
const (
	resultWell = iota
	resultRefused
	resultTimeout
	resultOther
	resultUnknown
	resultKinds
)

var resultNames = [resultKinds]string{"well", "refused", "timeout", "other", "unknown"}

func (t *tally) answer(a check.Answer, quiet bool) {
	kind := resultOther
	switch {
	case a.Kind == check.Well:
		kind = resultWell
	case a.Kind == check.Unknown:
		kind = resultUnknown
	case strings.HasPrefix(a.Reason, "refused"):
		kind = resultRefused
	case quiet:
		kind = resultTimeout
	}
	t.answers[kind]++
}

// quiet tells that nothing came back: the answer took all the time it had, or
// the way there is broken. Neither shows that the prober has a network.
func quiet(a check.Answer, timeout time.Duration) bool {
	if a.Kind != check.Sick {
		return false
	}
	return a.Took >= timeout*9/10 || strings.HasPrefix(a.Reason, "timeout") || strings.Contains(a.Reason, "unreachable") || strings.Contains(a.Reason, "no route")
}

func (t *tally) lag(d time.Duration) {
	t.lagSum += d
	t.lagMost = max(t.lagMost, d)
	t.lagCount++
}

func (t *tally) enter(row *row) { *t.place(row)++ }
func (t *tally) leave(row *row) { *t.place(row)-- }

func (t *tally) place(row *row) *int {
	switch {
	case row.idle:
		return &t.idle
	case row.opinion.Verdict == health.Down:
		return &t.down
	}
	return &t.up
}
