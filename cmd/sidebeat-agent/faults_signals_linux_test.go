package main

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// Signals at any moment of the start and of the drain: the agent ends with the
// code that is documented, and only a second signal may leave an instance.
func TestSignalsAtAnyMoment(t *testing.T) {
	t.Parallel()
	rounds := 20 * *faults
	ended := map[string]int{}
	outcomes := make(chan string, rounds)
	run.Each(t.Context(), rounds, 2, func(ctx context.Context, round int) {
		outcomes <- signalled(ctx, t, rand.New(rand.NewPCG(uint64(round), 7)))
	})
	close(outcomes)
	for outcome := range outcomes {
		ended[outcome]++
	}
	t.Logf("%d rounds: %v", rounds, ended)
}

// signalled plays one life, and tells how it ended.
func signalled(ctx context.Context, t *testing.T, random *rand.Rand) string {
	y := fence(t)
	y.child = y.command("sidebeat-agent")
	y.child.Env = append(y.child.Env, "SIDEBEAT_DRAIN=200ms")
	y.child.Stderr = &y.log
	if err := y.child.Start(); err != nil {
		t.Error(err)
		return "not started"
	}
	first := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[random.IntN(2)]
	twice := random.IntN(4) == 0
	run.Wait(ctx, time.Duration(random.IntN(400))*time.Millisecond)
	y.child.Process.Signal(first)
	if twice {
		run.Wait(ctx, time.Duration(random.IntN(300))*time.Millisecond)
		y.child.Process.Signal(syscall.SIGTERM)
	}
	y.child.Wait()
	code, killed := y.child.ProcessState.ExitCode(), y.child.ProcessState.Sys().(syscall.WaitStatus).Signaled()
	touched := y.calls.Load() > 0
	switch {
	case killed && !touched:
		return "before main" // the runtime of Go was just being started
	case twice && code == 130:
		return "at once"
	case code != exitOK:
		t.Errorf("ended with %v after %v, twice=%v; the log:\n%s", y.child.ProcessState, first, twice, y.log.String())
		return "wrong"
	}
	if got := state(y.store, "orders"); got != "-" {
		t.Errorf("a ghost: %q after %v, twice=%v; the log:\n%s", got, first, twice, y.log.String())
	}
	if !touched {
		return "never registered"
	}
	return "left"
}
