package raftlog_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/raftlog"
)

// smallDisk mounts a disk of the size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("needs a small disk, and mounting one needs root:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error("cannot unmount:", err)
		}
	})
	return at
}

// fill leaves so many bytes free on the disk and gives what makes room again.
func fill(t *testing.T, disk string, leave uint64) (empty func()) {
	t.Helper()
	path := filepath.Join(disk, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var st unix.Statfs_t
	if err := unix.Statfs(disk, &st); err != nil {
		t.Fatal(err)
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-int64(leave))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// until appends again and again until the log answers as wanted; the gate
// looks at the disk only now and then.
func until(t *testing.T, l running, command []byte, wanted func(error) bool) {
	t.Helper()
	for {
		if _, err := l.Append(t.Context(), command); wanted(err) {
			return
		}
	}
}

func refusedForRoom(err error) bool { return errors.Is(err, registry.ErrUnavailable) }
func taken(err error) bool          { return err == nil }

func TestNearlyFullDiskRefusesWrites(t *testing.T) {
	disk := smallDisk(t, "128m")
	folder := filepath.Join(disk, "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l := start(t, raftlog.Config{Folder: folder})
	until(t, l, []byte("before"), taken)
	empty := fill(t, disk, 60<<20) // the gate shuts under 64 MiB
	until(t, l, []byte("while"), refusedForRoom)
	if l.Writable() == nil || !l.Ready() {
		t.Error("a nearly full disk must keep writes out and nothing else")
	}
	before := l.machine.count("while")
	if _, err := l.Append(t.Context(), []byte("while")); !refusedForRoom(err) {
		t.Errorf("got %v, want the refusal to stay", err)
	}
	if l.machine.count("while") != before {
		t.Error("what was refused must not be applied")
	}
	empty()
	until(t, l, []byte("after"), taken)
	said := l.lines.String()
	if strings.Count(said, "the disk is nearly full") != 1 || strings.Count(said, "the disk has room again") != 1 || strings.Count(said, "\n") != 2 {
		t.Errorf("want one line at each change, got:\n%s", said)
	}
}

// flooded fills the disk between two looks of the gate, while a command is on
// its way, and gives what becomes of that command.
func flooded(t *testing.T, l running, disk string) (onItsWay <-chan error, empty func()) {
	t.Helper()
	big := bytes.Repeat([]byte("x"), 1<<20)
	for {
		until(t, l, []byte("look"), taken)
		empty := fill(t, disk, 0)
		ended := make(chan error, 1)
		go func() {
			_, err := l.Append(context.Background(), big)
			ended <- err
		}()
		for l.Writable() == nil {
			runtime.Gosched()
		}
		if strings.Contains(l.lines.String(), "the disk is full") {
			return ended, empty
		}
		empty() // the gate was quicker
		<-ended
	}
}

// Somebody else fills the disk between two looks: raft waits for room instead
// of stepping down or panicking, and goes on.
func TestFullDiskIsKeptFromRaft(t *testing.T) {
	disk := smallDisk(t, "48m")
	folder := filepath.Join(disk, "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l := start(t, raftlog.Config{Folder: folder, MinFree: 1})
	onItsWay, empty := flooded(t, l, disk)
	if _, err := l.Append(t.Context(), []byte("while")); !refusedForRoom(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	empty()
	if err := <-onItsWay; err != nil {
		t.Errorf("what was on its way came to %v", err)
	}
	until(t, l, []byte("after"), taken)
	if !l.Ready() || strings.Contains(l.lines.String(), "reports a fault") {
		t.Errorf("raft has met the full disk:\n%s", l.lines)
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, raftlog.Config{Folder: folder, MinFree: 1})
	if again.machine.count("after") != 1 {
		t.Error("what was appended after the disk had been full is lost")
	}
}

// A disk that is full when the log is told to end does not hold it up.
func TestStopOnFullDisk(t *testing.T) {
	disk := smallDisk(t, "48m")
	folder := filepath.Join(disk, "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l := start(t, raftlog.Config{Folder: folder, MinFree: 1})
	onItsWay, _ := flooded(t, l, disk)
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	if err := <-onItsWay; err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("got %v for what was on its way, want an unknown outcome", err)
	}
}
