package prober

import "time"

// The brake's numbers are the issue's: more than a third of at least 20
// targets within one period. A period is cut into 20 parts, so that what is
// counted is off by 5 % of a period at most.
const (
	brakeLeast = 20
	brakeShare = 3
	brakeParts = 20
)

// brake tells one target that fails from many that fail together, which is
// more often the fault of the prober or of its network than of the targets. It
// counts targets that were up and failed for the first time, by when they did;
// those that have been down for longer, and deleted ones, weigh nothing. So it
// cannot latch: one period after the last new failure nothing is left to count.
type brake struct {
	period time.Duration
	parts  [brakeParts]struct{ failing, fallen int }
	now    int64 // number of the current part
	sum    struct{ failing, fallen int }
	until  time.Duration // engaged until then; 0: not
}

// stamp says in which part of time a target failed; 0: it did not.
type stamp int64

// advance forgets the parts that a period has passed since.
func (b *brake) advance(now time.Duration) {
	part := int64(now/(b.period/brakeParts)) + 1
	for n := min(part-b.now, brakeParts); n > 0; n-- {
		old := &b.parts[(part-n+1)%brakeParts]
		b.sum.failing -= old.failing
		b.sum.fallen -= old.fallen
		old.failing, old.fallen = 0, 0
	}
	b.now = max(b.now, part)
}

func (b *brake) counts(s stamp) bool { return s > 0 && int64(s) > b.now-brakeParts }

// fail counts a target that was up and has failed once.
func (b *brake) fail(now time.Duration) stamp {
	b.advance(now)
	b.parts[b.now%brakeParts].failing++
	b.sum.failing++
	return stamp(b.now)
}

// fall says that a failing target is down now.
func (b *brake) fall(now time.Duration, s stamp) {
	if b.advance(now); b.counts(s) {
		b.parts[int64(s)%brakeParts].fallen++
		b.sum.fallen++
	}
}

// clear takes a failing target out again: it answered, or it was removed.
func (b *brake) clear(now time.Duration, s stamp, fallen bool) {
	if b.advance(now); !b.counts(s) {
		return
	}
	b.parts[int64(s)%brakeParts].failing--
	b.sum.failing--
	if fallen {
		b.parts[int64(s)%brakeParts].fallen--
		b.sum.fallen--
	}
}

// engaged tells whether down-writes are held. up is how many targets are up
// now; with those that fell within the period they are the base. Once engaged
// it stays so for a period after the share was last too high.
func (b *brake) engaged(now time.Duration, up int) bool {
	b.advance(now)
	if base := up + b.sum.fallen; base >= brakeLeast && b.sum.failing*brakeShare > base {
		b.until = now + b.period
	}
	return now < b.until
}
