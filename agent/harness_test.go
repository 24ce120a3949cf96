package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// site is a bubble with a real store that can be away, an app that answers as
// it is told, and the agent between them.
type site struct {
	t     *testing.T
	link  *link
	app   *fakeApp
	log   *lines
	agent *Agent
	key   registry.Key
	start time.Time
	stop  func() error // SIGTERM, then the end of Run
	over  func()       // what hangs comes to its end
}

// fakeApp answers checks; the zero value is well.
type fakeApp struct {
	mu     sync.Mutex
	answer map[string]check.Answer // by Spec; "" for all others
	hang   bool                    // ignores its deadline until the test ends
	asked  []time.Time
	end    context.Context
}

func (f *fakeApp) say(kind check.Kind, reason string) { f.sayOf("", kind, reason) }

func (f *fakeApp) sayOf(spec string, kind check.Kind, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[spec] = check.Answer{Kind: kind, Reason: reason, Took: time.Millisecond}
}

func (f *fakeApp) setHang(hang bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hang = hang
}

func (f *fakeApp) times() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.asked...)
}

func (f *fakeApp) Ask(ctx context.Context, s check.Spec) check.Answer {
	f.mu.Lock()
	f.asked = append(f.asked, time.Now())
	answer, ok := f.answer[s.String()]
	if !ok {
		answer = f.answer[""]
	}
	hang := f.hang
	f.mu.Unlock()
	if hang {
		<-f.end.Done()
		return check.Answer{Reason: "test over"}
	}
	if err := run.Wait(ctx, time.Millisecond); err != nil {
		return check.Answer{Reason: err.Error()}
	}
	return answer
}

// call is one call that reached the link.
type call struct {
	at   time.Time
	what string
	in   registry.Instance
	err  error
}

// link is the way to a store; it can be cut, slow, or lose the answer.
type link struct {
	mu    sync.Mutex
	store *registry.Store
	fault error         // every call ends with it
	lost  bool          // calls arrive, their answers do not
	slow  time.Duration // until a call arrives, also when the caller has given up
	swift bool          // only registrations and beats are slow
	calls []call
	end   context.Context
	pace  time.Duration // answered to beats when it is not 0
	stop  func()        // of the store
}

var errAway = errors.New("connection refused")

func (l *link) set(change func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *link) do(ctx context.Context, what string, in registry.Instance, f func(*registry.Store) error) error {
	l.mu.Lock()
	store, fault, lost, slow := l.store, l.fault, l.lost, l.slow
	if l.swift && what != "register" && what != "beat" {
		slow = 0
	}
	l.mu.Unlock()
	began := time.Now()
	err := fault
	if err == nil {
		err = l.deliver(ctx, slow, store, f)
	}
	if lost && err == nil {
		err = context.DeadlineExceeded
	}
	l.set(func(l *link) { l.calls = append(l.calls, call{began, what, in, err}) })
	return err
}

