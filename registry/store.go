package registry

import "context"

// Log makes commands durable and applies them to the store in one order. A nil
// Log applies at once and keeps nothing.
type Log interface {
	// Append returns after the command is durable and applied, with what
	// Store.Apply returned for it. ErrUnavailable: not taken.
	Append(ctx context.Context, command []byte) (any, error)
}

// Store holds the instances of all services in memory: the model of Nacos 2.x.
// What is persistent, and what operators set, goes through a Log; ephemeral
// instances never touch it. All methods are safe for concurrent use.
type Store struct {
	log Log
}

// NewStore returns an empty store that keeps nothing on disk. It is ready to
// use; without Run nothing expires.
func NewStore() *Store { return &Store{} }

// UseLog makes the store durable. Call it before anything else.
func (s *Store) UseLog(l Log) { s.log = l }
