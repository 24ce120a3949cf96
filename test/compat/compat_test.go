// Package compat has real clients of Nacos use the real registry: time is real
// too, and so the whole takes more than a minute.
package compat

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the registry promises its clients.
const (
	pushIn   = 3 * time.Second  // who listens for pushes sees a change in
	pollIn   = 25 * time.Second // who was forgotten by a restart: Java's next poll comes twice as late after one that failed
	silentIn = 15 * time.Second // without a beat: unhealthy
	goneIn   = 30 * time.Second // deleted
	slack    = 5 * time.Second  // a beat is due every 5 s
)

// TestClients plays the life of an instance with each client.
func TestClients(t *testing.T) {
	program := buildRegistry(t)
	for _, k := range chosen(t) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			folder := k.ready(t)
			r := newRegistry(t, program)
			life(t, k, folder, r)
		})
	}
}

// chosen are the kinds that COMPAT_CLIENTS names, separated by commas; all
// without it.
func chosen(t *testing.T) []kind {
	t.Helper()
	names := strings.FieldsFunc(os.Getenv("COMPAT_CLIENTS"), func(r rune) bool { return r == ',' })
	if len(names) == 0 {
		return kinds
	}
	var some []kind
	for _, name := range names {
		n := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if n < 0 {
			t.Fatalf("COMPAT_CLIENTS names %q, which is no client here", name)
		}
		some = append(some, kinds[n])
	}
	t.Logf("COMPAT_CLIENTS leaves out %d of %d clients", len(kinds)-len(some), len(kinds))
	return some
}

// life is one instance that its client registers, keeps alive through two
// restarts of the registry and takes out, and one whose client is killed.
func life(t *testing.T, k kind, folder string, r *registry) {
	namespace := "compat-" + k.name
	mine := place{namespace, "mine", "10.9.0.1", "8080"}
	orphan := place{namespace, "others", "10.9.0.2", "8080"}

	between := newRelay(t, r)
	dying := k.launch(t, folder, between.address, namespace, "not asked for")
	dying.do(t, "register", orphan.service, orphan.ip, orphan.port, `{"zone":"b"}`)
	between.loggedIn(t, k)
	c := k.launch(t, folder, r.address, namespace, "not asked for")
	c.do(t, "register", mine.service, mine.ip, mine.port, `{"zone":"a"}`)
	if state, metadata := r.state(t, mine); state != "healthy" || metadata["zone"] != "a" {
		t.Fatalf("registered: %s %v", state, metadata)
	}
	if state, metadata := r.state(t, orphan); state != "healthy" || metadata["zone"] != "b" {
		t.Fatalf("registered: %s %v", state, metadata)
	}
	dying.kill()
	killed := time.Now()

	others := watch(t, k, c, r, namespace)
	others.edited(t)
	others.dies(t, orphan, killed)
	if state, _ := r.state(t, mine); state != "healthy" {
		t.Errorf("the beats of %v did not keep it: %s", time.Since(killed), state)
	}
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		r.stop(t, how)
		r.start(t)
		t.Logf("back %v after a restart by %v", r.becomes(t, silentIn, mine, "healthy"), how)
		if _, metadata := r.state(t, mine); metadata["zone"] != "a" {
			t.Errorf("it came back with %v", metadata)
		}
		if k.forgets {
			c.do(t, "subscribe", "others")
		}
		others.live(t, pollIn)
	}
	c.do(t, "deregister", mine.service, mine.ip, mine.port)
	r.becomes(t, time.Second, mine, "gone")
	staysGone(t, r, mine)
}

// staysGone looks for a beat that brings the instance back.
func staysGone(t *testing.T, r *registry, p place) {
	t.Helper()
	until := time.Now().Add(2 * slack)
	r.eventually(t, 3*slack, "time passes", func() bool {
		if state, _ := r.state(t, p); state != "gone" {
			t.Fatalf("a late beat made it %s", state)
		}
		return time.Now().After(until)
	})
}

// watched is a service that a client subscribed to. It always has one instance
// that stays, because some clients take no empty list.
type watched struct {
	kind
	c      *client
	r      *registry
	stays  place
	within time.Duration // a change is seen
}

// watch has the client subscribe and see what happens to an instance.
func watch(t *testing.T, k kind, c *client, r *registry, namespace string) *watched {
	t.Helper()
	w := &watched{kind: k, c: c, r: r, stays: place{namespace, "others", "10.9.1.1", "9090"}, within: pollIn}
	if k.hears {
		w.within = pushIn
	}
	r.put(t, w.stays, true, "1")
	c.do(t, "subscribe", "others")
	time.Sleep(2 * time.Second) // the first list of some clients is no news to them
	w.live(t, w.within)
	return w
}

// live has the client see an instance come, turn unhealthy and healthy again,
// get other metadata and go.
func (w *watched) live(t *testing.T, first time.Duration) {
	t.Helper()
	p := w.stays
	p.ip = "10.9.1.2"
	w.r.put(t, w.stays, true, "1") // a restart forgets it
	w.r.put(t, p, true, "1")
	w.sees(t, first, p, "a second instance", healthy("1"))
	w.r.put(t, p, false, "1")
	w.sees(t, w.within, p, "unhealthy", w.sick)
	w.r.put(t, p, true, "1")
	w.sees(t, w.within, p, "healthy again", healthy("1"))
	w.r.put(t, p, true, "2")
	w.sees(t, w.within, p, "new metadata", healthy("2"))
	w.r.drop(t, p)
	w.sees(t, w.within, p, "a removal", gone)
}

// edited has the client see what an operator does.
func (w *watched) edited(t *testing.T) {
	t.Helper()
	p := w.stays
	p.ip = "10.9.1.3"
	w.r.put(t, p, true, "1")
	w.sees(t, w.within, p, "a third instance", healthy("1"))
	w.r.edit(t, p, false, "1")
	w.sees(t, w.within, p, "disabled", gone)
	w.r.edit(t, p, true, "2")
	w.sees(t, w.within, p, "enabled, with new metadata", healthy("2"))
	w.r.drop(t, p)
	w.sees(t, w.within, p, "its removal", gone)
}

// dies has the client see what becomes of an instance whose own client was
// killed.
func (w *watched) dies(t *testing.T, p place, killed time.Time) {
	t.Helper()
	w.sees(t, time.Second, p, "an instance that beats no more, still healthy", func(h *host) bool { return h != nil && h.Healthy })
	w.r.becomes(t, silentIn+slack-time.Since(killed), p, "unhealthy")
	w.sees(t, w.within, p, "15 s of silence", w.sick)
	w.r.becomes(t, goneIn+slack-time.Since(killed), p, "gone")
	if after := time.Since(killed); after < goneIn-slack {
		t.Errorf("deleted after %v", after)
	}
	w.sees(t, w.within, p, "30 s of silence", gone)
}

func gone(h *host) bool { return h == nil }

func healthy(version string) func(*host) bool {
	return func(h *host) bool { return h != nil && h.Healthy && h.Metadata["version"] == version }
}

func (w *watched) sick(h *host) bool { return h == nil && w.healthyOnly || h != nil && !h.Healthy }

// sees waits until the client shows an instance as wanted; nil: it shows others
// only.
func (w *watched) sees(t *testing.T, within time.Duration, p place, what string, holds func(*host) bool) {
	t.Helper()
	took := w.c.sees(t, within, p.service, what, func(all []host) bool {
		for _, h := range all {
			if h.IP == p.ip {
				return holds(&h)
			}
		}
		return len(all) > 0 && holds(nil)
	})
	t.Logf("%s: seen in %v", what, took.Round(time.Millisecond))
}
