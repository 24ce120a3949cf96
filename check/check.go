// Package check knows how a question is asked: a Spec is parsed from one URL,
// an Asker asks it once, within the deadline of the context, and gives an
// Answer. It has no timer and writes no log.
//
// What was asked and is bad is Sick; what could not be asked, because something
// on our side is missing, is Unknown. The kinds of questions stand at ParseSpec.
package check

import (
	"fmt"
	"time"
)

// Kind says what an answer is worth.
type Kind uint8

// Unknown is the zero value: the question could not be asked (no such program,
// no sockets left, shutting down), which says nothing about the target.
const (
	Unknown Kind = iota
	Well
	Sick
)

// String gives "unknown", "well" or "sick".
func (k Kind) String() string {
	switch k {
	case Unknown:
		return "unknown"
	case Well:
		return "well"
	case Sick:
		return "sick"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText gives String, for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Answer is what came back from asking once.
type Answer struct {
	Kind   Kind
	Reason string        // printable, one line, at most 200 bytes: "200 OK", "refused", "timeout after 1s"
	Took   time.Duration // from the start of the question to its answer
}
