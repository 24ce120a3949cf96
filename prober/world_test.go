package prober

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

// target is how one address behaves when it is asked.
type target func(ctx context.Context) check.Answer

func well(context.Context) check.Answer {
	return check.Answer{Kind: check.Well, Reason: "connected", Took: time.Millisecond}
}

func refusing(context.Context) check.Answer {
	return check.Answer{Kind: check.Sick, Reason: "refused", Took: time.Millisecond}
}

func cannot(context.Context) check.Answer {
	return check.Answer{Kind: check.Unknown, Reason: "cannot ask: too many open files"}
}

func blackHole(ctx context.Context) check.Answer {
	start := time.Now()
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) {
		return check.Answer{Kind: check.Unknown, Reason: "stopped while asking"}
	}
	return check.Answer{Kind: check.Sick, Reason: "timeout after " + time.Since(start).String(), Took: time.Since(start)}
}

func after(d time.Duration, then target) target {
	return func(ctx context.Context) check.Answer {
		select {
		case <-time.After(d):
			return then(ctx)
		case <-ctx.Done():
			return check.Answer{Kind: check.Sick, Reason: "timeout", Took: d}
		}
	}
}

// asked is one question as the network saw it.
type asked struct {
	question string
	at       time.Time
}

// network answers questions by address; an address without behaviour is well.
// It complains when an address has two questions in flight.
type network struct {
	t        *testing.T
	mu       sync.Mutex
	all      target // when set: how every address behaves
	behave   map[string]target
	inFlight map[string]bool
	asked    []asked
}

func (n *network) Ask(ctx context.Context, question check.Spec) check.Answer {
	_, address, _ := strings.Cut(question.String(), "://")
	address, _, _ = strings.Cut(address, "/")
	address, _, _ = strings.Cut(address, "#")
	n.mu.Lock()
	if n.inFlight[address] {
		n.t.Errorf("%s is asked twice at once", address)
	}
	n.inFlight[address] = true
	n.asked = append(n.asked, asked{question.String(), time.Now()})
	behave := n.behave[address]
	if n.all != nil {
		behave = n.all
	}
	n.mu.Unlock()
	defer func() { n.mu.Lock(); n.inFlight[address] = false; n.mu.Unlock() }()
	if behave == nil {
		return well(ctx)
	}
	return behave(ctx)
}

func (n *network) set(address string, how target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.behave[address] = how
}

func (n *network) setAll(how target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = how
}

// since gives the questions that begin with the text, from an instant on.
func (n *network) since(from time.Time, front string) (at []time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.asked {
		if strings.HasPrefix(a.question, front) && !a.at.Before(from) {
			at = append(at, a.at)
		}
	}
	return at
}

// link is the way to a registry, which can be cut, spoilt and led elsewhere. It
// counts what was written.
type link struct {
	mu     sync.Mutex
	store  *registry.Store
	fail   error // what every call answers
	empty  bool  // a list of nothing
	writes []string
	refuse error // what SetHealth answers
	spoil  func(registry.Page) registry.Page
}

func (l *link) now() (*registry.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store, l.fail
}

func (l *link) change(do func(l *link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l)
}

func (l *link) List(ctx context.Context, from string) (registry.Page, error) {
	store, err := l.now()
	if err != nil {
		return registry.Page{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spoil != nil {
		from = ""
	}
	page, err := store.List(ctx, from)
	if l.empty {
		return registry.Page{}, nil
	}
	if l.spoil != nil {
		return l.spoil(page), err
	}
	return page, err
}

func (l *link) Get(ctx context.Context, key registry.Key) (registry.Instance, error) {
	store, err := l.now()
	if err != nil {
		return registry.Instance{}, err
	}
	return store.Get(ctx, key)
}

func (l *link) SetHealth(ctx context.Context, seen registry.Instance, healthy bool) error {
	store, err := l.now()
	if err != nil {
		return err
	}
	l.mu.Lock()
	refuse := l.refuse
	l.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	if err := store.SetHealth(ctx, seen, healthy); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, fmt.Sprintf("%s=%v", seen.Address(), healthy))
	return nil
}

// made gives the writes so far.
func (l *link) made() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.writes)
}

// journal keeps the log; it is written by the prober while a test reads.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// world is a prober between a registry and a network, all in one bubble.
type world struct {
	*testing.T
	cfg     Config
	log     journal
	logger  *logrus.Logger
	store   *registry.Store
	link    *link
	network *network
	prober  *Prober
	stop    context.CancelFunc
	ended   chan error
}

