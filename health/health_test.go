package health

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHysteresis(t *testing.T) {
	f := func(start Verdict, rise, fall uint8, answers, want string) {
		t.Helper()
		h := Hysteresis{Rise: rise, Fall: fall, Verdict: start}
		var got strings.Builder
		for _, a := range answers {
			h.Observe(a == '+')
			got.WriteByte("?UD"[h.Verdict])
		}
		if got.String() != want {
			t.Errorf("start %v rise %d fall %d answers %s: got %s, want %s", start, rise, fall, answers, got.String(), want)
		}
	}
	f(Undecided, 1, 3, "+", "U")
	f(Undecided, 1, 3, "---", "??D")
	f(Undecided, 2, 3, "+-+--+--+---", "???????????D")
	f(Up, 2, 3, "--+---", "UUUUUD")
	f(Down, 2, 3, "+-++", "DDDU")
	f(Down, 1, 1, "+-+-", "UDUD")
	f(Up, 0, 0, "-+", "DU") // 0 counts as 1
	// envoyproxy/envoy#7171: every kind of failure counts alike.
	f(Up, 2, 3, "+-+--+---++", "UUUUUUUUDDU")
}

// The verdict after any row of answers is the one that the definition gives:
// the latest run that was long enough wins.
func TestHysteresisProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rise := rapid.Uint8Range(1, 5).Draw(t, "rise")
		fall := rapid.Uint8Range(1, 5).Draw(t, "fall")
		answers := rapid.SliceOf(rapid.Bool()).Draw(t, "answers")
		h := Hysteresis{Rise: rise, Fall: fall}
		want, run, last := Undecided, uint8(0), false
		for i, well := range answers {
			if i == 0 || well != last {
				run, last = 0, well
			}
			if run < 255 {
				run++
			}
			before := want
			if well && run >= rise {
				want = Up
			} else if !well && run >= fall {
				want = Down
			}
			if changed := h.Observe(well); changed != (want != before) || h.Verdict != want {
				t.Fatalf("answer %d: got %v changed %v, want %v", i, h.Verdict, changed, want)
			}
		}
	})
}

func TestDoubted(t *testing.T) {
	h := Hysteresis{Rise: 2, Fall: 3, Verdict: Up}
	if h.Observe(false); !h.Doubted() {
		t.Error("one bad answer must leave an up target doubted")
	}
	if h.Observe(true); h.Doubted() {
		t.Error("a good answer must end the doubt")
	}
}
