package agent

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

func planOf(mode OnDown, ephemeral bool) plan {
	c := usual()
	c.OnDown, c.Ephemeral = mode, ephemeral
	p, err := c.App.parse(func(word string) string { return word })
	if err != nil {
		panic(err)
	}
	return p
}

// The table of design section 5, row by row.
func TestWanted(t *testing.T) {
	now := time.Unix(1000, 0)
	f := func(mode OnDown, ephemeral bool, v health.Verdict, downFor time.Duration, ph phase, want want) {
		t.Helper()
		l := newLife(planOf(mode, ephemeral), func() float64 { return 0.5 })
		l.wasUp, l.fresh = true, now.Add(time.Hour)
		l.verdict, l.downAt, l.phase = v, now.Add(-downFor), ph
		if got := l.wanted(now); got != want {
			t.Errorf("%s, ephemeral %v, %v for %v, %v: got %+v, want %+v", mode, ephemeral, v, downFor, ph, got, want)
		}
	}
	up, down, hidden := status{true, true}, status{false, true}, status{true, false}
	for _, mode := range []OnDown{Unhealthy, Deregister, Disable, Silent} {
		f(mode, true, health.Undecided, 0, serving, want{})
		f(mode, true, health.Up, 0, serving, want{present, up, true})
		f(mode, false, health.Up, 0, serving, want{present, up, false})
		f(mode, true, health.Up, 0, draining, want{ifThere, hidden, true})
		f(mode, false, health.Up, 0, draining, want{ifThere, hidden, false})
		f(mode, true, health.Up, 0, leaving, want{place: absent})
		f(mode, false, health.Up, 0, leaving, want{ifThere, down, false})
		f(mode, false, health.Down, 0, leaving, want{ifThere, down, false})
		f(mode, true, health.Up, 0, left, want{})
	}
	f(Unhealthy, true, health.Down, 0, serving, want{ifThere, down, false})
	f(Unhealthy, true, health.Down, 34*time.Second, serving, want{ifThere, down, false})
	f(Unhealthy, true, health.Down, 36*time.Second, serving, want{place: absent})
	f(Deregister, true, health.Down, 0, serving, want{place: absent})
	f(Disable, true, health.Down, time.Hour, serving, want{present, hidden, true})
	f(Silent, true, health.Down, 34*time.Second, serving, want{})
	f(Silent, true, health.Down, 36*time.Second, serving, want{place: absent})
	f(Unhealthy, false, health.Down, time.Hour, serving, want{present, down, false})
	f(Deregister, false, health.Down, 0, serving, want{present, down, false})
	f(Disable, false, health.Down, 0, serving, want{present, status{false, false}, false})
	f(Silent, false, health.Down, time.Hour, serving, want{})
	f(Unhealthy, true, health.Down, 0, draining, want{ifThere, status{false, false}, false})
	f(Deregister, true, health.Down, 0, draining, want{place: absent})
	f(Disable, true, health.Down, 0, draining, want{ifThere, hidden, true})
}

func TestStaleVerdictSaysNothing(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLife(planOf(Unhealthy, true), func() float64 { return 0.5 })
	l.verdict, l.fresh = health.Up, now
	if got := l.wanted(now.Add(1)); got != (want{}) {
		t.Errorf("got %+v for a verdict that is too old, want nothing", got)
	}
}

// world is a registry of one instance that fails as it likes, and a clock.
type world struct {
	*rapid.T
	l      *life
	now    time.Time
	listed *registry.Instance // nil: not there
	heard  time.Time
	late   []arrival // on the wire
	rude   bool      // calls may fail
	blind  bool      // reads do fail
	beats  []time.Time
}

type arrival struct {
	at time.Time
	do func()
}

