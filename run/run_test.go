package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAllStopsTheRestAndJoinsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		stopped := 0
		err := All(t.Context(),
			func(ctx context.Context) error { <-ctx.Done(); stopped++; return ctx.Err() },
			func(ctx context.Context) error { return errors.Join(Wait(ctx, time.Second), broken) },
		)
		if !errors.Is(err, broken) || errors.Is(err, context.Canceled) || stopped != 1 {
			t.Errorf("got %v with %d stopped, want only the part's own error and the other stopped", err, stopped)
		}
	})
}

func TestAllOfACancelledContextIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := All(ctx, func(ctx context.Context) error { return Wait(ctx, time.Hour) }); err != nil {
		t.Error(err)
	}
}

func TestEveryKeepsItsPhaseAndDoesNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 62*time.Second)
		defer cancel()
		var at []time.Duration
		err := Every(ctx, 3*time.Second, 10*time.Second, func(ctx context.Context) {
			at = append(at, time.Since(start))
			if len(at) == 2 {
				Wait(ctx, 25*time.Second)
			}
		})
		want := []time.Duration{3 * time.Second, 13 * time.Second, 38 * time.Second, 43 * time.Second, 53 * time.Second}
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(at, want) {
			t.Errorf("got %v at %v, want %v", err, at, want)
		}
	})
}

func TestEachBoundsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		Each(t.Context(), 10, 3, func(ctx context.Context, _ int) { Wait(ctx, time.Second) })
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("10 jobs of 1 s, 3 at a time, took %v, want 4s", took)
		}
	})
}

func TestWaitOr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bell := NewBell()
		bell.Ring()
		bell.Ring() // merged with the one before
		if rung, err := WaitOr(t.Context(), time.Hour, bell); !rung || err != nil {
			t.Errorf("got %v %v, want a rung bell", rung, err)
		}
		if rung, err := WaitOr(t.Context(), time.Hour, bell); rung || err != nil {
			t.Errorf("got %v %v, want the time to pass", rung, err)
		}
	})
}

// The test binary runs itself: the child ends its context at the first signal
// and is in the middle of something until its input ends.
func TestSignals(t *testing.T) {
	if os.Getenv("RUN_TEST_SIGNALS") != "" {
		ctx, stop := UntilSignal(context.Background())
		defer stop()
		hangups := make(chan os.Signal, 2)
		signal.Notify(hangups, syscall.SIGHUP)
		os.Stdout.WriteString("ready\n")
		<-ctx.Done()
		os.Stdout.WriteString("draining\n")
		go func() { <-hangups; <-hangups; os.Stdout.WriteString("hung up twice\n") }()
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	// Whoever runs the tests under nohup has hang-ups ignored; what is caught here
	// is no longer ignored there.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	f := func(code int, signals ...syscall.Signal) {
		t.Helper()
		child := exec.Command(os.Args[0], "-test.run=^TestSignals$")
		child.Env = append(os.Environ(), "RUN_TEST_SIGNALS=1")
		in, inErr := child.StdinPipe()
		out, outErr := child.StdoutPipe()
		if err := errors.Join(inErr, outErr, child.Start()); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 64)
		for i, want := range []string{"ready\n", "draining\n"} {
			n, err := out.Read(line)
			if err != nil || string(line[:n]) != want {
				t.Errorf("%v: got %q %v, want %q", signals, line[:n], err, want)
			}
			if i < len(signals) {
				child.Process.Signal(signals[i])
			}
		}
		if code == 0 {
			if slices.Equal(signals, []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}) {
				out.Read(line) // that it has heard the second
			}
			in.Close()
		}
		child.Wait()
		if got := child.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: got exit code %d, want %d", signals, got, code)
		}
	}
	f(0, syscall.SIGTERM)
	f(0, syscall.SIGINT)
	f(0, syscall.SIGQUIT)
	f(0, syscall.SIGHUP)
	f(130, syscall.SIGTERM, syscall.SIGTERM) // a second one leaves at once
	f(130, syscall.SIGHUP, syscall.SIGINT)
	f(0, syscall.SIGHUP, syscall.SIGHUP) // a closing terminal sends two
}

// Under nohup a closing terminal ends nothing.
func TestIgnoredHangupStaysIgnored(t *testing.T) {
	if os.Getenv("RUN_TEST_NOHUP") != "" {
		ctx, stop := UntilSignal(context.Background())
		defer stop()
		syscall.Kill(os.Getpid(), syscall.SIGHUP)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-ctx.Done()
		os.Exit(map[bool]int{true: 0, false: 1}[signal.Ignored(syscall.SIGHUP)])
	}
	child := exec.Command("/bin/sh", "-c", `trap "" HUP; exec "$0" -test.run=^TestIgnoredHangupStaysIgnored$`, os.Args[0])
	child.Env = append(os.Environ(), "RUN_TEST_NOHUP=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
