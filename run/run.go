// Package run is how work is started, paced and stopped. It is the only place
// of the product with timers and go statements: every part elsewhere is one
// blocking function of a context that returns when its own work has ended.
package run

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Part is something that runs until its context ends or it fails. It returns
// after all it started has ended.
type Part = func(context.Context) error

// All runs the parts side by side. The first to end stops the others; All
// returns when every one has returned, with their errors joined. A part that
// ends because the context ended, and says so, has not failed.
func All(ctx context.Context, parts ...Part) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer stop()
			if err := part(ctx); !errors.Is(err, context.Canceled) || ctx.Err() == nil {
				errs[i] = err
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Each runs do(ctx, i) for every i in [0, n), at most limit at a time, and
// returns when all have returned. When the context ends no further one starts.
func Each(ctx context.Context, n, limit int, do func(ctx context.Context, i int)) {
	var running sync.WaitGroup
	places := make(chan struct{}, max(limit, 1))
	for i := range n {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-places }()
			do(ctx, i)
		})
	}
	running.Wait()
}

// Wait returns nil after d, or the context's error as soon as it ends.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitOr is Wait that a bell can cut short; rung tells that it did.
func WaitOr(ctx context.Context, d time.Duration, bell Bell) (rung bool, err error) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, ctx.Err()
	case <-bell:
		return true, ctx.Err()
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Every calls do after first, and then once a period, counted from when it was
// due and not from when it ended, so that it does not drift. Calls never
// overlap; a call that took longer than a period makes the missed ones fall
// out. It returns the context's error when that ends.
func Every(ctx context.Context, first, period time.Duration, do func(context.Context)) error {
	due := time.Now().Add(first)
	for {
		if err := Wait(ctx, time.Until(due)); err != nil {
			return err
		}
		do(ctx)
		due = due.Add(period)
		if late := time.Since(due); late > 0 {
			due = due.Add(late.Truncate(period))
		}
	}
}

// Bell wakes one waiter; rings that nobody hears yet are merged into one.
type Bell chan struct{}

// NewBell returns a bell that has not been rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring never blocks.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// UntilSignal returns a context that ends at the first SIGTERM, SIGINT, SIGQUIT
// or SIGHUP: whoever ends us, by a stop signal of an image or by closing a
// terminal, what has to be given up is given up (apache/dubbo-go#3107). At the
// second one the process leaves at once with exit code 130, whatever it is in
// the middle of; SIGHUP, of which a closing terminal may send two, does not
// count as a second one, and stays ignored where it was, as under nohup.
//
// From then on nobody reading what we write is an error of the write and no
// longer the end of the process. Call stop to give the signals back.
func UntilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, unread := make(chan os.Signal, 8), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(unread, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		defer cancel()
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		for {
			select {
			case again := <-signals:
				if again != syscall.SIGHUP {
					os.Exit(130)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		signal.Stop(unread)
		close(done)
	})
}
