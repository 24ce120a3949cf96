package raftlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/raftlog"
)

func TestWhatWasAppendedIsThereAgain(t *testing.T) {
	folder := t.TempDir()
	l := start(t, raftlog.Config{Folder: folder})
	for want := 1; want <= 3; want++ {
		if got, err := l.Append(t.Context(), []byte("a")); err != nil || got != want {
			t.Fatalf("got %v %v, want %d", got, err, want)
		}
	}
	if got, err := l.Append(t.Context(), []byte("refuse")); err != nil || fmt.Sprint(got) != "refused" {
		t.Errorf("got %v %v, want what the machine answered", got, err)
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, raftlog.Config{Folder: folder})
	if got := again.machine.count("a"); got != 3 {
		t.Errorf("%d of 3 commands are there again", got)
	}
	if text := l.lines.String() + again.lines.String(); strings.Contains(text, "level=") {
		t.Errorf("a healthy log writes nothing at info, but wrote:\n%s", text)
	}
}

func TestEmptyStartIsQuick(t *testing.T) {
	quickest := time.Hour
	for range 5 {
		began := time.Now()
		l := start(t, raftlog.Config{Folder: t.TempDir()})
		quickest = min(quickest, time.Since(began))
		l.stop()
	}
	if quickest > 700*time.Millisecond { // raft's own election takes 1 to 2 s
		t.Errorf("an empty log was ready after %v: it waited for an election", quickest)
	}
}

// Commands that come together share their way to the disk, and snapshots keep
// the log short: a start replays little.
func TestManyAtOnceThenShort(t *testing.T) {
	folder := t.TempDir()
	l := start(t, raftlog.Config{Folder: folder})
	commands := make([]string, 10_000)
	for i := range commands {
		commands[i] = fmt.Sprintf("%d %0200d", i, 0)
	}
	appendAll(t, l, commands)
	if got, _ := l.machine.has(); got != len(commands) {
		t.Errorf("%d of %d are applied", got, len(commands))
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, raftlog.Config{Folder: folder})
	if got, replayed := again.machine.has(); got != len(commands) || replayed != 0 {
		t.Errorf("%d of %d are there again, %d of them replayed; want all from the snapshot", got, len(commands), replayed)
	}
}

func TestSnapshotWithoutAnEnd(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	acknowledged := killed(t, folder, 12_000)
	l := start(t, raftlog.Config{Folder: folder})
	got, replayed := l.machine.has()
	if got < len(acknowledged) || replayed > got-8192 {
		t.Errorf("%d of %d are there, %d of them replayed; want a snapshot while commands came", got, len(acknowledged), replayed)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	folder := t.TempDir()
	start(t, raftlog.Config{Folder: folder})
	_, err := raftlog.Open(raftlog.Config{Folder: folder, Log: logger(io.Discard)}, newToy())
	if want := fmt.Sprintf("%s: it is in use by another process (pid %d)", folder, os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestFolderThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir() + "/absent"
	_, err := raftlog.Open(raftlog.Config{Folder: folder, Log: logger(io.Discard)}, newToy())
	if err == nil || !strings.Contains(err.Error(), "cannot write to it") {
		t.Errorf("got %v, want that %s cannot be written to", err, folder)
	}
}

func TestAppendObeysItsContext(t *testing.T) {
	l := start(t, raftlog.Config{Folder: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, []byte("never")); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "unknown") {
		t.Errorf("got %v, want a command that was surely not taken", err)
	}
	if err := l.WaitReady(ctx); err != nil {
		t.Errorf("a ready log has nothing to wait for, but got %v", err)
	}

	l.machine.mu.Lock() // holds up whatever is being applied
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := l.Append(ctx, []byte("late"))
		ended <- err
	}()
	for !l.InFlight() {
		runtime.Gosched()
	}
	cancel()
	err := <-ended
	l.machine.mu.Unlock()
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "outcome is unknown") {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	if _, err := l.Append(t.Context(), []byte("next")); err != nil {
		t.Error(err)
	}
	if l.machine.count("never") != 0 || l.machine.count("late") != 1 {
		t.Errorf("applied never %d times and late %d times, want 0 and 1", l.machine.count("never"), l.machine.count("late"))
	}
}

func TestNotReadyIsUnavailable(t *testing.T) {
	log, err := raftlog.Open(raftlog.Config{Folder: t.TempDir(), Log: logger(io.Discard)}, newToy())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), []byte("a")); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("got %v before Run, want that it is unavailable", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}

	l := start(t, raftlog.Config{Folder: t.TempDir()})
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), []byte("a")); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("got %v after Run, want that it is unavailable", err)
	}
	if err := l.WaitReady(t.Context()); err == nil {
		t.Error("a log that has ended will never be ready")
	}
}

// Whatever is on its way when the log ends is answered, one way or the other,
// and what was acknowledged is kept.
func TestStopAnswersEverybody(t *testing.T) {
	folder := t.TempDir()
	l := start(t, raftlog.Config{Folder: folder})
	var acknowledged sync.Map
	var all sync.WaitGroup
	started := make(chan struct{}, 2000)
	for w := range 600 { // more than may be in flight
		all.Go(func() {
			for i := 0; ; i++ {
				command := fmt.Sprintf("%d-%d", w, i)
				if _, err := l.Append(context.Background(), []byte(command)); err != nil {
					return
				}
				acknowledged.Store(command, true)
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 1500 {
		<-started
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	again := start(t, raftlog.Config{Folder: folder})
	acknowledged.Range(func(command, _ any) bool {
		if again.machine.count(command.(string)) != 1 {
			t.Errorf("%v was acknowledged, but is not there once", command)
		}
		return !t.Failed()
	})
}
