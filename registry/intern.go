package registry

// interner keeps one copy of each value that many records share and counts who
// uses it, so that a record holds a number and the garbage collector has
// nothing to follow. It is guarded by its shard's lock.
type interner[T comparable] struct {
	numbers map[T]uint32
	values  []T
	uses    []uint32
	free    []uint32
}

// take gives the number of the value and counts one more use of it.
func (n *interner[T]) take(value T) uint32 {
	if number, ok := n.numbers[value]; ok {
		n.uses[number]++
		return number
	}
	if n.numbers == nil {
		n.numbers = map[T]uint32{}
	}
	number := n.place(value)
	n.numbers[value] = number
	return number
}

func (n *interner[T]) place(value T) uint32 {
	if last := len(n.free) - 1; last >= 0 {
		number := n.free[last]
		n.free = n.free[:last]
		n.values[number], n.uses[number] = value, 1
		return number
	}
	n.values, n.uses = append(n.values, value), append(n.uses, 1)
	return uint32(len(n.values) - 1)
}

// drop counts one use less; a value without any is forgotten.
func (n *interner[T]) drop(number uint32) {
	if n.uses[number]--; n.uses[number] > 0 {
		return
	}
	var none T
	delete(n.numbers, n.values[number])
	n.values[number] = none
	n.free = append(n.free, number)
}

// find gives the number of a value without counting.
func (n *interner[T]) find(value T) (uint32, bool) {
	number, ok := n.numbers[value]
	return number, ok
}

func (n *interner[T]) value(number uint32) T { return n.values[number] }
