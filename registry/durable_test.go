package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memoryLog is a log in memory: what raftlog does, without the disk.
type memoryLog struct {
	mu       sync.Mutex
	machine  *Store
	commands [][]byte
	before   func() // called before a command is applied, with no lock held
	refuse   error
}

func (l *memoryLog) Append(_ context.Context, command []byte) (any, error) {
	if l.refuse != nil {
		return nil, l.refuse
	}
	if l.before != nil {
		l.before()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands = append(l.commands, command)
	return l.machine.Apply(uint64(len(l.commands)), command), nil
}

func logged() (*Store, *memoryLog) {
	s := NewStore()
	l := &memoryLog{machine: s}
	s.UseLog(l)
	return s, l
}

// durable is what must be the same after a restart, in full.
func durable(s *Store) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.applied)
	_, services := s.sorted()
	for _, service := range services {
		info, err := s.Describe(service)
		fmt.Fprintf(&b, "%s r%d %v %v %v %q %v\n", service, s.shard(service).services[service].revision, info.HasMetadata, info.ProtectThreshold, info.Metadata, info.Selector, err)
		for _, c := range info.Clusters {
			fmt.Fprintf(&b, "  %s %+v %v\n", c.Name, c.Checker, c.Metadata)
		}
		for _, one := range s.All(service) {
			o, set := s.Overlay(one.Key)
			fmt.Fprintf(&b, "  %s %s w%v e%v h%v n%v %v r%d o%v %v\n", one.Address(), one.Cluster, one.Weight, one.Enabled, one.Healthy, one.NoID, one.Metadata, one.Revision, set, o.Metadata)
		}
	}
	return b.String()
}

// story makes one of everything durable.
func story(t testing.TB, s *Store) {
	l := life{t, s}
	odd := per("db", "1")
	odd.IP, odd.Weight, odd.Enabled = "web-1.example.org", 0.5, false
	six := per("db", "1")
	six.IP, six.Metadata = "2001:db8::7", map[string]string{"a": "1", "b": "", "": "c"}
	l.register(per("db", "1"), per("db", "2"), odd, six, eph("orders", "1"))
	l.ok(l.CreateService(l.Context(), ServiceConfig{Service: Service{"dev", "g", "empty"}, ProtectThreshold: 0.5, Metadata: map[string]string{"x": "y"}, Selector: "{}"}))
	l.ok(l.SetCluster(l.Context(), ClusterConfig{Cluster{odd.Service, "DEFAULT"}, Checker{Type: "HTTP", Path: "/h", Headers: "A:1", Port: 81}, map[string]string{"c": "1"}}))
	l.ok(l.SetCluster(l.Context(), ClusterConfig{Cluster{odd.Service, "east"}, Checker{Type: "NONE"}, nil}))
	l.ok(l.Override(l.Context(), six.Key, Overlay{Enabled: new(false), Metadata: map[string]string{"o": "p"}}))
	l.ok(l.Update(l.Context(), per("db", "2").Key, 3, true, nil))
	l.ok(l.Override(l.Context(), eph("orders", "1").Key, Overlay{Weight: new(9.0)}))
	seen, err := l.Get(l.Context(), odd.Key)
	l.ok(err)
	l.ok(l.SetHealth(l.Context(), seen, false))
	l.ok(l.Deregister(l.Context(), per("db", "1").Key))
}

func TestSnapshotAndLogGiveTheSameStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := logged()
		story(t, s)
		want := durable(s)
		fromSnapshot := restored(t, snapshot(t, s))
		if diff := cmp.Diff(want, durable(fromSnapshot)); diff != "" {
			t.Errorf("after the snapshot (-want +got):\n%s", diff)
		}
		fromLog := NewStore()
		for i, command := range log.commands {
			fromLog.Apply(uint64(i), command)
		}
		if diff := cmp.Diff(want, durable(fromLog)); diff != "" {
			t.Errorf("after the log (-want +got):\n%s", diff)
		}
		// Half by snapshot, half by log.
		half, rest := logged()
		for i, command := range log.commands[:7] {
			half.Apply(uint64(i), command)
		}
		half = restored(t, snapshot(t, half))
		for i, command := range log.commands[7:] {
			half.Apply(uint64(i), command)
		}
		if diff := cmp.Diff(want, durable(half)); diff != "" || len(rest.commands) > 0 {
			t.Errorf("after half of each (-want +got):\n%s", diff)
		}
		// Ephemeral instances are not there; what the operator said of them is.
		l := life{t, fromSnapshot}
		l.is(eph("orders", "1").Key, "gone")
		l.register(eph("orders", "1"))
		l.shows(eph("orders", "1").Key, 9, true, map[string]string{})
		// Restored over itself, ephemeral instances stay.
		if err := fromSnapshot.Restore(bytes.NewReader(snapshot(t, s))); err != nil {
			t.Fatal(err)
		}
		l.is(eph("orders", "1").Key, "up")
		l.shows(eph("orders", "1").Key, 9, true, map[string]string{})
		for range 9 { // the overlay is attached: no minute begins
			l.pass(10 * time.Second)
			l.beat(eph("orders", "1"))
		}
		l.shows(eph("orders", "1").Key, 9, true, map[string]string{})
	})
}

func TestMissingIDOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := logged()
		one := per("db", "1")
		one.NoID = true
		life{t, s}.register(one, per("db", "2"))
		fromLog := NewStore()
		for i, command := range log.commands {
			fromLog.Apply(uint64(i), command)
		}
		for from, again := range map[string]*Store{"snapshot": restored(t, snapshot(t, s)), "log": fromLog} {
			if all := again.All(one.Service); len(all) != 2 || !all[0].NoID || all[1].NoID {
				t.Errorf("from the %s: %+v", from, all)
			}
		}
	})
}

func TestEphemeralTouchesNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := logged()
		l := life{t, s}
		log.refuse = errors.New("no disk")
		l.register(eph("orders", "1"), eph("orders", "2"))
		l.beat(eph("orders", "1"))
		l.ok(l.Mark(l.Context(), eph("orders", "1")))
		l.ok(l.Deregister(l.Context(), eph("orders", "1").Key))
		l.pass(200 * time.Second)
		if n := len(l.Services("", "")); n != 0 {
			t.Errorf("%d services are left", n)
		}
	})
}

func TestAnUnwritableLogRefusesAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := logged()
		l := life{t, s}
		l.register(per("db", "1"), per("db", "2"))
		l.ok(l.Deregister(l.Context(), per("db", "2").Key))
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: per("idle", "").Service}))
		log.refuse = fmt.Errorf("%w: disk nearly full", ErrUnavailable)
		if err := l.Register(l.Context(), per("db", "3")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if err := l.Register(l.Context(), per("new", "3")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		l.ok(l.Register(l.Context(), eph("new", "3"))) // nothing is left claimed
		l.is(per("db", "1").Key, "up")
		l.pass(100 * time.Second)
		if n := len(l.Services("", "")); n != 2 {
			t.Errorf("%d services: an empty one went, and the log does not know", n)
		}
		log.refuse = nil
		l.pass(2 * time.Second)
		if n := len(l.Services("", "")); n != 1 {
			t.Errorf("%d services are left", n)
		}
	})
}

// The same again and again does not fill the disk.
func TestNothingNewIsNotLogged(t *testing.T) {
	s, log := logged()
	l := life{t, s}
	one := per("db", "1")
	l.register(one)
	f := func(what string, do func() error) {
		t.Helper()
		l.ok(do())
		n := len(log.commands)
		seen, err := l.Get(t.Context(), one.Key)
		l.ok(err)
		l.ok(do())
		again, _ := l.Get(t.Context(), one.Key)
		if len(log.commands) != n || again.Revision != seen.Revision {
			t.Errorf("%s, once more: %d commands, revision %d then %d", what, len(log.commands)-n, seen.Revision, again.Revision)
		}
	}
	ctx := t.Context()
	f("register", func() error { return l.Register(ctx, one) })
	f("mark", func() error { return l.Mark(ctx, one) })
	f("health", func() error { return l.SetHealth(ctx, one, false) })
	f("deregister", func() error { return l.Deregister(ctx, per("db", "9").Key) })
	f("cluster", func() error {
		return l.SetCluster(ctx, ClusterConfig{Cluster: Cluster{one.Service, "DEFAULT"}, Checker: Checker{Type: "NONE"}})
	})
	f("service", func() error {
		return l.UpdateService(ctx, ServiceConfig{Service: one.Service, Metadata: map[string]string{"a": "1"}})
	})
	f("patch", func() error {
		return l.Override(ctx, one.Key, Overlay{Weight: new(2.0), Metadata: map[string]string{"a": "1"}})
	})
	f("put", func() error { return l.Update(ctx, one.Key, 2, true, nil) })
	if n := len(log.commands); n != 6 {
		t.Errorf("%d commands for 6 changes", n)
	}
	n := len(log.commands)
	one.Weight, one.Healthy = 3, false
	changes := []func() error{
		func() error { return l.Register(ctx, one) },
		func() error { return l.Update(ctx, one.Key, 2, false, nil) },
		func() error { return l.Override(ctx, one.Key, Overlay{Metadata: map[string]string{"a": "2"}}) },
		func() error { return l.Override(ctx, one.Key, Overlay{Weight: new(4.0)}) },
		func() error { return l.UpdateService(ctx, ServiceConfig{Service: one.Service, ProtectThreshold: 1}) },
		func() error {
			return l.SetCluster(ctx, ClusterConfig{Cluster: Cluster{one.Service, "DEFAULT"}, Checker: Checker{Type: "TCP"}})
		},
	}
	for i, change := range changes {
		if l.ok(change()); len(log.commands) != n+i+1 {
			t.Errorf("change %d was not written", i)
		}
	}
}

