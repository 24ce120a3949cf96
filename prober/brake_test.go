package prober

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBrake(t *testing.T) {
	f := func(targets, failing int, want bool) {
		t.Helper()
		b := brake{period: 20 * time.Second}
		for range failing {
			b.fail(time.Second)
		}
		if got := b.engaged(2*time.Second, targets); got != want {
			t.Errorf("%d of %d fail: engaged %v, want %v", failing, targets, got, want)
		}
	}
	f(19, 19, false) // too few to say anything
	f(20, 6, false)
	f(20, 7, true)
	f(21, 7, false) // a third is not more than a third
	f(99, 33, false)
	f(99, 34, true)
}

// What fell weighs in the base, too: as targets go from up to down the share
// stays the same.
func TestBrakeCountsWhatFell(t *testing.T) {
	b := brake{period: 20 * time.Second}
	var stamps []stamp
	for range 10 {
		stamps = append(stamps, b.fail(time.Second))
	}
	for _, s := range stamps[:9] {
		b.fall(2*time.Second, s)
	}
	if b.engaged(3*time.Second, 30-9) {
		t.Error("10 of 30 are not more than a third")
	}
	b.clear(3*time.Second, stamps[9], false)
	b.clear(3*time.Second, stamps[0], true)
	if b.sum.failing != 8 || b.sum.fallen != 8 {
		t.Errorf("got %+v, want 8 and 8", b.sum)
	}
}

// After the last new failure it holds for two periods at most: one until the
// failure is too old to count, one since the share was last too high.
func TestBrakeDoesNotLatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const period = 20 * time.Second
		b := brake{period: period}
		now, up := time.Second, rapid.IntRange(20, 200).Draw(t, "targets")
		total := up
		for range rapid.IntRange(1, 300).Draw(t, "failures") {
			now += time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "after"))
			if up == 0 {
				break
			}
			s := b.fail(now)
			if rapid.Bool().Draw(t, "falls") {
				b.fall(now, s)
				up--
			} else {
				b.clear(now, s, false)
			}
			b.engaged(now, up)
			if b.sum.failing < 0 || b.sum.fallen < 0 || b.sum.failing > total {
				t.Fatalf("impossible sums %+v", b.sum)
			}
		}
		if b.engaged(now+2*period+period/brakeParts, up) {
			t.Fatal("engaged although nothing has failed for two periods")
		}
		if b.sum.failing != 0 || b.sum.fallen != 0 {
			t.Fatalf("old failures are left over: %+v", b.sum)
		}
	})
}

func TestBrakeForgetsOneByOne(t *testing.T) {
	b := brake{period: 20 * time.Second}
	for at := range 20 {
		b.fail(time.Duration(at) * time.Second)
	}
	for at := range 20 {
		b.advance(time.Duration(20+at)*time.Second + time.Millisecond)
		if want := 19 - at; b.sum.failing != want {
			t.Errorf("at %d s: %d count, want %d", 20+at, b.sum.failing, want)
		}
	}
}
