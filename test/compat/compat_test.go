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
	pollIn   = 15 * time.Second // who does not
	silentIn = 15 * time.Second // without a beat: unhealthy
	goneIn   = 30 * time.Second // deleted
	slack    = 5 * time.Second  // a beat is due every 5 s
)

// TestClients plays the life of an instance with each client. COMPAT_CLIENTS
// chooses some, separated by commas.
func TestClients(t *testing.T) {
	program := buildRegistry(t)
	chosen := strings.FieldsFunc(os.Getenv("COMPAT_CLIENTS"), func(r rune) bool { return r == ',' })
	for _, k := range kinds {
		if len(chosen) > 0 && !slices.Contains(chosen, k.name) {
			t.Logf("%s is left out: COMPAT_CLIENTS chooses %s", k.name, chosen)
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			folder := k.ready(t)
			r := newRegistry(t, program)
			life(t, k, folder, r)
		})
	}
}

// life is one instance that its client registers, keeps alive through two
// restarts of the registry and takes out, and one whose client is killed.
func life(t *testing.T, k kind, folder string, r *registry) {
	namespace := "compat-" + k.name
	mine := place{namespace, "mine", "10.9.0.1", "8080"}
	orphan := place{namespace, "orphan", "10.9.0.2", "8080"}

	dying := k.launch(t, folder, r.address, namespace)
	dying.do(t, "register", orphan.service, orphan.ip, orphan.port, `{"zone":"b"}`)
	c := k.launch(t, folder, r.address, namespace)
	c.do(t, "register", mine.service, mine.ip, mine.port, `{"zone":"a"}`)
	if state, metadata := r.state(t, mine); state != "healthy" || metadata["zone"] != "a" {
		t.Fatalf("registered: %s %v", state, metadata)
	}
	dying.kill()
	killed := time.Now()

	others := watch(t, k, c, r, namespace)
	r.becomes(t, silentIn+slack-time.Since(killed), orphan, "unhealthy")
	r.becomes(t, goneIn+slack-time.Since(killed), orphan, "gone")
	if gone := time.Since(killed); gone < goneIn-slack {
		t.Errorf("the orphan was deleted after %v", gone)
	}
	if state, _ := r.state(t, mine); state != "healthy" {
		t.Errorf("the beats of %v did not keep it: %s", time.Since(killed), state)
	}

	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		r.stop(t, how)
		r.start(t)
		t.Logf("back %v after a restart by %v", r.becomes(t, silentIn, mine, "healthy"), how)
		others.within = pollIn // a restart forgets the subscribers: the next poll tells it
		if k.forgets {
			c.do(t, "subscribe", "others")
		}
		others.flip(t)
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
	c              *client
	r              *registry
	stays, changes place
	within         time.Duration
}

// watch has the client subscribe and see all kinds of change.
func watch(t *testing.T, k kind, c *client, r *registry, namespace string) *watched {
	t.Helper()
	w := &watched{
		kind: k, c: c, r: r, within: pollIn,
		stays:   place{namespace, "others", "10.9.1.1", "9090"},
		changes: place{namespace, "others", "10.9.1.2", "9090"},
	}
	if k.hears {
		w.within = pushIn
	}
	r.put(t, w.stays, true, "1")
	c.do(t, "subscribe", "others")
	time.Sleep(2 * time.Second) // the first list of some clients is no news to them
	r.put(t, w.changes, true, "1")
	w.sees(t, "a second instance", func(h *host) bool { return h != nil && h.Healthy && h.Metadata["version"] == "1" })
	w.flip(t)
	r.put(t, w.changes, true, "2")
	w.sees(t, "new metadata", func(h *host) bool { return h != nil && h.Metadata["version"] == "2" })
	r.drop(t, w.changes)
	w.sees(t, "a removal", func(h *host) bool { return h == nil })
	return w
}

// flip has the client see an instance turn unhealthy and healthy again.
func (w *watched) flip(t *testing.T) {
	t.Helper()
	w.r.put(t, w.stays, true, "1") // a restart forgets it
	w.r.put(t, w.changes, false, "1")
	w.sees(t, "unhealthy", func(h *host) bool {
		return h == nil && w.healthyOnly || h != nil && !h.Healthy
	})
	w.r.put(t, w.changes, true, "1")
	w.sees(t, "healthy again", func(h *host) bool { return h != nil && h.Healthy })
}

func (w *watched) sees(t *testing.T, what string, holds func(*host) bool) {
	t.Helper()
	took := w.c.sees(t, w.within, w.changes.service, what, func(all []host) bool {
		for _, h := range all {
			if h.IP == w.changes.ip {
				return holds(&h)
			}
		}
		return len(all) > 0 && holds(nil)
	})
	t.Logf("%s is seen in %v", what, took.Round(time.Millisecond))
}
