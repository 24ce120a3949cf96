package registry

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestSortedNames holds the lists that are kept against reading all services,
// whatever came, went and changed its kind since they were read last.
func TestSortedNames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := NewStore()
		key := func() Instance {
			name := fmt.Sprint(rapid.IntRange(0, 9).Draw(r, "service"))
			if rapid.Bool().Draw(r, "ephemeral") {
				return eph(name, "1")
			}
			return per(name, "1")
		}
		check := func(*rapid.T) {
			all, persistent := s.sorted()
			wantAll, wantPersistent := s.sort()
			if !slices.Equal(all, wantAll) || !slices.Equal(persistent, wantPersistent) {
				r.Fatalf("%v, persistent %v\nwant %v, persistent %v", all, persistent, wantAll, wantPersistent)
			}
			if n := s.names.in(DefaultNamespace); n != len(all) {
				r.Fatalf("%d services are counted, %d are there", n, len(all))
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"register":   func(*rapid.T) { _ = s.Register(t.Context(), key()) }, // the other kind may be there
			"deregister": func(*rapid.T) { _ = s.Deregister(t.Context(), key().Key) },
			"delete":     func(*rapid.T) { _ = s.DeleteService(t.Context(), key().Service) },
			"many":       func(*rapid.T) { s.names.changed, s.names.many = nil, true },
			"look":       check,
		})
		check(r)
	})
}

// More changes than are noted are found all the same.
func TestSortedNamesAfterManyChanges(t *testing.T) {
	s := NewStore()
	before, _ := s.sorted()
	for i := range 2*mostNoted + 1 {
		if err := s.Register(t.Context(), eph(fmt.Sprint(i), "1")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.names.changed); n != 0 {
		t.Errorf("%d changes are kept", n)
	}
	all, _ := s.sorted()
	if len(before) != 0 || len(all) != 2*mostNoted+1 || !slices.IsSortedFunc(all, Service.Compare) {
		t.Errorf("%d services, then %d", len(before), len(all))
	}
}

// A list that was read stays as it is, whatever comes and goes.
func TestSortedNamesAreNotChangedInPlace(t *testing.T) {
	s := NewStore()
	var lists, copies [][]Service
	for i := range 100 {
		name := fmt.Sprint(i * 37 % 100)
		if err := s.Register(t.Context(), eph(name, "1")); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := s.Deregister(t.Context(), eph(name, "1").Key); err != nil {
				t.Fatal(err)
			}
			if err := s.DeleteService(t.Context(), eph(name, "1").Service); err != nil {
				t.Fatal(err)
			}
		}
		list := s.Services("", "")
		lists, copies = append(lists, list), append(copies, slices.Clone(list))
	}
	if diff := cmp.Diff(copies, lists); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Inhabited knows the services with instances, whatever became of the others.
func TestInhabited(t *testing.T) {
	live(t, func(l life) {
		is := func(names ...string) {
			l.Helper()
			var want []Service
			for _, name := range names {
				want = append(want, Service{DefaultNamespace, DefaultGroup, name})
			}
			if diff := cmp.Diff(want, l.Inhabited(""), cmpopts.EquateEmpty()); diff != "" {
				l.Errorf("-want +got:\n%s", diff)
			}
		}
		is()
		l.register(eph("a", "1"), eph("b", "1"), per("p", "1"))
		is("a", "b", "p")
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: Service{Name: "c"}}))
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: Service{Namespace: "other", Name: "b"}}))
		is("a", "b", "p")
		l.ok(l.Deregister(l.Context(), eph("a", "1").Key))
		l.ok(l.Deregister(l.Context(), per("p", "1").Key))
		is("b")
		l.register(eph("a", "2"))
		is("a", "b")
		l.pass(40 * time.Second) // all go silent
		is()
	})
}
