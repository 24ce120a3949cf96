package prober

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

// While health checks are switched off nobody is asked and nothing is written,
// whatever was under way. When they are on again everybody keeps to the
// appointments of before: no burst, and nobody is marked for what is old.
func TestSwitchedOff(t *testing.T) {
	inWorld(t, func(w *world) {
		var keys []registry.Key
		for n := range 40 {
			keys = append(keys, w.register(instance(n+1)))
		}
		sick, ill := keys[0], keys[1]
		w.run(true)
		w.pass(time.Minute)
		w.network.set(sick.Address(), refusing)
		began := time.Now()
		w.until("the first refusal", time.Minute, func() bool { return len(w.network.since(began, "tcp://"+sick.Address())) > 0 })
		if err := w.store.SetSwitch(t.Context(), "check", "false"); err != nil {
			t.Fatal(err)
		}
		off := time.Now()
		w.pass(5 * time.Minute)
		if asked := w.network.since(off.Add(2*tickMost), ""); len(asked) > 0 {
			t.Errorf("%d questions while switched off", len(asked))
		}
		if !w.healthy(sick) || w.prober.core.state() != "health checks are switched off" {
			t.Errorf("healthy %v, state %q", w.healthy(sick), w.prober.core.state())
		}
		more := 2 // one less than make it down; the refusal of before is too old to be the third
		w.network.set(sick.Address(), func(ctx context.Context) check.Answer {
			if more--; more < 0 {
				return well(ctx)
			}
			return refusing(ctx)
		})
		w.network.set(ill.Address(), refusing)
		if err := w.store.SetSwitch(t.Context(), "check", "true"); err != nil {
			t.Fatal(err)
		}
		on := time.Now()
		w.until("the ill one is marked", 24*time.Second, func() bool { return !w.healthy(ill) })
		w.pass(30 * time.Second)
		if got := w.link.made(); !slices.Equal(got, []string{fmt.Sprint(ill.Address(), "=false")}) {
			t.Errorf("written: %q", got)
		}
		soon := 0
		for _, at := range w.network.since(on, "") {
			if at.Before(on.Add(time.Second)) {
				soon++
			}
		}
		if soon > 10 {
			t.Errorf("%d of 40 are asked within a second", soon)
		}
		if strings.Count(w.log.String(), "health checks are switched") != 2 {
			t.Errorf("log: %s", w.log.String())
		}
	})
}
