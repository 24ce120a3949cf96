package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

const (
	callTime  = 3 * time.Second // for one call; an overloaded Nacos holds its 503 back for 1 s
	findTime  = 3 * time.Second
	findPause = 2 * time.Second
	lateness  = 2 * time.Second  // a loop that wakes later was stopped with its process
	slack     = 10 * time.Second // a loop that is later than this does not turn
)

// app runs the life of one app.
type app struct {
	plan
	registry Registry
	asker    Asker
	log      *logrus.Entry
	find     func(context.Context) (string, error) // nil: the address was given

	bell    run.Bell   // wakes the loop that talks to the registry
	bells   []run.Bell // wake the checks
	drained chan struct{}
	noticed time.Time // when the loop that talks to the registry last looked at the clock

	mu      sync.Mutex
	life    *life
	panel   panel
	since   time.Time   // of the verdict
	started time.Time   //
	resumed time.Time   // answers to older questions say nothing
	alive   []time.Time // until when each loop must have turned: the registry's, then the checks'
	held    bool        // it was said that beats are held back
	nowhere string      // why there is no address yet
	answers [3]uint64   // by Kind
	changes uint64      // of the verdict
}

func newApp(p plan, r Registry, ask Asker, log *logrus.Logger) *app {
	count := max(len(p.specs), 1)
	a := &app{
		plan: p, registry: r, asker: ask, log: log.WithField("service", p.service.String()),
		bell: run.NewBell(), bells: make([]run.Bell, count), drained: make(chan struct{}),
		life:  newLife(p, rand.Float64),
		panel: panel{need: p.need, checks: make([]checkState, count)},
		alive: make([]time.Time, count+1),
	}
	for i := range count {
		a.bells[i] = run.NewBell()
		a.panel.checks[i].Hysteresis = health.Hysteresis{Rise: p.rise, Fall: p.fall}
		a.panel.checks[i].wait = p.interval*time.Duration(p.fall) + a.patience(i)
	}
	return a
}

// patience is how long check i may take.
func (a *app) patience(i int) time.Duration {
	if i < len(a.specs) && a.specs[i].Timeout() > 0 {
		return a.specs[i].Timeout()
	}
	return a.timeout
}

// spec is what check i asks: without any, TCP on the registered address.
func (a *app) spec(i int) check.Spec {
	if len(a.specs) > 0 {
		return a.specs[i]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return check.TCP(a.life.host, a.port)
}

// Run looks after the app until the context ends and the instance is out of
// the registry. After a drain by drain() it does nothing until the context
// ends: a process that left would be started again.
func (a *app) Run(ctx context.Context) error {
	a.mu.Lock()
	a.started = time.Now()
	a.since = a.started
	a.mu.Unlock()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, a.drain)()
	err := a.resolve(work)
	if err == nil {
		parts := []run.Part{a.keep}
		for i := range a.bells {
			parts = append(parts, func(ctx context.Context) error { return a.watch(ctx, i) })
		}
		err = run.All(work, parts...)
	}
	close(a.drained)
	<-ctx.Done()
	return err
}

// resolve finds the address; without a network it keeps trying.
func (a *app) resolve(ctx context.Context) error {
	for a.host == "" && a.find != nil {
		err := a.locate(ctx)
		if err == nil {
			return nil
		}
		a.sayNowhere(err)
		a.turn(0, findPause)
		if _, err := run.WaitOr(ctx, findPause/2+rand.N(findPause/2), a.bell); err != nil {
			return err
		}
		if a.phase() != serving {
			a.mu.Lock()
			a.life.phase = left
			a.mu.Unlock()
			return nil
		}
	}
	return nil
}

func (a *app) locate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	a.turn(0, findTime)
	host, err := a.find(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nowhere = ""
	a.life.move(host)
	return nil
}

func (a *app) sayNowhere(err error) {
	a.mu.Lock()
	said := a.nowhere != ""
	a.nowhere = err.Error()
	a.mu.Unlock()
	if !said {
		a.log.WithField("cause", err.Error()).Warn("there is no address to register yet; trying again")
	}
}

func (a *app) phase() phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life.phase
}

// turn notes that loop i turns, and is to be back within wait.
func (a *app) turn(i int, wait time.Duration) {
	a.mu.Lock()
	a.alive[i] = time.Now().Add(wait + slack)
	a.mu.Unlock()
}

// drain starts the way out, and wakes who has to know.
func (a *app) drain() {
	a.mu.Lock()
	a.life.drain(time.Now())
	a.mu.Unlock()
	a.bell.Ring()
}