// While a persistent registration waits for the disk, the service belongs to
// it; no lock is held, so that beats and reads go on.
func TestKindIsClaimedWhileTheLogWrites(t *testing.T) {
	s, log := logged()
	l := life{t, s}
	l.register(eph("orders", "1"))
	log.before = func() {
		log.before = nil
		l.fails(l.Register(l.Context(), eph("db", "2")), ErrRefused,
			"Current service DEFAULT_GROUP@@db is persistent service, can't register ephemeral instance.")
		l.beat(eph("orders", "1"))
		l.is(per("db", "1").Key, "gone")
		l.View(per("db", "1").Service, Query{})
		s.sweep()
	}
	l.register(per("db", "1"))
	l.is(per("db", "1").Key, "up")
	l.is(eph("db", "2").Key, "gone")
	if log.before != nil {
		t.Error("the log was not asked")
	}
}

// What a command comes to depends on the log alone: ephemeral instances of
// which it knows nothing give way, an ephemeral service that it knows does not.
func TestKindConflictInTheLog(t *testing.T) {
	from, log := logged()
	(life{t, from}).register(per("db", "1"))
	s := NewStore()
	l := life{t, s}
	l.register(eph("db", "2"))
	if result := s.Apply(1, log.commands[0]); result != nil {
		t.Errorf("got %v", result)
	}
	l.is(eph("db", "2").Key, "gone")
	l.is(per("db", "1").Key, "up")
	if _, err := l.Beat(t.Context(), eph("db", "2")); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}

	s = NewStore()
	l = life{t, s}
	l.register(eph("db", "2"))
	l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: eph("db", "").Service}))
	if err, _ := s.Apply(2, log.commands[0]).(error); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
	l.is(eph("db", "2").Key, "up")
	if c := s.Counts(); c.Ephemeral != 1 || c.Persistent != 0 {
		t.Errorf("got %+v", c)
	}
}

// What is cleaned up is decided before it is written; what changed in between
// stays.
func TestCleaningIsDecidedInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := logged()
		l := life{t, s}
		empty := per("empty", "").Service
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: empty}))
		l.register(per("db", "1"), per("db", "2"))
		l.ok(l.Update(l.Context(), per("db", "9").Key, 5, true, nil))
		l.pass(59 * time.Second)
		log.before = func() { // once: both were decided on already
			log.before = nil
			l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: empty, ProtectThreshold: 0.7}))
			l.ok(l.Update(l.Context(), per("db", "9").Key, 6, true, nil))
		}
		l.pass(2 * time.Second)
		if log.before != nil {
			t.Fatal("nothing was cleaned")
		}
		if info, err := l.Describe(empty); err != nil || info.ProtectThreshold != 0.7 {
			t.Errorf("got %+v %v", info, err)
		}
		if o, exists := l.Overlay(per("db", "9").Key); !exists || *o.Weight != 6 {
			t.Errorf("got %+v %v", o, exists)
		}
	})
}

// The health write is decided where the log applies it.
func TestSetHealthIsDecidedInTheLog(t *testing.T) {
	s, log := logged()
	l := life{t, s}
	one := per("db", "1")
	l.register(one)
	seen, _ := l.Get(l.Context(), one.Key)
	log.before = func() {
		log.before = nil
		one.Weight = 2
		l.register(one)
	}
	if err := l.SetHealth(l.Context(), seen, false); !errors.Is(err, ErrStale) {
		t.Errorf("got %v", err)
	}
	l.is(one.Key, "up")
	seen, _ = l.Get(l.Context(), one.Key)
	log.before = func() {
		log.before = nil
		l.ok(l.Deregister(l.Context(), one.Key))
	}
	if err := l.SetHealth(l.Context(), seen, false); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	l.is(one.Key, "gone")
}

