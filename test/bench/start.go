package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

const persistentInstances = 100_000

// start measures from exec to the first answer: empty, with many persistent
// instances after an orderly stop, and with the same after kill -9.
func (b *bench) start(ctx context.Context) error {
	var empty []float64
	for i := range b.rounds {
		p, _, took, err := b.startRegistry(ctx, fmt.Sprintf("%s/empty-%d", b.temp, i))
		if err != nil {
			return err
		}
		p.stop(15)
		empty = append(empty, took.Seconds()*1000)
	}
	report("start to serving, empty, ms", fmt.Sprintf("%.0f", median(empty)), "aim under 100")

	data := b.temp + "/full"
	p, address, _, err := b.startRegistry(ctx, data)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := registerMany(ctx, address); err != nil {
		return err
	}
	report("durable registrations/s, 256 at once", fmt.Sprintf("%.0f", persistentInstances/time.Since(began).Seconds()), "")
	p.stop(9)
	for _, end := range []struct {
		after  string
		signal int
	}{{"kill -9", 9}, {"SIGTERM", 15}} {
		var full []float64
		for range 5 {
			p, _, took, err := b.startRegistry(ctx, data)
			if err != nil {
				return err
			}
			p.stop(sig(end.signal))
			full = append(full, took.Seconds()*1000)
		}
		report(fmt.Sprintf("start to serving, %d persistent, after %s, ms", persistentInstances, end.after), fmt.Sprintf("%.0f", median(full)), "aim under 1000")
	}
	return nil
}

func registerMany(ctx context.Context, address string) error {
	var mu sync.Mutex
	var failed error
	run.Each(ctx, 256, 256, func(_ context.Context, w int) {
		for i := w; i < persistentInstances; i += 256 {
			err := register(address, fmt.Sprintf("persistent-%d", i/10), fmt.Sprintf("10.%d.%d.%d", 2+i/62500, i/250%250, 1+i%250), 9000, false)
			if err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
				return
			}
		}
	})
	return failed
}