// inWorld plays a test in a bubble. The prober is not started yet.
func inWorld(t *testing.T, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: registry.NewStore(), cfg: usualConfig()}
		w.link = &link{store: w.store}
		w.network = &network{t: t, behave: map[string]target{}, inFlight: map[string]bool{}}
		w.logger = logrus.New()
		w.logger.SetOutput(&w.log)
		play(w)
		w.end()
	})
}

func usualConfig() Config {
	return Config{Probe: Probe{
		ProbeInterval: 20 * time.Second, ProbeTimeout: 3200 * time.Millisecond,
		ProbeRise: 2, ProbeFall: 3, ProbeInFlight: 2000, ProbeWriteRate: 200,
	}}
}

// run starts a prober; inside: the registry is in the process.
func (w *world) run(inside bool) {
	w.Helper()
	p, err := New(w.cfg, w.link, w.network, w.logger)
	if err != nil {
		w.Fatal(err)
	}
	if inside {
		p.Changed = w.store.Watch
		p.Paused = func() bool { return !w.store.Switches().HealthCheckEnabled }
	}
	w.start(p)
}

func (w *world) start(p *Prober) {
	ctx, cancel := context.WithCancel(w.Context())
	w.prober, w.stop, w.ended = p, cancel, make(chan error, 1)
	go func() { w.ended <- p.Run(ctx) }()
	w.pass(0)
}

// end stops the prober and waits until nothing of it runs any more.
func (w *world) end() {
	if w.stop == nil {
		return
	}
	w.stop()
	if err := <-w.ended; err != nil {
		w.Errorf("the prober ended with %v", err)
	}
	w.stop = nil
}

// pass lets time pass and everybody come to rest.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func address(n int) string { return fmt.Sprintf("10.0.%d.%d:8080", n>>8, n&255) }

func instance(n int) registry.Instance {
	key := registry.Key{
		Service: registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"},
		Cluster: "DEFAULT", IP: fmt.Sprintf("10.0.%d.%d", n>>8, n&255), Port: 8080,
	}
	return registry.Instance{Key: key, Weight: 1, Enabled: true, Healthy: true}
}

func (w *world) register(in registry.Instance) registry.Key {
	w.Helper()
	if err := w.store.Register(w.Context(), in); err != nil {
		w.Fatal(err)
	}
	return in.Key
}

// fleet registers n instances.
func (w *world) fleet(n int) (keys []registry.Key) {
	for i := range n {
		keys = append(keys, w.register(instance(i)))
	}
	return keys
}

func (w *world) healthy(key registry.Key) bool {
	w.Helper()
	in, err := w.store.Get(w.Context(), key)
	if err != nil {
		w.Fatal(err)
	}
	return in.Healthy
}

// unhealthy counts the instances of the store that are marked so.
func (w *world) unhealthy() (n int) {
	for _, in := range w.store.All(instance(0).Service) {
		if !in.Healthy {
			n++
		}
	}
	return n
}

// until waits until it is so, and tells how long that took; most is the bound.
func (w *world) until(what string, most time.Duration, so func() bool) time.Duration {
	w.Helper()
	start := time.Now()
	for !so() {
		if time.Since(start) > most {
			w.Fatalf("not %s after %v", what, most)
		}
		w.pass(10 * time.Millisecond)
	}
	return time.Since(start)
}

// firstAsked waits for the next question to an address and gives its time.
func (w *world) firstAsked(front string) time.Time {
	w.Helper()
	start := time.Now()
	w.until("asked", 25*time.Second, func() bool { return len(w.network.since(start, front)) > 0 })
	return w.network.since(start, front)[0]
}

// said counts the log lines with this text.
func (w *world) said(text string) int { return strings.Count(w.log.String(), text) }

// tally gives the prober's counts.
func (w *world) tally() (t tally) {
	w.prober.with(func(c *core, _ time.Duration) { t = c.tally })
	return t
}

// target finds one target of the status.
func (w *world) target(key registry.Key) Target {
	w.Helper()
	for from := 0; ; {
		page := w.prober.Targets(from, 1000)
		for _, t := range page.Targets {
			if t.Address == key.Address() && t.Service == key.Service.String() {
				return t
			}
		}
		if from = page.Next; from == 0 {
			w.Fatalf("%s is no target", key)
		}
	}
}

func quietLog() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
