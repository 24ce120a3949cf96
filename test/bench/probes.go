package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/run"
)

const (
	probeWorkers = 256
	probeRound   = 20_000
	probeTargets = 50
)

// probes compares the product's TCP question with net.Dialer in a loop, both
// against a process that accepts and closes.
func (b *bench) probes(ctx context.Context) error {
	target, err := self(ctx, "targets")
	if err != nil {
		return err
	}
	defer target.stop(9)
	port, err := target.line(ctx)
	if err != nil {
		return err
	}
	listening, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	asker := check.NewAsker(netpolicy.Policy{})
	defer asker.Close()
	ours := func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, 3200*time.Millisecond)
		defer cancel()
		if a := asker.Ask(ctx, check.TCP(probeAddress(i), uint16(listening))); a.Kind != check.Well {
			return errors.New(a.Reason)
		}
		return nil
	}
	dialer := net.Dialer{Timeout: 3200 * time.Millisecond}
	theirs := func(ctx context.Context, i int) error {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(probeAddress(i), port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	var ratios, own []float64
	for range b.rounds + 1 {
		dialed, err := perProbe(ctx, theirs)
		if err != nil {
			return err
		}
		asked, err := perProbe(ctx, ours)
		if err != nil {
			return err
		}
		ratios, own = append(ratios, float64(dialed)/float64(asked)), append(own, float64(asked))
	}
	report("TCP probes/CPU-s, of net.Dialer in a loop", spread(ratios[1:]), "aim 1.3")
	report("TCP probes/CPU-s", fmt.Sprintf("%.0f", 1e9/median(own[1:])), "")
	return nil
}

// perProbe asks many times from many goroutines and gives the CPU of each.
func perProbe(ctx context.Context, ask func(context.Context, int) error) (time.Duration, error) {
	before := ownCPU()
	var mu sync.Mutex
	var failed error
	run.Each(ctx, probeWorkers, probeWorkers, func(ctx context.Context, w int) {
		for i := w; i < probeRound; i += probeWorkers {
			if err := ask(ctx, i); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
				return
			}
		}
	})
	return (ownCPU() - before) / probeRound, failed
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// probeAddress spreads the probes over the loopback network, so that neither
// side runs out of ports.
func probeAddress(i int) string {
	return netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i%probeTargets)}).String()
}

// targets accepts and closes at once, on one port of many loopback addresses.
func targets() int {
	first, err := net.Listen("tcp4", net.JoinHostPort(probeAddress(0), "0"))
	if err != nil {
		return 1
	}
	_, port, _ := net.SplitHostPort(first.Addr().String())
	listeners := []net.Listener{first}
	for i := 1; i < probeTargets; i++ {
		ln, err := net.Listen("tcp4", net.JoinHostPort(probeAddress(i), port))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		listeners = append(listeners, ln)
	}
	fmt.Println(port)
	run.Each(context.Background(), len(listeners), len(listeners), func(_ context.Context, i int) {
		for {
			conn, err := listeners[i].Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	})
	return 1
}
