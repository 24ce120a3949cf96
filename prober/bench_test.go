package prober

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/registry"
)

// fleetOf fills a core with n targets of 500 services.
func fleetOf(n int) *core {
	c := newCore(usualConfig().Probe, scope{}, time.Duration(time.Now().UnixNano()))
	c.observe(tick100, false)
	c.begin(tick100)
	for from := 0; from < n; from += 500 {
		page := registry.Page{}
		for i := from; i < min(from+500, n); i++ {
			in := instance(i)
			in.Name = fmt.Sprintf("orders-%d", i%500)
			in.IP = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
			page.Instances = append(page.Instances, in)
		}
		c.page(tick100, page)
	}
	c.finish(tick100, nil)
	return c
}

// What it costs to find who is due, to take a question and to settle its
// answer, at 100 000 targets that are all well.
func BenchmarkSchedule(b *testing.B) {
	c := fleetOf(100_000)
	now := tick100
	answer := check.Answer{Kind: check.Well, Reason: "connected", Took: time.Millisecond}
	b.ReportAllocs()
	b.ResetTimer()
	for asked := 0; asked < b.N; now += 2 * time.Millisecond {
		for waiting, _ := c.tick(now); waiting > 0 && asked < b.N; waiting-- {
			j, _ := c.take(now)
			c.settle(now, j, answer)
			asked++
		}
	}
}

// A listing of 100 000 targets without any news.
func BenchmarkListing(b *testing.B) {
	store := registry.NewStore()
	for i := range 100_000 {
		in := instance(i)
		in.IP = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
		in.Name = fmt.Sprintf("orders-%d", i%500)
		if err := store.Register(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	p, err := New(usualConfig(), store, &network{}, quietLog())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.listOnce(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Bytes of heap for each target, history filled, beside what the registry
// gives. It must not grow as time goes by either.
func TestMemoryOfATarget(t *testing.T) {
	const n, most = 100_000, 400
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	c := fleetOf(n)
	round := func(from time.Duration) {
		for now := from; now < from+20*time.Second; now += 100 * time.Millisecond {
			for waiting, _ := c.tick(now); waiting > 0; waiting-- {
				j, _ := c.take(now)
				c.settle(now, j, check.Answer{Kind: check.Well, Reason: fmt.Sprint("took it ", now%7), Took: time.Millisecond})
			}
		}
	}
	for i := range time.Duration(5) {
		round(i * 20 * time.Second)
	}
	early := used()
	for i := range time.Duration(5) {
		round((i + 5) * 20 * time.Second)
	}
	late := used()
	each := (late - before) / n
	t.Logf("%d bytes a target", each)
	if each > most || late > early+early/20 {
		t.Errorf("%d bytes a target, want %d at most; %d bytes after five periods, %d after ten", each, most, early, late)
	}
	runtime.KeepAlive(c)
}

// probesPerCPU reports how many times do succeeds in a second of CPU time of
// the whole process, the target's included, with 100 at a time.
func probesPerCPU(b *testing.B, do func(context.Context, string, uint16) bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	var failed atomic.Int64
	b.SetParallelism(50)
	start := cpuTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ctx, cancel := context.WithTimeout(context.Background(), 3200*time.Millisecond)
			if !do(ctx, "127.0.0.1", port) {
				failed.Add(1)
			}
			cancel()
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/(cpuTime()-start).Seconds(), "probes/cpu-s")
	if failed.Load() > 0 {
		b.Errorf("%d of %d failed", failed.Load(), b.N)
	}
}

func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func BenchmarkProbeAsker(b *testing.B) {
	asker := check.NewAsker(netpolicy.Prober(true))
	defer asker.Close()
	probesPerCPU(b, func(ctx context.Context, host string, port uint16) bool {
		return asker.Ask(ctx, check.TCP(host, port)).Kind == check.Well
	})
}

func BenchmarkProbeDialer(b *testing.B) {
	var dialer net.Dialer
	probesPerCPU(b, func(ctx context.Context, host string, port uint16) bool {
		conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}
