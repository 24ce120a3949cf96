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

// chunkLen is the number of slots that are made at once: small, because each
// shard has a chunk that is not full.
const chunkLen = 128

type chunk struct {
	words   *[chunkLen]atomic.Uint64 // apart, so that a sweep reads nothing else
	records *[chunkLen]record
}

// slots are the places for the instances of a shard. A slot keeps its number
// and its address in memory as long as the store lives. Guarded by the shard's
// lock, except that words may be read and swapped at any time.
type slots struct {
	chunks []chunk
	free   []uint32
	used   uint32 // slots ever given out
}

// take gives an unused slot, its record zeroed.
func (s *slots) take() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	if int(s.used) == len(s.chunks)*chunkLen {
		fresh := chunk{new([chunkLen]atomic.Uint64), new([chunkLen]record)}
		for i := range fresh.words {
			fresh.words[i].Store(uint64(never))
		}
		s.chunks = append(s.chunks, fresh)
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
	return &s.chunks[slot/chunkLen].words[slot%chunkLen]
}

func (s *slots) state(slot uint32) word { return word(s.word(slot).Load()) }

func (s *slots) record(slot uint32) *record {
	return &s.chunks[slot/chunkLen].records[slot%chunkLen]
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
	for c := range s.chunks {
		words := s.chunks[c].words
		for i := range words {
			if word(words[i].Load()).due() < now {
				to = append(to, uint32(c*chunkLen+i))
			}
		}
	}
	return to
}
