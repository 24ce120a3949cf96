package registry

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNamespaces(t *testing.T) {
	s, log := logged()
	l := life{t, s}
	public := Namespace{"public", "public", "Default Namespace"}
	is := func(want ...Namespace) {
		t.Helper()
		if diff := cmp.Diff(append([]Namespace{public}, want...), s.CreatedNamespaces()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	is()
	dev, test := Namespace{"dev", "Development", ""}, Namespace{"a-test_1", "Test", "for tests"}
	l.ok(s.CreateNamespace(t.Context(), dev))
	l.ok(s.CreateNamespace(t.Context(), test))
	is(test, dev)
	dev.Name, dev.Description = "Dev", "for devs"
	l.ok(s.UpdateNamespace(t.Context(), dev))
	is(test, dev)
	if got, exists := s.Namespace("dev"); got != dev || !exists {
		t.Errorf("got %v %v", got, exists)
	}
	if got, exists := s.Namespace(""); got != public || !exists {
		t.Errorf("got %v %v for the empty id", got, exists)
	}

	// What changes nothing is not written down.
	before := len(log.commands)
	l.ok(s.UpdateNamespace(t.Context(), dev))
	l.ok(s.UpdateNamespace(t.Context(), Namespace{ID: "other", Name: "o"}))
	l.ok(s.UpdateNamespace(t.Context(), Namespace{ID: "public", Name: "mine"}))
	l.ok(s.DeleteNamespace(t.Context(), "other"))
	l.ok(s.DeleteNamespace(t.Context(), "public"))
	if n := len(log.commands); n != before {
		t.Errorf("%d commands for nothing", n-before)
	}
	is(test, dev)

	// A namespace that goes leaves its services alone, and need not be there.
	one := per("db", "1")
	one.Namespace = "dev"
	l.register(one)
	l.ok(s.DeleteNamespace(t.Context(), "dev"))
	is(test)
	one.IP = "10.0.0.2"
	l.register(one)
	if n := len(s.All(one.Service)); n != 2 {
		t.Errorf("%d instances, want 2", n)
	}
}

func TestNamespaceRefused(t *testing.T) {
	s := NewStore()
	l := life{t, s}
	l.ok(s.CreateNamespace(t.Context(), Namespace{ID: "dev", Name: "Dev"}))
	f := func(n Namespace, want string) {
		t.Helper()
		if err := s.CreateNamespace(t.Context(), n); err == nil || err.Error() != want || !errors.Is(err, ErrRefused) {
			t.Errorf("%+v: got %v, want %s", n, err, want)
		}
	}
	f(Namespace{ID: "dev", Name: "Other"}, "namespaceId [dev] already exist")
	f(Namespace{ID: "public", Name: "Other"}, "namespaceId [public] already exist")
	f(Namespace{ID: "a b", Name: "n"}, "namespaceId [a b] mismatch the pattern")
	f(Namespace{ID: "", Name: "n"}, "namespaceId [] mismatch the pattern")
	f(Namespace{ID: "é", Name: "n"}, "namespaceId [é] mismatch the pattern")
	long := strings.Repeat("x", 129)
	f(Namespace{ID: long, Name: "n"}, "too long namespaceId, over 128")
	f(Namespace{ID: "new", Name: "a#b"}, "namespaceName [a#b] contains illegal char")
	f(Namespace{ID: "new"}, "namespaceName [] contains illegal char")
	l.ok(s.CreateNamespace(t.Context(), Namespace{ID: long[:128], Name: "n"}))
	if err := s.UpdateNamespace(t.Context(), Namespace{ID: "dev", Name: "$"}); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// Two who create the same at once: one is told so, by the log.
func TestNamespaceCreatedTwiceAtOnce(t *testing.T) {
	s, log := logged()
	first := true
	log.before = func() {
		if first {
			first = false
			life{t, s}.ok(s.CreateNamespace(t.Context(), Namespace{ID: "dev", Name: "First"}))
		}
	}
	err := s.CreateNamespace(t.Context(), Namespace{ID: "dev", Name: "Second"})
	if err == nil || err.Error() != "namespaceId [dev] already exist" {
		t.Errorf("got %v", err)
	}
	if n, _ := s.Namespace("dev"); n.Name != "First" {
		t.Errorf("got %v, want the first", n)
	}
	// An update that comes after the deletion revives nothing.
	log.before = nil
	log.before = func() {
		log.before = nil
		life{t, s}.ok(s.DeleteNamespace(t.Context(), "dev"))
	}
	life{t, s}.ok(s.UpdateNamespace(t.Context(), Namespace{ID: "dev", Name: "Late"}))
	if n, exists := s.Namespace("dev"); exists {
		t.Errorf("%v is back", n)
	}
}

func TestLogDown(t *testing.T) {
	s, log := logged()
	log.refuse = ErrUnavailable
	err := s.SetSwitch(t.Context(), "check", "false")
	if !errors.Is(err, ErrUnavailable) || err.Error() != "cannot write a change of switch check: registry cannot take writes now" {
		t.Errorf("got %v", err)
	}
	err = s.CreateNamespace(t.Context(), Namespace{ID: "dev", Name: "Dev"})
	if !errors.Is(err, ErrUnavailable) || err.Error() != "cannot write a change of namespace dev: registry cannot take writes now" {
		t.Errorf("got %v", err)
	}
	if _, exists := s.Namespace("dev"); exists || !s.Switches().HealthCheckEnabled {
		t.Error("it is there although it was not written")
	}
}

// Whatever operators say, a restart by snapshot, by log or by both gives the
// same switches and namespaces.
func TestOperatorsWordOutlivesRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, log := logged()
		cut := 0
		var image []byte
		want := map[string]Namespace{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			n := Namespace{id, rapid.StringMatching(`[a-z ]{1,5}`).Draw(t, "name"), rapid.String().Draw(t, "description")}
			_, exists := want[id]
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				if err := s.CreateNamespace(t.Context(), n); (err != nil) != exists {
					t.Fatalf("create: %v", err)
				}
				if !exists {
					want[id] = n
				}
			case 1:
				if err := s.UpdateNamespace(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				if exists {
					want[id] = n
				}
			case 2:
				if err := s.DeleteNamespace(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				delete(want, id)
			case 3:
				entry := rapid.SampledFrom(slices.Sorted(maps.Keys(switchSetters))).Draw(t, "entry")
				value := rapid.SampledFrom([]string{"true", "false", "10000", "-1", "0.5", "", "null", "java:9.9.9", "/a:403,/b:503",
					`{"max":4000,"min":600,"factor":0.5}`, "x,y"}).Draw(t, "value")
				if err := s.SetSwitch(t.Context(), entry, value); err != nil && !errors.Is(err, ErrRefused) {
					t.Fatal(err)
				}
			default:
				image, cut = taken(t, s), len(log.commands)
			}
		}
		f := func(how string, s *Store) {
			if diff := cmp.Diff(append([]Namespace{publicNamespace}, sorted(want)...), s.CreatedNamespaces()); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", how, diff)
			}
		}
		f("itself", s)
		back := NewStore()
		if cut > 0 {
			if err := back.Restore(reader(image)); err != nil {
				t.Fatal(err)
			}
		}
		for i, command := range log.commands[cut:] {
			back.Apply(uint64(i), command)
		}
		f("snapshot and log", back)
		whole, again := NewStore(), NewStore()
		if err := whole.Restore(reader(taken(t, s))); err != nil {
			t.Fatal(err)
		}
		if err := again.Restore(reader(taken(t, whole))); err != nil {
			t.Fatal(err)
		}
		f("snapshot", whole)
		f("snapshot of that", again)
		for _, other := range []*Store{back, whole, again} {
			if diff := cmp.Diff(s.Switches(), other.Switches()); diff != "" {
				t.Fatalf("switches (-want +got):\n%s", diff)
			}
		}
	})
}

func sorted(all map[string]Namespace) []Namespace {
	return slices.SortedFunc(maps.Values(all), func(a, b Namespace) int { return strings.Compare(a.ID, b.ID) })
}

// taken is snapshot for rapid.
func taken(t *rapid.T, s *Store) []byte {
	write, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var image strings.Builder
	if err := write(&image); err != nil {
		t.Fatal(err)
	}
	return []byte(image.String())
}
