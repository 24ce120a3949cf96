package registry

import (
	"bytes"
	"testing"
)

func snapshot(tb testing.TB, s *Store) []byte {
	tb.Helper()
	write, err := s.Snapshot()
	if err != nil {
		tb.Fatal(err)
	}
	var image bytes.Buffer
	if err := write(&image); err != nil {
		tb.Fatal(err)
	}
	return image.Bytes()
}

func restored(tb testing.TB, image []byte) *Store {
	tb.Helper()
	s := NewStore()
	if err := s.Restore(bytes.NewReader(image)); err != nil {
		tb.Fatal(err)
	}
	return s
}