// keep talks to the registry: the only place that does, one call at a time, so
// that nothing overtakes a deregistration.
func (a *app) keep(ctx context.Context) error {
	a.noticed = time.Now()
	for {
		a.mu.Lock()
		do, in, wait := a.life.next(time.Now())
		finished := a.life.phase == left
		a.mu.Unlock()
		switch {
		case finished:
			return a.farewell()
		case do != rest:
			a.send(ctx, do, in)
		default:
			if err := a.nap(ctx, wait); err != nil {
				return err
			}
		}
	}
}

func (a *app) farewell() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := a.life.declared.Key
	if err := a.life.result(); err != nil {
		return fmt.Errorf("cannot deregister %s, the registry will find it silent: %w: %w", key, ErrStillListed, err)
	}
	if a.life.touched {
		a.log.WithField("instance", key.Address()).Info("left the registry")
	}
	return nil
}

func (a *app) nap(ctx context.Context, wait time.Duration) error {
	a.sayHeld()
	a.turn(0, wait)
	_, err := run.WaitOr(ctx, wait, a.bell)
	a.notice(wait)
	return err
}

// notice finds out that far more time has passed since it was last called than
// may: then the process was stopped, or the machine suspended, which only the
// wall clock tells. What the checks said before says nothing now.
func (a *app) notice(most time.Duration) {
	before, now := a.noticed, time.Now()
	a.noticed = now
	if took := max(now.Sub(before), now.Round(0).Sub(before.Round(0))); took > most+lateness {
		a.suspect(took)
	}
}

func (a *app) suspect(slept time.Duration) {
	a.mu.Lock()
	a.resumed = time.Now()
	a.life.suspect()
	a.mu.Unlock()
	a.log.WithField("took", slept.String()).Warn("this process was stopped for a while; asking the app again before the next beat")
	for _, bell := range a.bells {
		bell.Ring()
	}
}

// sayHeld says once that the checks do not answer, so that nothing is beaten.
func (a *app) sayHeld() {
	a.mu.Lock()
	now := time.Now()
	held := a.life.verdict == health.Up && a.life.stale(now) && now.Sub(a.resumed) > a.life.interval
	say := held && !a.held
	a.held = held
	a.mu.Unlock()
	if say {
		a.log.Warn("the checks have not answered for too long; beats are held back")
	}
}

// send makes one call, within its time, and takes its outcome.
func (a *app) send(ctx context.Context, do step, in registry.Instance) {
	in = a.relocated(ctx, do, in)
	limit := a.limit()
	a.turn(0, limit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o := outcome{step: do, sent: in, began: time.Now()}
	switch do {
	case register:
		o.err = a.registry.Register(ctx, in)
	case mark:
		o.err = a.registry.Mark(ctx, in)
	case beat:
		o.next, o.err = a.registry.Beat(ctx, in)
	case deregister:
		o.err = a.registry.Deregister(ctx, in.Key)
	case read:
		o.found, o.err = a.registry.Get(ctx, in.Key)
	}
	a.notice(limit)
	a.mu.Lock()
	a.life.done(time.Now(), o)
	notes := a.life.notes
	a.life.notes = nil
	a.mu.Unlock()
	a.write(in.Key, notes)
}

// limit is the time for one call: less than a beat period, and less than what
// is left at the end.
func (a *app) limit() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := min(callTime, a.life.interval*4/5)
	if a.life.phase == leaving {
		limit = min(limit, max(time.Until(a.life.drainEnd), 100*time.Millisecond))
	}
	return limit
}

// relocated looks for the address again when the first registration failed: an
// agent that starts before its network may have seen another one.
func (a *app) relocated(ctx context.Context, do step, in registry.Instance) registry.Instance {
	a.mu.Lock()
	sure := a.find == nil || do != register || a.life.holds != unknown || a.life.failures == 0
	a.mu.Unlock()
	if sure {
		return in
	}
	if err := a.locate(ctx); err == nil {
		a.mu.Lock()
		in.IP = a.life.host
		a.mu.Unlock()
	}
	a.notice(findTime)
	return in
}

func (a *app) write(key registry.Key, notes []note) {
	for _, n := range notes {
		entry := a.log.WithField("instance", key.Address())
		if n.cause != "" {
			entry = entry.WithField("cause", n.cause)
		}
		if n.state != "" {
			entry = entry.WithField("state", n.state)
		}
		if n.took > 0 {
			entry = entry.WithField("took", n.took.Round(time.Millisecond).String()).WithField("count", n.count)
		}
		entry.Log(n.level, n.text)
	}
}