func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	kept := w.late[:0]
	for _, a := range w.late {
		if a.at.After(w.now) {
			kept = append(kept, a)
		} else {
			a.do()
		}
	}
	w.late = kept
	if w.listed != nil && w.listed.Ephemeral {
		switch silence := w.now.Sub(w.heard); {
		case silence > 30*time.Second:
			w.listed = nil
		case silence > 15*time.Second:
			w.listed.Healthy = false
		}
	}
}

var errLost = errors.New("no answer")

// call does to the registry what the step says, well or badly.
func (w *world) call(do step, in registry.Instance) outcome {
	o := outcome{step: do, sent: in, began: w.now}
	if do == read && w.blind {
		w.advance(time.Millisecond)
		o.err = errLost
		return o
	}
	fate := "well"
	if w.rude {
		fate = rapid.SampledFrom([]string{"well", "well", "refused", "lost", "late", "never"}).Draw(w.T, "fate")
	}
	switch fate {
	case "refused":
		o.err = registry.ErrRefused
	case "never":
		w.advance(3 * time.Second)
		o.err = errLost
	case "late":
		w.late = append(w.late, arrival{w.now.Add(3500 * time.Millisecond), func() { w.apply(&outcome{}, do, in) }})
		w.advance(3 * time.Second)
		o.err = errLost
	case "lost":
		w.apply(&o, do, in)
		w.advance(3 * time.Second)
		o = outcome{step: do, sent: in, began: o.began, err: errLost}
	default:
		w.advance(time.Millisecond)
		w.apply(&o, do, in)
	}
	return o
}

func (w *world) apply(o *outcome, do step, in registry.Instance) {
	if w.listed == nil && do != register && do != deregister {
		o.err = registry.ErrNotFound
		return
	}
	switch do {
	case register, mark:
		w.listed, w.heard = &in, w.now
	case beat:
		w.heard, w.listed.Healthy, o.next = w.now, true, 5*time.Second
	case deregister:
		w.listed = nil
	case read:
		o.found = *w.listed
	}
}

// turn is one turn of the loop around life, with everything asserted that
// holds at any moment.
func (w *world) turn() {
	do, in, wait := w.l.next(w.now)
	if do == rest {
		w.advance(min(wait, 500*time.Millisecond) + time.Millisecond)
		return
	}
	stale := w.now.After(w.l.fresh)
	switch {
	case do == register && w.l.phase != serving:
		w.Fatalf("registers while %v", w.l.phase)
	case w.l.phase == left:
		w.Fatalf("sends %v after the end", do)
	case (do == register || do == beat) && w.l.verdict == health.Up && stale:
		w.Fatalf("%v on a verdict that is too old", do)
	case do == register && w.l.verdict != health.Up && (in.Healthy && in.Enabled || !w.l.wasUp):
		w.Fatalf("registers %+v although the verdict is %v", in, w.l.verdict)
	case do == beat && w.l.verdict != health.Up && w.l.onDown != Disable:
		w.Fatalf("beats for what is %v", w.l.verdict)
	case do == beat && !w.l.ephemeral:
		w.Fatal("beats for a persistent instance")
	}
	if do == beat {
		if n := len(w.beats); n > 0 && w.now.Sub(w.beats[n-1]) < 900*time.Millisecond && w.l.sent.Before(w.beats[n-1]) {
			w.Fatalf("two beats within %v", w.now.Sub(w.beats[n-1]))
		}
		w.beats = append(w.beats, w.now)
	}
	w.l.done(w.now, w.call(do, in))
}

func (w *world) run(d time.Duration) {
	for until := w.now.Add(d); w.now.Before(until); {
		w.keepFresh()
		w.turn()
	}
}

func (w *world) keepFresh() {
	if w.l.verdict != health.Undecided {
		w.l.judge(w.now, w.l.verdict, w.now.Add(7*time.Second))
	}
}

