package registrytest

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// Rules are what a registry promises, one by one.
var Rules = []Rule{
	{Name: "what is registered is read back", Check: readBack},
	{Name: "addresses are kept as they are written", Check: addresses},
	{Name: "the unknown is not found", Check: unknown},
	{Name: "registering again replaces all", Check: replaces},
	{Name: "the registry sets the pace of beats", Check: pace},
	{Name: "a beat heals", Check: heals},
	{Name: "mark changes health and enabled", Check: mark},
	{Name: "mark never creates", Check: markNeverCreates},
	{Name: "nothing comes back from the dead", Check: dead},
	{Name: "a service is of one kind", Check: oneKind},
	{Name: "a wrong request is refused", Check: refuses},
	{Name: "a persistent instance takes no beats and no ephemeral deregistration", Check: persistent},
	{Name: "silence makes unhealthy and deletes", Check: silence, needs: expiry},
	{Name: "own periods", Check: ownPeriods, needs: expiry},
	{Name: "revisions grow with changes, not with beats", Check: growing, needs: revisions},
	{Name: "SetHealth touches nothing but health", Check: onlyHealth, needs: compareAndSet},
	{Name: "SetHealth refuses what is stale", Check: stale, needs: compareAndSet},
	{Name: "SetHealth never creates", Check: healthNeverCreates, needs: compareAndSet},
	{Name: "pages show each persistent instance once", Check: pages, needs: compareAndSet},
	{Name: "pages bear changes in between", Check: pagesChange, needs: compareAndSet},
}

