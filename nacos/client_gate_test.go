package nacos

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// slowNacos is a Nacos that takes its time: what a request asks for is done
// only after a while, even when the client has gone by then.
type slowNacos struct {
	mu       sync.Mutex
	there    bool
	deleted  time.Time // when the last deregistration was done
	revived  int       // created after that
	fullBeat bool      // wants beats that can create
	takes    func() time.Duration
}

func (s *slowNacos) answer(_ int, q asked, w io.Writer) bool {
	time.Sleep(s.takes())
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasSuffix(q.path, pathServerState):
		return say(w, 200, "application/json", nacosState)
	case q.method == "DELETE":
		s.there, s.deleted = false, time.Now()
		return say(w, 200, "text/plain", "ok")
	case q.method == "POST":
		s.create()
		return say(w, 200, "text/plain", "ok")
	case !s.there && q.body == "":
		return say(w, 200, "application/json", strings.Replace(saidUnknown, "true", fmt.Sprint(!s.fullBeat), 1))
	}
	s.create()
	return say(w, 200, "application/json", strings.Replace(saidOK, "true", fmt.Sprint(!s.fullBeat), 1))
}

func (s *slowNacos) create() {
	if !s.there && !s.deleted.IsZero() {
		s.revived++
	}
	s.there = true
}

// A deregistration during slow beats, marks and registrations: in a thousand
// runs nothing brings the instance back.
func TestNothingComesBack(t *testing.T) {
	for seed := range 1000 {
		s, took, err := leaveWhileBusy(t, uint64(seed), time.Second)
		if err != nil || took > 7*time.Second || s.there || s.revived > 0 {
			t.Fatalf("run %d: %v after %v, there %v, brought back %d times", seed, err, took, s.there, s.revived)
		}
	}
}

// The same with a server so slow that requests end without an answer and are
// carried out later: what they bring back is taken out again.
func TestNothingStays(t *testing.T) {
	revived := 0
	for seed := range 300 {
		s, took, err := leaveWhileBusy(t, uint64(seed), 2*time.Second)
		if err != nil && !errors.Is(err, registry.ErrUnavailable) || took > 12*time.Second || s.there {
			t.Fatalf("run %d: %v after %v, there %v, brought back %d times", seed, err, took, s.there, s.revived)
		}
		revived += s.revived
	}
	if revived == 0 {
		t.Error("no run had a request carried out late: the test shows nothing")
	}
}

// leaveWhileBusy registers an instance, keeps beating, marking and registering
// it, and deregisters it in the middle of that.
func leaveWhileBusy(t *testing.T, seed uint64, slowest time.Duration) (s *slowNacos, took time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, seed))
		var lock sync.Mutex
		takes := func() time.Duration {
			lock.Lock()
			defer lock.Unlock()
			return time.Millisecond + time.Duration(random.Int64N(int64(slowest)))
		}
		s = &slowNacos{takes: takes, fullBeat: seed%2 == 0}
		var n network
		n.set("a", withRequests(s.answer))
		c := opened(t, ClientConfig{Servers: []string{"a"}, Dial: n.dial})
		i := orders()
		if err := c.Register(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		var leaving atomic.Bool
		var running sync.WaitGroup
		for _, do := range []func() error{
			func() error { _, err := c.Beat(t.Context(), i); return err },
			func() error { return c.Mark(t.Context(), i) },
			func() error { return c.Register(t.Context(), i) },
		} {
			running.Go(func() {
				for time.Sleep(takes()); !leaving.Load(); time.Sleep(takes()) {
					_ = do() // whatever comes of it
				}
			})
		}
		time.Sleep(takes() + takes() + takes())
		leaving.Store(true) // nothing new begins from here on
		start := time.Now()
		err = c.Deregister(t.Context(), i.Key)
		took = time.Since(start)
		running.Wait()
		time.Sleep(20 * time.Second) // until the server is done too
	})
	return s, took, err
}

// A write that begins during a deregistration is not sent.
func TestNothingBeginsWhileLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowNacos{takes: func() time.Duration { return time.Second }}
		var n network
		n.set("a", withRequests(s.answer))
		c := opened(t, ClientConfig{Servers: []string{"a"}, Dial: n.dial})
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Deregister(t.Context(), orders().Key); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		_, beat := c.Beat(t.Context(), orders())
		for _, err := range []error{beat, c.Register(t.Context(), orders()), c.Mark(t.Context(), orders())} {
			if !errors.Is(err, errLeaving) {
				t.Errorf("got %v, want %v", err, errLeaving)
			}
		}
		running.Wait()
		if err := c.Register(t.Context(), orders()); err != nil || len(c.gate.keys) != 0 {
			t.Errorf("afterwards: %v, %d keys kept", err, len(c.gate.keys))
		}
	})
}

// A light beat cannot create: a deregistration does not wait for one.
func TestLightBeatIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		n.set("a", withRequests(func(i int, q asked, w io.Writer) bool {
			if q.method == "PUT" {
				time.Sleep(2 * time.Second)
			}
			return nacosAnswer(i, q, w)
		}))
		c := opened(t, ClientConfig{Servers: []string{"a"}, Dial: n.dial})
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := c.Beat(t.Context(), orders()); !errors.Is(err, errLeaving) {
				t.Errorf("got %v, want the beat given up", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := c.Deregister(t.Context(), orders().Key); err != nil || time.Since(start) > 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		running.Wait()
		time.Sleep(3 * time.Second)
	})
}
