package registry

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

func refusedFor(err error, reason Reason) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Reason == reason && errors.Is(err, ErrRefused)
}

// A full service takes no further instance, and goes on with those it has.
func TestLimitOfInstances(t *testing.T) {
	f := func(one func(name, ip string) Instance) {
		t.Helper()
		s := NewStore()
		s.Limit(Limits{Instances: 2})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		must(s.Register(t.Context(), one("a", "1")))
		must(s.Register(t.Context(), one("a", "2")))
		if err := s.Register(t.Context(), one("a", "3")); !refusedFor(err, TooManyInstances) || err.Error() != "service DEFAULT_GROUP@@a has 2 instances, and may have 2" {
			t.Errorf("a third: %v", err)
		}
		again := one("a", "1")
		again.Weight = 3
		must(s.Register(t.Context(), again))
		must(s.Mark(t.Context(), again))
		must(s.Register(t.Context(), one("b", "3")))
		must(s.Deregister(t.Context(), one("a", "1").Key))
		must(s.Register(t.Context(), one("a", "3")))
	}
	f(eph)
	f(per)
}

// A full namespace takes no further service; other namespaces have their own.
func TestLimitOfServices(t *testing.T) {
	s := NewStore()
	s.Limit(Limits{Services: 3})
	f := func(err error, full bool) {
		t.Helper()
		if refusedFor(err, TooManyServices) != full || !full && err != nil {
			t.Errorf("got %v", err)
		}
	}
	config := func(name string, ephemeral bool) ServiceConfig {
		return ServiceConfig{Service: Service{Name: name}, Ephemeral: ephemeral}
	}
	f(s.Register(t.Context(), eph("a", "1")), false)
	f(s.Register(t.Context(), per("b", "1")), false)
	f(s.CreateService(t.Context(), config("c", true)), false)
	f(s.Register(t.Context(), eph("d", "1")), true)
	f(s.Register(t.Context(), per("d", "1")), true)
	f(s.CreateService(t.Context(), config("d", false)), true)
	f(s.CreateService(t.Context(), config("d", true)), true)
	f(s.Register(t.Context(), eph("a", "2")), false)
	other := eph("d", "1")
	other.Namespace = "other"
	f(s.Register(t.Context(), other), false)
	f(s.DeleteService(t.Context(), Service{Name: "c"}), false)
	f(s.Register(t.Context(), per("d", "1")), false)
	f(s.Register(t.Context(), eph("e", "1")), true)
}

// What was accepted under other limits is there after a restart, and counts.
func TestLimitsForgetNothing(t *testing.T) {
	before := NewStore()
	for i := range 5 {
		if err := before.Register(t.Context(), per(fmt.Sprint("s", i/2), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	write, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var image bytes.Buffer
	if err := write(&image); err != nil {
		t.Fatal(err)
	}
	s := NewStore()
	s.Limit(Limits{Instances: 1, Services: 1})
	if err := s.Register(t.Context(), eph("s0", "1")); err != nil { // gives way to what the log knows
		t.Fatal(err)
	}
	if err := s.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if n := s.Counts(); n.Persistent != 5 || s.names.in(DefaultNamespace) != 3 {
		t.Errorf("%+v, %d services", n, s.names.in(DefaultNamespace))
	}
	if err := s.Register(t.Context(), per("s0", "9")); !refusedFor(err, TooManyInstances) {
		t.Error(err)
	}
	if err := s.Register(t.Context(), per("s9", "9")); !refusedFor(err, TooManyServices) {
		t.Error(err)
	}
}
