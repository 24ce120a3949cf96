package registry

import "sync/atomic"

// word is the beat state of one slot, changed only by compare-and-swap:
//
//	bits  0-41  when something is due for lack of beats, a stamp; never for
//	            persistent instances and free slots
//	bit   42    unhealthy
//	bits 43-63  generation: grows each time the slot is given back
//
// A beat that was on its way when its instance went sees another generation
// and touches nothing.
type word uint64

const (
	timeMask       = 1<<42 - 1
	unhealthyBit   = 1 << 42
	generationUnit = 1 << 43
)

func (w word) due() stamp    { return stamp(w & timeMask) }
func (w word) healthy() bool { return w&unhealthyBit == 0 }

// with gives the same generation with another deadline and health.
func (w word) with(due stamp, healthy bool) word {
	next := w&^(timeMask|unhealthyBit) | word(min(due, never))
	if !healthy {
		next |= unhealthyBit
	}
	return next
}

// freed gives the word of a slot that belongs to nobody.
func (w word) freed() word { return w.with(never, true) + generationUnit }

// record is what a slot holds besides its beat state. It has no pointers;
// numbers are those of the interners and the services of its shard.
type record struct {
	ip       [16]byte // address, or the number of an odd text
	weight   float64
	revision uint64
	service  uint32
	metadata uint32
	cluster  uint32
	periods  uint32
	port     uint16
	flags    flags
}

type flags uint8

const (
	flagOdd      flags = 1 << iota // ip is no canonical address
	flagPersists                   // persistent instance
	flagDisabled
	flagNoID
)

// key finds the slot of an instance: nothing in it is hashed away, so nothing
// can collide.
type key struct {
	ip      [16]byte
	service uint32
	port    uint16
	flags   flags // flagOdd and flagPersists
}

func (r *record) key() key {
	return key{r.ip, r.service, r.port, r.flags & (flagOdd | flagPersists)}
}

// Slots are made so many at once. Records in small chunks, because each shard
// has one that is not full; words, which are small, in long ones, because a
// sweep reads them all and is quicker over memory that lies together.
const (
	recordChunk = 128
	wordChunk   = 1024
)

// slots are the places for the instances of a shard. A slot keeps its number
// and its address in memory as long as the store lives. Guarded by the shard's
// lock, except that words may be read and swapped at any time.
type slots struct {
	words   []*[wordChunk]atomic.Uint64
	records []*[recordChunk]record
	free    []uint32
	used    uint32 // slots ever given out
}

// take gives an unused slot, its record zeroed.
func (s *slots) take() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	if s.used%recordChunk == 0 {
		s.records = append(s.records, new([recordChunk]record))
	}
	if s.used%wordChunk == 0 {
		fresh := new([wordChunk]atomic.Uint64)
		for i := range fresh {
			fresh[i].Store(uint64(never))
		}
		s.words = append(s.words, fresh)
	}
	s.used++
	return s.used - 1
}

// give takes a slot back and puts an end to its generation.
func (s *slots) give(slot uint32) {
	w := s.word(slot)
	for {
		old := w.Load()
		if w.CompareAndSwap(old, uint64(word(old).freed())) {
			break
		}
	}
	*s.record(slot) = record{}
	s.free = append(s.free, slot)
}

func (s *slots) word(slot uint32) *atomic.Uint64 {
	return &s.words[slot/wordChunk][slot%wordChunk]
}

func (s *slots) state(slot uint32) word { return word(s.word(slot).Load()) }

func (s *slots) record(slot uint32) *record {
	return &s.records[slot/recordChunk][slot%recordChunk]
}

// set puts deadline and health of a slot whatever a beat does meanwhile.
func (s *slots) set(slot uint32, due stamp, healthy bool) {
	w := s.word(slot)
	for {
		old := w.Load()
		if w.CompareAndSwap(old, uint64(word(old).with(due, healthy))) {
			return
		}
	}
}

// overdue appends the slots whose deadline is before now: strictly, as Nacos
// compares.
func (s *slots) overdue(now stamp, to []uint32) []uint32 {
	for c, words := range s.words {
		for i := range words {
			if word(words[i].Load()).due() < now {
				to = append(to, uint32(c*wordChunk+i))
			}
		}
	}
	return to
}
