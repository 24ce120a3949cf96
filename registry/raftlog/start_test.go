package raftlog_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/raftlog"
)

// openStore opens a store over the log of a folder and waits until it may be
// served; close ends it in order.
func openStore(tb testing.TB, folder string) (store *registry.Store, close func()) {
	tb.Helper()
	store = registry.NewStore()
	log, err := raftlog.Open(raftlog.Config{Folder: folder, Log: logger(io.Discard)}, store)
	if err != nil {
		tb.Fatal(err)
	}
	store.UseLog(log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	if err := log.WaitReady(ctx); err != nil {
		tb.Fatal(err)
	}
	return store, func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	}
}

// register registers n persistent instances, 50 a service.
func register(tb testing.TB, store *registry.Store, n int) {
	tb.Helper()
	const writers = 256
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				service := registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: fmt.Sprintf("service-%d", i/50)}
				err := store.Register(context.Background(), registry.Instance{
					Key:    registry.Key{Service: service, Cluster: "DEFAULT", IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Port: 8080},
					Weight: 1, Enabled: true, Healthy: true, Metadata: map[string]string{"zone": "a", "version": "1.2.3"},
				})
				if err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// The store and the log understand each other, over a snapshot and over
// commands that are replayed.
func TestStoreOverTheLog(t *testing.T) {
	folder := t.TempDir()
	const first, second = 2000, 2300 // the end of a run is worth a snapshot, then it is not
	for _, n := range []int{first, second} {
		store, end := openStore(t, folder)
		register(t, store, n)
		end()
	}
	store, end := openStore(t, folder)
	defer end()
	if got := store.Counts().Persistent; got != second {
		t.Errorf("%d of %d instances are there again", got, second)
	}
}

// BenchmarkStart gives the time from opening the folder to serving: empty, with
// 100 000 persistent instances after an ordered end, and after a kill that
// leaves as many commands in the log as there can be.
func BenchmarkStart(b *testing.B) {
	empty, ended, killed := b.TempDir(), b.TempDir(), b.TempDir()
	store, end := openStore(b, ended)
	register(b, store, 100_000)
	copyFolder(b, ended, killed) // a copy of the files is what a kill leaves
	end()
	for name, folder := range map[string]string{"empty": empty, "100000-ended": ended, "100000-killed": killed} {
		b.Run(name, func(b *testing.B) {
			var used time.Duration
			for b.Loop() {
				b.StopTimer()
				fresh := b.TempDir()
				copyFolder(b, folder, fresh)
				runtime.GC()
				before := processorTime(b)
				b.StartTimer()
				_, end := openStore(b, fresh)
				b.StopTimer()
				used += processorTime(b) - before
				end()
				b.StartTimer()
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/start")
			b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/start")
		})
	}
}

// processorTime is what this process has used; on a busy machine it tells more
// than the time that passed.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func copyFolder(tb testing.TB, from, to string) {
	tb.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		tb.Fatal(err)
	}
}
