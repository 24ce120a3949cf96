package registry

import (
	"testing"
	"time"
)

// The recordings 03-expiry-clientbeat and 03-expiry-badmeta: enableClientBeat
// keeps an instance, whatever its periods, for 180 s of silence.
func TestKept(t *testing.T) {
	live(t, func(l life) {
		one, own, healed := eph("kept", "1"), eph("kept", "2"), eph("kept", "3")
		one.Metadata = map[string]string{KeyKeep: "true"}
		own.Metadata = map[string]string{KeyKeep: "true", KeyBeatInterval: "1000", KeyBeatTimeout: "3000", KeyDeleteTimeout: "6000"}
		healed.Metadata, healed.Healthy = map[string]string{KeyKeep: "y"}, false
		l.register(one, own, healed)
		l.pass(179 * time.Second)
		l.is(one.Key, "up")
		l.is(own.Key, "up")
		l.is(healed.Key, "down")
		l.beat(own)
		l.pass(2 * time.Second)
		l.is(one.Key, "gone")
		l.is(healed.Key, "gone")
		l.is(own.Key, "up")
		l.pass(179 * time.Second)
		l.is(own.Key, "gone")
	})
}

func TestNotKept(t *testing.T) {
	live(t, func(l life) {
		for i, value := range []string{"false", "", "maybe"} {
			one := eph("kept", []string{"1", "2", "3"}[i])
			one.Metadata = map[string]string{KeyKeep: value}
			l.register(one)
		}
		l.pass(31 * time.Second)
		if all := l.All(eph("kept", "1").Service); len(all) > 0 {
			l.Errorf("%d stay", len(all))
		}
	})
}

// The operator may say it of an instance or of a service, and take it back:
// silence counts from the last beat then.
func TestKeptByOperator(t *testing.T) {
	live(t, func(l life) {
		one, other := eph("kept", "1"), eph("kept", "2")
		l.register(one, other)
		keep := func(value string) {
			l.Helper()
			l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: one.Service, Metadata: map[string]string{KeyKeep: value}}))
		}
		l.pass(10 * time.Second)
		keep("true")
		l.pass(60 * time.Second)
		l.is(one.Key, "up")
		l.is(other.Key, "up")
		keep("false")
		l.pass(time.Second)
		l.is(one.Key, "gone")
		l.is(other.Key, "gone")

		keep("true")
		l.register(one)
		l.pass(60 * time.Second)
		l.is(one.Key, "up")
		keep("no")
		l.register(one, other)
		l.ok(l.Override(l.Context(), one.Key, Overlay{Metadata: map[string]string{KeyKeep: "true"}}))
		l.pass(60 * time.Second)
		l.is(one.Key, "up")
		l.is(other.Key, "gone")
		l.ok(l.Override(l.Context(), one.Key, Overlay{Metadata: map[string]string{}}))
		l.pass(time.Second)
		l.is(one.Key, "gone")
	})
}

// A restart keeps what the service says; deleting the service's metadata over
// the head of ephemeral instances takes it from them.
func TestKeptOverRestart(t *testing.T) {
	live(t, func(l life) {
		one := eph("kept", "1")
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: one.Service, Ephemeral: true, Metadata: map[string]string{KeyKeep: "true"}}))
		image := snapshot(l, l.Store)
		l.register(one)
		l = life{l.TB, restored(l, image)}
		l.register(one)
		l.pass(60 * time.Second)
		l.is(one.Key, "up")
		l.ok(l.Restore(newImage(l, NewStore())))
		l.pass(time.Second)
		l.is(one.Key, "gone")
	})
	live(t, func(l life) {
		one := eph("kept", "1")
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: one.Service, Ephemeral: true, Metadata: map[string]string{KeyKeep: "true"}}))
		image := snapshot(l, l.Store)
		l = life{l.TB, NewStore()}
		l.register(one) // before the store hears of the service
		l.pass(time.Second)
		l.ok(l.Restore(reader(image)))
		l.pass(60 * time.Second)
		l.is(one.Key, "up")
		l.Apply(0, command{op: opDelete, service: one.Service, ephemeral: true}.encode())
		l.pass(time.Second)
		l.is(one.Key, "gone")
	})
}
