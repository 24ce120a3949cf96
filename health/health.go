// Package health turns a row of answers into a verdict. It does no I/O and
// knows no clock.
package health

import "fmt"

// Verdict is what is believed of a target.
type Verdict uint8

// The zero value is Undecided: nothing has been said yet.
const (
	Undecided Verdict = iota
	Up
	Down
)

// String gives "undecided", "up" or "down".
func (v Verdict) String() string {
	switch v {
	case Undecided:
		return "undecided"
	case Up:
		return "up"
	case Down:
		return "down"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// MarshalText gives String, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Hysteresis keeps a verdict until enough answers in a row contradict it. Only
// answers that say something about the target are shown to it: "could not ask"
// is not an answer and neither counts nor breaks a row.
//
// The zero value with Rise and Fall set is ready; it is as big as a word, so
// that one can be kept for each of a million targets.
type Hysteresis struct {
	Rise, Fall uint8   // answers in a row, 1 to 255; 0 counts as 1
	Verdict    Verdict // what is believed; set it to start from a known state
	row        uint8   // answers in a row that contradict Verdict
	last       Verdict // what the last answer said
}

// Observe takes one answer and tells whether the verdict changed by it. From
// Undecided, Rise good answers lead to Up and Fall bad ones to Down.
func (h *Hysteresis) Observe(well bool) (changed bool) {
	said, need := Down, h.Fall
	if well {
		said, need = Up, h.Rise
	}
	if said != h.last {
		h.row, h.last = 0, said
	}
	if said == h.Verdict {
		h.row = 0
		return false
	}
	h.row++
	if h.row < max(need, 1) {
		return false
	}
	h.Verdict, h.row = said, 0
	return true
}

// Doubted tells whether the last answer contradicted the verdict.
func (h *Hysteresis) Doubted() bool { return h.row > 0 }