// deliver runs f after slow, whether or not anybody still waits for it: what is
// on the wire arrives.
func (l *link) deliver(ctx context.Context, slow time.Duration, store *registry.Store, f func(*registry.Store) error) error {
	if slow == 0 {
		return f(store)
	}
	done := make(chan error, 1)
	go func() {
		if run.Wait(l.end, slow) == nil {
			done <- f(store)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) Register(ctx context.Context, in registry.Instance) error {
	return l.do(ctx, "register", in, func(s *registry.Store) error { return s.Register(context.Background(), in) })
}

func (l *link) Mark(ctx context.Context, in registry.Instance) error {
	return l.do(ctx, "mark", in, func(s *registry.Store) error { return s.Mark(context.Background(), in) })
}

func (l *link) Beat(ctx context.Context, in registry.Instance) (next time.Duration, err error) {
	err = l.do(ctx, "beat", in, func(s *registry.Store) (err error) {
		d, err := s.Beat(context.Background(), in)
		l.set(func(*link) { next = d })
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pace != 0 {
		next = l.pace
	}
	return next, err
}

func (l *link) Deregister(ctx context.Context, key registry.Key) error {
	return l.do(ctx, "deregister", registry.Instance{Key: key}, func(s *registry.Store) error { return s.Deregister(context.Background(), key) })
}

func (l *link) Get(ctx context.Context, key registry.Key) (found registry.Instance, err error) {
	err = l.do(ctx, "read", registry.Instance{Key: key}, func(s *registry.Store) (err error) {
		in, err := s.Get(context.Background(), key)
		l.set(func(*link) { found = in })
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	return found, err
}

func (l *link) since(at time.Time, what string) (all []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if !c.at.Before(at) && (what == "" || c.what == what) {
			all = append(all, c)
		}
	}
	return all
}

// lines is where the log goes.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func usual() Config {
	var c Config
	c.Nacos, c.Admin = []string{"http://127.0.0.1:8848"}, "127.0.0.1:9180"
	c.App = App{
		Service: "orders", Address: "10.0.0.7:8080", Namespace: "public", Group: "DEFAULT_GROUP", Cluster: "DEFAULT", Ephemeral: true,
		CheckMode: "all", CheckInterval: 2 * time.Second, CheckTimeout: time.Second, CheckRise: 1, CheckFall: 3,
		OnDown: Unhealthy, Drain: 12 * time.Second, Weight: 1,
	}
	return c
}

// play runs an agent in a bubble.
func play(t *testing.T, c Config, f func(s *site)) {
	t.Helper()
	playFrom(t, c, func(*site) {}, f)
}

// playFrom is play with something to set before the agent runs.
func playFrom(t *testing.T, c Config, before, f func(s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, c, before)
		f(s)
		if s.stop != nil {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func open(t *testing.T, c Config, before func(*site)) *site {
	t.Helper()
	end, over := context.WithCancel(context.Background())
	t.Cleanup(over)
	s := &site{t: t, over: over, log: &lines{}, link: &link{end: end}, start: time.Now()}
	s.app = &fakeApp{answer: map[string]check.Answer{"": {Kind: check.Well, Reason: "200 OK"}}, end: end}
	s.replace()
	log := logrus.New()
	log.SetOutput(s.log)
	log.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true})
	agent, err := New(c, s.link, s.app, log)
	if err != nil {
		t.Fatal(err)
	}
	s.agent = agent
	s.key = agent.apps[0].life.declared.Key
	before(s)
	ctx, term := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	s.stop = func() error {
		s.stop = nil
		term()
		return <-ended
	}
	t.Cleanup(func() {
		over()
		term()
	})
	return s
}

// replace puts an empty store at the other end.
func (s *site) replace() {
	store := registry.NewStore()
	ctx, stop := context.WithCancel(s.link.end)
	go store.Run(ctx)
	s.link.set(func(l *link) {
		if l.stop != nil {
			l.stop()
		}
		l.store, l.stop = store, stop
	})
}

func (s *site) wait(d time.Duration) {
	s.t.Helper()
	run.Wait(context.Background(), d)
	synctest.Wait()
}

// state is what the registry lists: "-", or the flags.
func (s *site) state() string {
	s.link.mu.Lock()
	store := s.link.store
	s.link.mu.Unlock()
	in, err := store.Get(context.Background(), s.key)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return "-"
	case err != nil:
		return err.Error()
	}
	text := "healthy"
	if !in.Healthy {
		text = "unhealthy"
	}
	if !in.Enabled {
		text += " disabled"
	}
	return text
}

func (s *site) want(state string) {
	s.t.Helper()
	if got := s.state(); got != state {
		s.t.Errorf("after %v the registry lists %q, want %q\n%s", time.Since(s.start), got, state, s.history())
	}
}

func (s *site) history() string {
	var b strings.Builder
	calls := s.link.since(time.Time{}, "")
	for _, c := range calls[max(len(calls)-12, 0):] {
		fmt.Fprintf(&b, "  %v %s healthy=%v enabled=%v: %v\n", c.at.Sub(s.start), c.what, c.in.Healthy, c.in.Enabled, c.err)
	}
	return b.String() + s.log.all()
}