// fails checks for the error that has a consequence.
func (h harness) fails(what string, got, want error) {
	h.Helper()
	if !errors.Is(got, want) {
		h.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}

func readBack(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	for _, ephemeral := range []bool{true, false} {
		one := instance("kind-"+strconv.FormatBool(ephemeral), "1", ephemeral)
		one.Cluster, one.Weight, one.Metadata = "east-1", 2.5, map[string]string{"version": "1.2", "note": "a=b, c&d é"}
		h.must(h.Register(h.Context(), one))
		h.sees(one)
		one.IP, one.Healthy = "10.0.0.2", false
		h.must(h.Register(h.Context(), one))
		h.sees(one)
	}
}

func addresses(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	texts := []string{"10.0.0.1", "2001:db8::7", "2001:DB8::7", "::1", "web-1.example.org", "10.0.0", "999.0.0.1"}
	for i, text := range texts {
		one := instance("odd", "", true)
		one.IP, one.Weight = text, float64(i)
		h.must(h.Register(h.Context(), one))
	}
	for i, text := range texts {
		one := instance("odd", "", true)
		one.IP, one.Weight = text, float64(i)
		h.sees(one)
		_, err := h.Beat(h.Context(), one)
		h.must(err)
	}
}

func unknown(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("orders", "1", true)
	h.misses(one.Key)
	_, err := h.Beat(h.Context(), one)
	h.fails("beating", err, registry.ErrNotFound)
	h.misses(one.Key)
	h.must(h.Deregister(h.Context(), one.Key))
	h.must(h.Register(h.Context(), one))
	h.sees(one)
	other := instance("orders", "2", true)
	_, err = h.Beat(h.Context(), other)
	h.fails("beating beside a known one", err, registry.ErrNotFound)
	h.misses(other.Key)
}

func replaces(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	for _, ephemeral := range []bool{true, false} {
		one := instance("kind-"+strconv.FormatBool(ephemeral), "1", ephemeral)
		one.Weight, one.Metadata = 3, map[string]string{"a": "1", "b": "2"}
		h.must(h.Register(h.Context(), one))
		h.sees(one)
		one.Weight, one.Metadata, one.Healthy = 0, map[string]string{"b": "3"}, false
		h.must(h.Register(h.Context(), one))
		h.sees(one)
	}
}

func pace(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	f := func(last string, metadata map[string]string, want time.Duration) {
		h.Helper()
		one := instance("orders", last, true)
		one.Metadata = metadata
		h.must(h.Register(h.Context(), one))
		h.sees(one)
		if next, err := h.Beat(h.Context(), one); err != nil || next != want {
			h.Fatalf("with %v: got %v %v, want %v", metadata, next, err, want)
		}
	}
	f("1", nil, registry.DefaultBeatInterval)
	f("2", map[string]string{registry.KeyBeatInterval: "2000"}, 2*time.Second)
}

func heals(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("orders", "1", true)
	one.Healthy = false
	h.must(h.Register(h.Context(), one))
	h.sees(one)
	_, err := h.Beat(h.Context(), one)
	h.must(err)
	one.Healthy = true
	h.sees(one)
}

func mark(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	for _, ephemeral := range []bool{true, false} {
		one := instance("kind-"+strconv.FormatBool(ephemeral), "1", ephemeral)
		one.Metadata = map[string]string{"version": "1"}
		h.must(h.Register(h.Context(), one))
		h.sees(one)
		one.Healthy = false
		h.must(h.Mark(h.Context(), one))
		h.sees(one)
		one.Healthy, one.Enabled, one.Weight = true, false, 2
		h.must(h.Mark(h.Context(), one))
		h.sees(one)
		one.Enabled = true
		h.must(h.Mark(h.Context(), one))
		h.sees(one)
	}
}

func markNeverCreates(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	for _, ephemeral := range []bool{true, false} {
		one := instance("kind-"+strconv.FormatBool(ephemeral), "1", ephemeral)
		h.fails("marking", h.Mark(h.Context(), one), registry.ErrNotFound)
		h.misses(one.Key)
		h.must(h.Register(h.Context(), one))
		h.sees(one)
		other := one
		other.Port++
		h.fails("marking beside a known one", h.Mark(h.Context(), other), registry.ErrNotFound)
		h.misses(other.Key)
	}
}

func dead(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("orders", "1", true)
	h.must(h.Register(h.Context(), one))
	h.sees(one)
	h.must(h.Deregister(h.Context(), one.Key))
	h.misses(one.Key)
	_, err := h.Beat(h.Context(), one)
	h.fails("a late beat", err, registry.ErrNotFound)
	h.fails("a late mark", h.Mark(h.Context(), one), registry.ErrNotFound)
	h.misses(one.Key)
	h.must(h.Deregister(h.Context(), one.Key))
}

func oneKind(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	for _, ephemeral := range []bool{true, false} {
		one := instance("kind-"+strconv.FormatBool(ephemeral), "1", ephemeral)
		h.must(h.Register(h.Context(), one))
		other := instance(one.Name, "2", !ephemeral)
		h.fails("registering the other kind", h.Register(h.Context(), other), registry.ErrRefused)
		h.sees(one)
		h.misses(other.Key)
	}
}

func refuses(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	f := func(change func(*registry.Instance)) {
		h.Helper()
		one := instance("orders", "1", true)
		change(&one)
		h.fails("registering", h.Register(h.Context(), one), registry.ErrRefused)
		h.misses(instance("orders", "1", true).Key)
	}
	f(func(i *registry.Instance) { i.Weight = -1 })
	f(func(i *registry.Instance) { i.Weight = 10000.5 })
	f(func(i *registry.Instance) { i.Weight = math.NaN() })
	f(func(i *registry.Instance) { i.Metadata[registry.KeyBeatTimeout] = "4999" })
	f(func(i *registry.Instance) { i.Metadata[registry.KeyDeleteTimeout] = "4999" })
	f(func(i *registry.Instance) { i.Cluster = "a_b" })
}

func persistent(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("db", "1", false)
	one.Healthy = false
	h.must(h.Register(h.Context(), one))
	h.sees(one)
	asEphemeral := one
	asEphemeral.Ephemeral = true
	_, err := h.Beat(h.Context(), asEphemeral)
	h.fails("beating", err, registry.ErrNotFound)
	h.must(h.Deregister(h.Context(), asEphemeral.Key))
	h.sees(one)
	h.must(h.Deregister(h.Context(), one.Key))
	h.misses(one.Key)
}

// after waits until so long after start.
func (h harness) after(start time.Time, d time.Duration) {
	h.Helper()
	h.must(run.Wait(h.Context(), time.Until(start.Add(d))))
}

func silence(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	start := time.Now()
	quiet, lively, kept := instance("orders", "1", true), instance("orders", "2", true), instance("db", "1", false)
	for _, one := range []registry.Instance{quiet, lively, kept} {
		h.must(h.Register(h.Context(), one))
	}
	beats := func(until time.Duration) {
		h.Helper()
		for time.Since(start) < until {
			h.must(run.Wait(h.Context(), min(5*time.Second, until-time.Since(start))))
			_, err := h.Beat(h.Context(), lively)
			h.must(err)
		}
	}
	beats(14 * time.Second)
	h.sees(quiet)
	beats(17 * time.Second)
	quiet.Healthy = false
	h.sees(quiet)
	beats(28 * time.Second)
	h.sees(quiet)
	beats(32 * time.Second)
	h.misses(quiet.Key)
	_, err := h.Beat(h.Context(), quiet)
	h.fails("beating after the end", err, registry.ErrNotFound)
	h.sees(lively)
	h.sees(kept)
}

func ownPeriods(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	start := time.Now()
	one := instance("orders", "1", true)
	one.Metadata = map[string]string{
		registry.KeyBeatInterval: "1000", registry.KeyBeatTimeout: "3000", registry.KeyDeleteTimeout: "60000"}
	h.must(h.Register(h.Context(), one))
	h.after(start, 2*time.Second)
	h.sees(one)
	h.after(start, 5*time.Second)
	one.Healthy = false
	h.sees(one)
	h.after(start, 58*time.Second)
	h.sees(one)
	h.after(start, 62*time.Second)
	h.misses(one.Key)
}

func growing(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	for _, ephemeral := range []bool{true, false} {
		one := instance("kind-"+strconv.FormatBool(ephemeral), "1", ephemeral)
		h.must(h.Register(h.Context(), one))
		first := h.sees(one).Revision
		if first == 0 {
			h.Fatal("no revision")
		}
		if ephemeral {
			_, err := h.Beat(h.Context(), one)
			h.must(err)
		}
		h.must(h.Register(h.Context(), one))
		if again := h.sees(one).Revision; again != first {
			h.Fatalf("revision went from %d to %d although nothing changed", first, again)
		}
		one.Weight = 2
		h.must(h.Register(h.Context(), one))
		if changed := h.sees(one).Revision; changed <= first {
			h.Fatalf("revision went from %d to %d by a change", first, changed)
		}
	}
}

func onlyHealth(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("db", "1", false)
	one.Cluster, one.Weight, one.Enabled, one.Metadata = "east", 7, false, map[string]string{"a": "1"}
	h.must(h.Register(h.Context(), one))
	for _, healthy := range []bool{false, true, true} {
		seen := h.sees(one)
		seen.Weight, seen.Enabled, seen.Metadata = 1, true, nil // must not be written
		h.must(h.SetHealth(h.Context(), seen, healthy))
		one.Healthy = healthy
		h.sees(one)
	}
	seen := one
	seen.Revision = 0
	h.must(h.SetHealth(h.Context(), seen, false))
	one.Healthy = false
	h.sees(one)
}

func stale(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("db", "1", false)
	h.must(h.Register(h.Context(), one))
	seen := h.sees(one)
	one.Metadata = map[string]string{"sidebeat.check": "none:"}
	h.must(h.Register(h.Context(), one))
	h.fails("SetHealth after a change", h.SetHealth(h.Context(), seen, false), registry.ErrStale)
	h.sees(one)
	seen = h.sees(one)
	h.must(h.SetHealth(h.Context(), seen, false))
	h.fails("SetHealth after SetHealth", h.SetHealth(h.Context(), seen, true), registry.ErrStale)
	one.Healthy = false
	h.sees(one)
	// Gone and back: it is another instance now.
	seen = h.sees(one)
	h.must(h.Deregister(h.Context(), one.Key))
	one.Healthy = true
	h.must(h.Register(h.Context(), one))
	h.fails("SetHealth after it was gone", h.SetHealth(h.Context(), seen, false), registry.ErrStale)
	h.sees(one)
}

func healthNeverCreates(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	one := instance("db", "1", false)
	h.fails("SetHealth of nothing", h.SetHealth(h.Context(), one, false), registry.ErrNotFound)
	h.misses(one.Key)
	h.must(h.Register(h.Context(), one))
	seen := h.sees(one)
	h.must(h.Deregister(h.Context(), one.Key))
	h.fails("SetHealth after the end", h.SetHealth(h.Context(), seen, false), registry.ErrNotFound)
	seen.Revision = 0
	h.fails("unconditional SetHealth after the end", h.SetHealth(h.Context(), seen, false), registry.ErrNotFound)
	h.misses(one.Key)
}

// crowd registers so many persistent instances, in several services.
func (h harness) crowd(n int) (all []registry.Instance) {
	h.Helper()
	for i := range n {
		one := instance("db-"+strconv.Itoa(i%7), strconv.Itoa(i%200), false)
		one.Port, one.Healthy = uint16(1000+i), i%3 > 0
		all = append(all, one)
	}
	for _, one := range all {
		h.must(h.Register(h.Context(), one))
	}
	return all
}

func pages(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	if all, _ := h.pages(); len(all) > 0 {
		h.Fatalf("an empty registry lists %v", all)
	}
	want := h.crowd(1203)
	h.must(h.Register(h.Context(), instance("orders", "1", true)))
	got, n := h.pages()
	if len(got) != len(want) || n < 2 {
		h.Fatalf("got %d instances on %d pages, want %d on several", len(got), n, len(want))
	}
	seen := map[registry.Key]bool{}
	for _, one := range got {
		seen[one.Key] = one.Healthy
	}
	for _, one := range want {
		if healthy, listed := seen[one.Key]; !listed || healthy != one.Healthy {
			h.Fatalf("%s: listed %v healthy %v, want healthy %v", one.Key, listed, healthy, one.Healthy)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b registry.Instance) int { return a.Service.Compare(b.Service) }) {
		h.Fatal("the list is not sorted by service")
	}
}

func pagesChange(t *testing.T, r Registry, can Can) {
	h := harness{t, r, can}
	all := h.crowd(700)
	first, err := h.List(h.Context(), "")
	h.must(err)
	if first.Next == "" {
		h.Fatalf("a page takes all %d", len(first.Instances))
	}
	// What was read goes, the last one too, and something comes in before it.
	for _, one := range first.Instances[len(first.Instances)-10:] {
		h.must(h.Deregister(h.Context(), one.Key))
	}
	h.must(h.Register(h.Context(), instance("db-0", "250", false)))
	listed := map[registry.Key]int{}
	for page := first; ; {
		for _, one := range page.Instances {
			listed[one.Key]++
		}
		if page.Next == "" {
			break
		}
		page, err = h.List(h.Context(), page.Next)
		h.must(err)
	}
	for _, one := range all {
		if listed[one.Key] != 1 {
			h.Fatalf("%s is listed %d times", one.Key, listed[one.Key])
		}
	}
}
