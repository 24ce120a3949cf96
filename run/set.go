package run

import "sync"

// Set runs work side by side, at most limit at a time, for a caller that does
// not wait for each. Only one goroutine may call Go and Wait.
type Set struct {
	running sync.WaitGroup
	places  chan struct{}
}

// NewSet returns a set with at least one place.
func NewSet(limit int) *Set { return &Set{places: make(chan struct{}, max(limit, 1))} }

// Go starts do, or returns false at once when all places are taken.
func (s *Set) Go(do func()) bool {
	select {
	case s.places <- struct{}{}:
	default:
		return false
	}
	s.running.Go(func() {
		defer func() { <-s.places }()
		do()
	})
	return true
}

// Wait returns when all that was started has returned.
func (s *Set) Wait() { s.running.Wait() }
