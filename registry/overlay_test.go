package registry

import (
	"errors"
	"maps"
	"testing"
	"time"
)

// shows checks weight, enabled and metadata as they are read.
func (l life) shows(k Key, weight float64, enabled bool, metadata map[string]string) {
	l.Helper()
	got, err := l.Get(l.Context(), k)
	if err != nil || got.Weight != weight || got.Enabled != enabled || !maps.Equal(got.Metadata, metadata) {
		l.Errorf("got %+v %v, want weight %v enabled %v metadata %v", got, err, weight, enabled, metadata)
	}
}

func (l life) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// The steps of the recording 01-update of Nacos 2.5.1.
func TestOverlayAsRecorded(t *testing.T) {
	live(t, func(l life) {
		one := eph("upd", "1")
		err := l.Update(l.Context(), one.Key, 2, true, nil)
		want := "service not found, namespace: public, service: Service{namespace='public', group='DEFAULT_GROUP', name='upd', ephemeral=true, revision=0}"
		if err == nil || err.Error() != want || !errors.Is(err, ErrRefused) {
			l.Errorf("got %v, want %s", err, want)
		}
		one.Weight, one.Metadata = 7, map[string]string{"a": "1", "b": "2"}
		l.register(one)
		l.ok(l.Update(l.Context(), one.Key, 1, true, map[string]string{"b": "20", "c": "3"}))
		l.shows(one.Key, 1, true, map[string]string{"a": "1", "b": "20", "c": "3"})

		other := eph("upd", "99")
		l.ok(l.Update(l.Context(), other.Key, 2, true, nil)) // dangling
		if n := len(l.All(one.Service)); n != 1 {
			l.Errorf("a dangling overlay made %d instances", n)
		}
		l.ok(l.Override(l.Context(), one.Key, Overlay{Weight: new(9.0), Metadata: map[string]string{"d": "4"}}))
		l.shows(one.Key, 9, true, map[string]string{"a": "1", "b": "2", "d": "4"})
		l.ok(l.Override(l.Context(), one.Key, Overlay{Enabled: new(false)}))
		l.shows(one.Key, 9, false, map[string]string{"a": "1", "b": "2", "d": "4"})
		if n := len(l.View(one.Service, Query{}).Instances); n != 0 {
			l.Errorf("a disabled instance is shown")
		}
		one.Weight, one.Metadata = 1, nil
		l.register(one)
		l.shows(one.Key, 9, false, map[string]string{"d": "4"})
		l.ok(l.Deregister(l.Context(), one.Key))
		l.register(one)
		l.shows(one.Key, 9, false, map[string]string{"d": "4"})
		l.ok(l.Override(l.Context(), one.Key, Overlay{Enabled: new(true)}))
		l.shows(one.Key, 9, true, map[string]string{"d": "4"})

		l.fails(l.Override(l.Context(), eph("upd", "97").Key, Overlay{}), ErrNotFound, "no matched ip found!")
		l.fails(l.Override(l.Context(), eph("noupd", "97").Key, Overlay{}), ErrNotFound,
			"no ips found for cluster DEFAULT in service DEFAULT_GROUP@@noupd")
		l.fails(l.Override(l.Context(), one.Key, Overlay{Weight: new(-1.0)}), ErrRefused, "instance format invalid: The weights range from 0.0 to 10000.0")
	})
}

func (l life) fails(got error, as error, text string) {
	l.Helper()
	if got == nil || !errors.Is(got, as) || got.Error() != text {
		l.Errorf("got %v, want %s (%v)", got, text, as)
	}
}

func TestOverlayLivesAMinuteAfterItsInstance(t *testing.T) {
	f := func(away time.Duration, one Instance, want float64) {
		t.Helper()
		live(t, func(l life) {
			l.Helper()
			keeper := one
			keeper.IP = "10.0.0.200" // keeps the service
			l.register(one, keeper)
			l.ok(l.Override(l.Context(), one.Key, Overlay{Weight: new(9.0)}))
			l.pass(90 * time.Second) // not while its instance lives
			l.shows(one.Key, 9, true, map[string]string{})
			l.ok(l.Deregister(l.Context(), one.Key))
			keeper.Port++
			l.register(keeper)
			l.pass(away)
			l.register(one)
			l.shows(one.Key, want, true, map[string]string{})
		})
	}
	f(58*time.Second, per("db", "1"), 9)
	f(62*time.Second, per("db", "1"), 1)
	quick := eph("orders", "1")
	live(t, func(l life) { // it expires 30 s after its last beat, then the minute begins
		l.register(quick, per("db", "1"))
		l.ok(l.Override(l.Context(), quick.Key, Overlay{Weight: new(9.0)}))
		l.pass(88 * time.Second)
		l.register(quick)
		l.shows(quick.Key, 9, true, map[string]string{})
		l.pass(94 * time.Second)
		l.register(quick)
		l.shows(quick.Key, 1, true, map[string]string{})
	})
}

// An overlay lies on ip, port and cluster, as in Nacos.
func TestOverlayIsOfOneCluster(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		l.ok(l.Override(l.Context(), one.Key, Overlay{Weight: new(9.0)}))
		one.Cluster = "east"
		l.register(one)
		l.shows(one.Key, 1, true, map[string]string{})
		if _, err := l.Get(l.Context(), eph("orders", "1").Key); !errors.Is(err, ErrNotFound) {
			l.Errorf("found in the cluster that it left: %v", err)
		}
		one.Cluster = DefaultCluster
		l.register(one)
		l.shows(one.Key, 9, true, map[string]string{})
	})
}

// Periods that an operator sets count from the last beat.
func TestOverlayChangesPeriods(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		one.Metadata = map[string]string{KeyBeatTimeout: "600000", KeyDeleteTimeout: "600000"}
		l.register(one)
		l.pass(10 * time.Second)
		l.ok(l.Override(l.Context(), one.Key, Overlay{Metadata: map[string]string{
			KeyBeatInterval: "1000", KeyBeatTimeout: "12000", KeyDeleteTimeout: "40000"}}))
		if next, err := l.Beat(l.Context(), eph("orders", "2")); err == nil || next != DefaultBeatInterval {
			l.Errorf("got %v %v", next, err)
		}
		l.pass(time.Second)
		l.is(one.Key, "up")
		l.pass(2 * time.Second)
		l.is(one.Key, "down")
		l.pass(26 * time.Second)
		l.is(one.Key, "down")
		l.pass(3 * time.Second)
		l.is(one.Key, "gone")
		l.register(one) // the overlay still is there
		if next, err := l.Beat(l.Context(), one); err != nil || next != time.Second {
			l.Errorf("got %v %v, want the operator's pace", next, err)
		}
	})
}

func TestOverlayReadsBack(t *testing.T) {
	live(t, func(l life) {
		one := eph("orders", "1")
		l.register(one)
		if _, exists := l.Overlay(one.Key); exists {
			l.Error("an overlay from nowhere")
		}
		set := map[string]string{"a": "1"}
		l.ok(l.Override(l.Context(), one.Key, Overlay{Metadata: set}))
		set["a"] = "2" // the caller's map is the caller's
		got, exists := l.Overlay(one.Key)
		if !exists || got.Weight != nil || got.Enabled != nil || !maps.Equal(got.Metadata, map[string]string{"a": "1"}) {
			l.Errorf("got %+v %v", got, exists)
		}
	})
}
