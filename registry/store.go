package registry

import "context"

// Log makes commands durable and applies them to the store in one order. A nil
// Log applies at once and keeps nothing.
type Log interface {
	// Append returns after the command is durable and applied, with what
	// Store.Apply returned for it. ErrUnavailable: not taken.
	Append(ctx context.Context, command []byte) (any, error)
}
