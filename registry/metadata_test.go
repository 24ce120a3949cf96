package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The batch at the end of the recording 01-update, and what a restart leaves.
func TestMetadataOfMany(t *testing.T) {
	s, log := logged()
	l := life{t, s}
	one, two := eph("upd", "1"), eph("upd", "2")
	one.Metadata = map[string]string{"a": "1"}
	l.register(one, two, per("db", "1"))
	l.ok(s.Override(t.Context(), one.Key, Overlay{Weight: new(2.0), Metadata: map[string]string{"d": "4"}}))

	loose := Key{IP: one.IP, Port: one.Port} // what a batch names of an instance
	unknown, elsewhere := eph("upd", "9").Key, one.Key
	elsewhere.Cluster = "west"
	got, err := s.PutMetadata(t.Context(), one.Service, []Key{loose, unknown, elsewhere, two.Key}, map[string]string{"e": "5"})
	l.ok(err)
	if diff := cmp.Diff([]Key{one.Key, two.Key}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	l.shows(one.Key, 2, true, map[string]string{"a": "1", "d": "4", "e": "5"})
	l.shows(two.Key, 1, true, map[string]string{"e": "5"})
	if n := len(log.commands); n != 3 {
		t.Errorf("%d commands, want one for each of register, override, batch", n)
	}

	// What the client published survives the taking out.
	got, err = s.DropMetadata(t.Context(), one.Service, []Key{one.Key}, []string{"e", "a", "none"})
	l.ok(err)
	if diff := cmp.Diff([]Key{one.Key}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	l.shows(one.Key, 2, true, map[string]string{"a": "1", "d": "4"})
	l.shows(two.Key, 1, true, map[string]string{"e": "5"})

	_, err = s.PutMetadata(t.Context(), per("db", "1").Service, []Key{per("db", "1").Key}, map[string]string{"p": "1"})
	l.ok(err)
	_, err = s.DropMetadata(t.Context(), per("db", "1").Service, []Key{per("db", "1").Key}, []string{"q"})
	l.ok(err)
	l.shows(per("db", "1").Key, 1, true, map[string]string{"p": "1"})
	fromLog := NewStore()
	for i, command := range log.commands {
		fromLog.Apply(uint64(i), command)
	}
	for _, back := range []*Store{fromLog, restored(t, snapshot(t, s))} {
		after := life{t, back}
		after.register(one, two)
		after.shows(one.Key, 2, true, map[string]string{"a": "1", "d": "4"})
		after.shows(two.Key, 1, true, map[string]string{"e": "5"})
		after.shows(per("db", "1").Key, 1, true, map[string]string{"p": "1"})
	}
}

func TestMetadataOfNobody(t *testing.T) {
	s, log := logged()
	l := life{t, s}
	l.register(eph("upd", "1"))
	f := func(service Service, instances []Key, metadata map[string]string, want int) {
		t.Helper()
		got, err := s.PutMetadata(t.Context(), service, instances, metadata)
		if err != nil || len(got) != want {
			t.Errorf("got %v %v, want %d", got, err, want)
		}
		if len(log.commands) > 0 {
			t.Errorf("a command for nothing")
		}
	}
	one := eph("upd", "1")
	f(one.Service, nil, map[string]string{"a": "1"}, 0)
	f(one.Service, []Key{eph("upd", "2").Key}, map[string]string{"a": "1"}, 0)
	f(eph("other", "1").Service, []Key{one.Key}, map[string]string{"a": "1"}, 0)
	f(one.Service, []Key{one.Key}, nil, 1)
	// Taking out where nothing lies leaves no empty overlay behind.
	if _, err := s.DropMetadata(t.Context(), one.Service, []Key{one.Key}, []string{"a"}); err != nil {
		t.Error(err)
	}
	if _, set := s.Overlay(one.Key); set {
		t.Error("an overlay came from taking out")
	}
}