// Whatever the registry, the app and the operator do: once the registry works
// and the app keeps still, the registry soon lists what is wanted.
func TestLifeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]OnDown{Unhealthy, Deregister, Disable, Silent}).Draw(t, "mode")
		ephemeral := rapid.Bool().Draw(t, "ephemeral")
		l := newLife(planOf(mode, ephemeral), func() float64 { return rapid.Float64Range(0, 1).Draw(t, "jitter") })
		w := &world{T: t, l: l, now: time.Unix(1000, 0), rude: true, blind: rapid.IntRange(0, 4).Draw(t, "blind") == 0}
		if rapid.Bool().Draw(t, "left behind") {
			in := l.declared
			w.listed, w.heard = &in, w.now
		}
		w.play(rapid.IntRange(0, 40).Draw(t, "turns"))
		w.rude = false
		if l.phase == serving {
			w.run(75 * time.Second) // a refusal is repeated after a minute
			if !w.blind {
				w.converged()
			}
			l.drain(w.now)
		}
		calm := l.phase != leaving && l.phase != left && (l.ephemeral || !w.blind)
		for l.phase != left {
			w.keepFresh()
			w.turn()
		}
		if err := l.result(); calm && err != nil {
			t.Fatalf("ended with %v although the registry took everything", err)
		}
		w.ended()
	})
}

func (w *world) play(turns int) {
	for range turns {
		switch rapid.SampledFrom([]string{"turn", "turn", "turn", "turn", "up", "down", "pause", "hang", "forget", "suspect", "drain"}).Draw(w.T, "event") {
		case "up":
			w.l.judge(w.now, health.Up, w.now.Add(7*time.Second))
		case "down":
			w.l.judge(w.now, health.Down, w.now.Add(7*time.Second))
		case "pause":
			w.run(time.Duration(rapid.IntRange(1, 40).Draw(w.T, "seconds")) * time.Second)
		case "hang":
			w.advance(8 * time.Second)
		case "forget":
			w.listed = nil
		case "suspect":
			w.l.suspect()
		case "drain":
			if rapid.IntRange(0, 4).Draw(w.T, "really") == 0 {
				w.l.drain(w.now)
			}
		}
		w.turn()
	}
}

func (w *world) converged() {
	wanted := w.l.wanted(w.now)
	switch {
	case wanted.place == present && w.listed == nil:
		w.Fatalf("not listed, want %+v", wanted)
	case wanted.place == absent && w.listed != nil:
		w.Fatalf("listed as %+v, want it absent", *w.listed)
	case (wanted.place == present || wanted.place == ifThere) && w.listed != nil:
		if got := (status{w.listed.Healthy, w.listed.Enabled}); got != wanted.status {
			w.Fatalf("listed as %+v, want %+v", got, wanted.status)
		}
	}
}

func (w *world) ended() {
	if err := w.l.result(); err != nil {
		return // it says that it may still be listed
	}
	w.advance(10 * time.Second) // what is still on the wire
	switch {
	case !w.l.touched, w.listed == nil:
	case w.l.ephemeral:
		w.Fatalf("a ghost: %+v", *w.listed)
	case w.listed.Healthy || !w.listed.Enabled || w.listed.Metadata[metaBy] != "":
		w.Fatalf("left as %+v, want unhealthy, enabled and unsigned", *w.listed)
	}
}

func TestPauses(t *testing.T) {
	l := newLife(planOf(Unhealthy, true), func() float64 { return 1 })
	f := func(failures int, err error, want time.Duration) {
		t.Helper()
		l.failures = failures
		if got := l.pauseAfter(err); got != want {
			t.Errorf("pause after failure %d: got %v, want %v", failures, got, want)
		}
	}
	f(1, errLost, time.Second)
	f(2, errLost, 2*time.Second)
	f(3, errLost, 4*time.Second)
	f(4, errLost, 5*time.Second)
	f(1<<20, errLost, 5*time.Second)
	f(1, registry.ErrRefused, 5*time.Second)
	f(4, registry.ErrRefused, 40*time.Second)
	f(1<<20, registry.ErrRefused, time.Minute)
}
