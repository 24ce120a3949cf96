package prober

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The phase is the target's alone: two processes that start at any time ask it
// at the same instants of the wall clock, one interval apart.
func TestPhasedIsKeptOverARestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(int64(time.Second), int64(24*time.Hour)).Draw(t, "interval"))
		hash := rapid.Uint64().Draw(t, "hash")
		offset := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(1.7e18, 2e18).Draw(t, name))
		}
		after := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "after"))
		one, other := offset("start"), offset("restart")
		first := phased(after, one, hash, interval)
		if first <= after || first > after+interval {
			t.Fatalf("%v after %v is not within one interval", first, after)
		}
		if next := phased(first, one, hash, interval); next != first+interval {
			t.Fatalf("after %v comes %v, want one interval later", first, next)
		}
		again := phased(after, other, hash, interval)
		if (first%interval+one%interval)%interval != (again%interval+other%interval)%interval {
			t.Fatalf("phase moved over the restart")
		}
	})
}

func TestPhasesAreFlat(t *testing.T) {
	const targets, slots = 100_000, 200
	var count [slots]int
	for i := range targets {
		h := hashOf("public", "DEFAULT_GROUP", fmt.Sprintf("orders-%d", i%500), "DEFAULT", fmt.Sprintf("10.0.%d.%d", i>>8&255, i&255), "8080")
		count[phased(0, 0, h, 20*time.Second)*slots/(20*time.Second+1)]++
	}
	// 500 expected in each slot; five standard deviations.
	if least, most := slices.Min(count[:]), slices.Max(count[:]); least < 388 || most > 612 {
		t.Errorf("between %d and %d starts in a tenth of a second, want about 500", least, most)
	}
}

// The hash is a promise: another one would shift every phase at an upgrade.
func TestHashIsFixed(t *testing.T) {
	if got := hashOf("public", "DEFAULT_GROUP", "orders", "DEFAULT", "10.0.0.7", "8080"); got != 0xe1ee3898e3b39083 {
		t.Errorf("got %#x", got)
	}
	if hashOf("a", "bc") == hashOf("ab", "c") {
		t.Error("parts run into each other")
	}
}

func TestAgendaIsSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		var model []time.Duration
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(model) > 0 && rapid.Bool().Draw(t, "take") {
				if a.next() != model[0] {
					t.Fatalf("next is %v, want %v", a.next(), model[0])
				}
				if got := a.take(); got.due != model[0] || got.ref.row != int32(got.due) {
					t.Fatalf("took %v, want %v", got, model[0])
				}
				model = model[1:]
				continue
			}
			due := time.Duration(rapid.IntRange(0, 30).Draw(t, "due"))
			a.add(due, ref{row: int32(due)})
			at, _ := slices.BinarySearchFunc(model, due, cmp.Compare[time.Duration])
			model = slices.Insert(model, at, due)
		}
		if len(model) == 0 && a.next() != math.MaxInt64 {
			t.Fatal("an empty agenda has nothing to come")
		}
	})
}

func TestQueueIsFirstInFirstOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		in, out := int32(0), int32(0)
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			for range rapid.IntRange(0, 3000).Draw(t, "push") {
				q.push(ref{row: in})
				in++
			}
			for range rapid.IntRange(0, 3000).Draw(t, "pop") {
				r, some := q.pop()
				if some != (out < in) || some && r.row != out {
					t.Fatalf("popped %v %v, want %d of %d", r, some, out, in)
				}
				if some {
					out++
				}
			}
			if q.len() != int(in-out) {
				t.Fatalf("length %d, want %d", q.len(), in-out)
			}
		}
	})
}

func TestBucket(t *testing.T) {
	b := bucket{rate: 200, most: 20}
	now, passed := time.Duration(0), 0
	for now < 10*time.Second {
		if wait := b.wait(now); wait > 0 {
			now += wait
			continue
		}
		b.take()
		passed++
	}
	if passed < 2000 || passed > 2021 {
		t.Errorf("%d passed in 10 s, want 2000 and the first 20", passed)
	}
}