func TestDamagedCommandStopsTheStore(t *testing.T) {
	f := func(change func([]byte) []byte) {
		t.Helper()
		s, log := logged()
		l := life{t, s}
		l.register(per("db", "1"))
		before := durable(s)
		err, _ := s.Apply(2, change(slices.Clone(log.commands[0]))).(error)
		var damage *Damage
		if !errors.As(err, &damage) || damage.Index != 2 || s.Damaged() == nil {
			t.Errorf("got %v, damaged %v", err, s.Damaged())
		}
		if err, _ := s.Apply(3, log.commands[0]).(error); !errors.As(err, &damage) || damage.Index != 2 {
			t.Errorf("a later command was applied: %v", err)
		}
		if _, err := s.Snapshot(); err == nil {
			t.Error("a damaged store gives a snapshot")
		}
		if durable(s) != before {
			t.Error("something changed")
		}
	}
	f(func(c []byte) []byte { c[9] ^= 4; return c })
	f(func(c []byte) []byte { return c[:len(c)-1] })
	f(func(c []byte) []byte { return nil })
	f(func(c []byte) []byte { return c[:3] })
	reseal := func(c []byte) []byte { return (&codec{buf: c[:len(c)-crc32.Size]}).seal() }
	f(func(c []byte) []byte { c[0]++; return reseal(c) })                           // a newer version
	f(func(c []byte) []byte { c[1] = 99; return reseal(c) })                        // a kind unknown
	f(func(c []byte) []byte { return reseal(slices.Insert(c, len(c)-4, 1, 2, 3)) }) // more than it should be
	if s := NewStore(); s.Damaged() != nil {
		t.Error("damaged from the start")
	}
}

// Every truncation and every flipped bit is noticed, and then nothing changes.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	s := NewStore()
	l := life{t, s}
	l.register(per("db", "1"), per("db", "2"))
	l.ok(l.Override(l.Context(), per("db", "1").Key, Overlay{Weight: new(2.0)}))
	image := snapshot(t, s)
	other := NewStore()
	(life{t, other}).register(per("kept", "1"))
	before := durable(other)
	f := func(what string, broken []byte) {
		t.Helper()
		if err := other.Restore(bytes.NewReader(broken)); err == nil || !strings.HasPrefix(err.Error(), "cannot restore a snapshot: ") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for n := range image {
		f(fmt.Sprintf("%d of %d bytes", n, len(image)), image[:n])
		for bit := range 8 {
			broken := slices.Clone(image)
			broken[n] ^= 1 << bit
			f(fmt.Sprintf("bit %d of byte %d", bit, n), broken)
		}
	}
	newer := slices.Clone(image[:len(image)-crc32.Size])
	newer[len(snapshotHead)-1]++
	f("a newer version", (&codec{buf: newer}).seal())
	f("a reader that fails", nil)
	if durable(other) != before {
		t.Error("something changed")
	}
	if err := other.Restore(bytes.NewReader(image)); err != nil || durable(other) != durable(s) {
		t.Errorf("the whole one: %v", err)
	}
}

// Taken while commands go on, a snapshot is the store after one of them.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	s := NewStore()
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 3000 {
			// Always as many in one service as in the other, or one more.
			(life{t, s}).register(per(fmt.Sprintf("s%d", i%2), fmt.Sprint(i)))
		}
	})
	for range 20 {
		copied := restored(t, snapshot(t, s))
		a, b := len(copied.All(per("s0", "").Service)), len(copied.All(per("s1", "").Service))
		if a != b && a != b+1 || uint64(a+b) != copied.applied {
			t.Errorf("%d and %d instances after %d commands", a, b, copied.applied)
		}
	}
	writer.Wait()
}

func FuzzCommand(f *testing.F) {
	s, log := logged()
	story(f, s)
	for _, command := range log.commands {
		f.Add(command[:len(command)-crc32.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sealed := (&codec{buf: slices.Clone(body)}).seal()
		m, err := decodeCommand(sealed)
		if err != nil {
			return
		}
		again, err := decodeCommand(m.encode())
		if err != nil || !bytes.Equal(again.encode(), m.encode()) {
			t.Fatalf("%+v does not come back: %v", m, err)
		}
		NewStore().Apply(1, sealed)
	})
}

func FuzzSnapshot(f *testing.F) {
	s := NewStore()
	story(f, s)
	image := snapshot(f, s)
	f.Add(image[len(snapshotHead) : len(image)-crc32.Size])
	f.Fuzz(func(t *testing.T, fields []byte) {
		sealed := (&codec{buf: append(slices.Clone(snapshotHead), fields...)}).seal()
		s := NewStore()
		if s.Restore(bytes.NewReader(sealed)) != nil {
			return
		}
		want := durable(s)
		if got := durable(restored(t, snapshot(t, s))); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add("a", "1", "b", "2")
	f.Add("", "", "a", "é\x00")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		values := map[string]string{k1: v1, k2: v2}
		encoded := encodeMetadata(values)
		back, err := decodeMetadata(encoded)
		if diff := cmp.Diff(values, back); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
		if other, err := decodeMetadata(k1 + v1); err == nil { // any text at all
			if _, err := decodeMetadata(encodeMetadata(other)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
