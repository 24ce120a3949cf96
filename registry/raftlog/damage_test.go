package raftlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sidebeat/sidebeat/registry/raftlog"
)

// filled makes a folder with two snapshots and some log behind them, and gives
// its commands.
func filled(t *testing.T) (folder string, commands []string) {
	t.Helper()
	folder = t.TempDir()
	for run, n := range []int{1500, 1500, 300} { // at the end of a run 1024 are worth a snapshot
		l := start(t, raftlog.Config{Folder: folder})
		for i := range n {
			commands = append(commands, fmt.Sprintf("command-%d-%d", run, i))
		}
		appendAll(t, l, commands[len(commands)-n:])
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
	}
	return folder, commands
}

func appendAll(t *testing.T, l running, commands []string) {
	t.Helper()
	var all sync.WaitGroup
	const writers = 64
	for w := range writers {
		all.Go(func() {
			for i := w; i < len(commands); i += writers {
				if _, err := l.Append(t.Context(), []byte(commands[i])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// files gives every file of the folder that holds something.
func files(t *testing.T, folder string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// opened tells what became of the commands: an error of Open, or nil when all
// of them are there. One that is missing after an Open that did not complain
// fails the test.
func opened(t *testing.T, folder string, commands []string) error {
	t.Helper()
	machine := newToy()
	var said lines
	log, err := raftlog.Open(raftlog.Config{Folder: folder, Log: logger(&said)}, machine)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	if err := log.WaitReady(ctx); err != nil {
		t.Errorf("opened, but not ready: %v", err)
	}
	for _, command := range commands {
		if machine.count(command) != 1 {
			t.Errorf("%s is there %d times although nothing was said: %s", command, machine.count(command), said.String())
			break
		}
	}
	if _, err := log.Append(ctx, []byte("one more")); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return nil
}

// An entry is no command any more when one bit of its type flips, and raft would
// pass over it.
func TestFlippedTypes(t *testing.T) {
	t.Parallel()
	folder, commands := filled(t)
	content, err := os.ReadFile(filepath.Join(folder, "raft.db"))
	if err != nil {
		t.Fatal(err)
	}
	const command = "\xa4Type\x00" // as msgpack writes the field
	refused, at := 0, 0
	for n := 0; ; n++ {
		next := strings.Index(string(content[at:]), command)
		if next < 0 {
			break
		}
		if at += next + len(command); n%150 > 2 {
			continue
		}
		broken := t.TempDir()
		if err := os.CopyFS(broken, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(content)
		flipped[at-1] = 1 << (n % 150)
		if err := os.WriteFile(filepath.Join(broken, "raft.db"), flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if opened(t, broken, commands) != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no entry that lost its type was noticed")
	}
}

// Whatever bit of whatever file flips: Open refuses, or nothing is lost.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	folder, commands := filled(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	refused := map[string]int{}
	for round := range 90 {
		broken := t.TempDir()
		if err := os.CopyFS(broken, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		paths := files(t, broken)
		path := paths[round%len(paths)]
		if round%2 == 0 {
			path = filepath.Join(broken, "raft.db")
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bit := random.IntN(8 * len(content))
		if round%3 == 0 { // pages begin with what holds them together
			bit = 8*(4096*random.IntN(len(content)/4096+1)) + random.IntN(8*min(4096, len(content)))%1024
			bit = min(bit, 8*len(content)-1)
		}
		content[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := opened(t, broken, commands); err != nil {
			refused[filepath.Base(path)]++
			if !strings.Contains(err.Error(), filepath.Base(path)) || !strings.Contains(err.Error(), "move the folder away") {
				t.Errorf("the error does not name %s and say how to go on: %v", path, err)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d round %d: bit %d of %s", seed, round, bit, path)
		}
		os.RemoveAll(broken)
	}
	for _, name := range []string{"raft.db", "state.bin"} {
		if refused[name] == 0 {
			t.Errorf("no flipped bit of %s was noticed", name)
		}
	}
	t.Log("refused:", refused)
}

func TestMissingAndTornFiles(t *testing.T) {
	t.Parallel()
	folder, commands := filled(t)
	newest, older := snapshotsOf(t, folder)
	f := func(name string, spoil func(at string) error, want string) {
		t.Helper()
		broken := t.TempDir()
		if err := os.CopyFS(broken, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(broken, name)); err != nil {
			t.Fatal(err)
		}
		err := opened(t, broken, commands)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	cut := func(left int64) func(string) error {
		return func(path string) error { return os.Truncate(path, left) }
	}
	flip := func(at int64) func(string) error {
		return func(path string) error {
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer file.Close()
			one := make([]byte, 1)
			if _, err := file.ReadAt(one, at); err != nil {
				return err
			}
			one[0] ^= 1
			_, err = file.WriteAt(one, at)
			return err
		}
	}
	// With the other meta page bbolt would go on, and forget the last write.
	f("raft.db", flip(16+56), "raft.db is damaged: meta page 0: its checksum is wrong")
	f("raft.db", flip(4096+16+56), "raft.db is damaged: meta page 1: its checksum is wrong")
	f("raft.db", cut(0), "raft.db is damaged: its head cannot be read")
	f("raft.db", cut(8192), "raft.db is damaged: it was cut off")
	f("raft.db", cut(100_000), "raft.db is damaged: it was cut off")
	f("raft.db", os.Remove, "raft.db is missing although")
	f(newest+"/state.bin", cut(1000), "is damaged: CRC mismatch")
	f(newest+"/state.bin", os.Remove, "state.bin, or the meta.json beside it, is damaged")
	f(newest+"/meta.json", cut(20), "meta.json is damaged")
	f(newest+"/meta.json", os.Remove, "meta.json is damaged")
	f(newest, os.RemoveAll, "raft.db is damaged: it begins with entry")
	f("snapshots", os.RemoveAll, "raft.db is damaged: it begins with entry")
	f(older, os.RemoveAll, "") // one is enough
	f("snapshots/9-9-9.tmp", func(path string) error { return os.Mkdir(path, 0o700) }, "")
	f("lock", os.Remove, "")
}

// snapshotsOf gives the names of the two snapshots within the folder.
func snapshotsOf(t *testing.T, folder string) (newest, older string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(folder, "snapshots"))
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %v %v, want two snapshots", entries, err)
	}
	var index [2]int
	for i, e := range entries {
		if _, err := fmt.Sscanf(e.Name(), "%d-%d-", new(int), &index[i]); err != nil {
			t.Fatal(err)
		}
	}
	if index[0] > index[1] {
		entries[0], entries[1] = entries[1], entries[0]
	}
	return "snapshots/" + entries[1].Name(), "snapshots/" + entries[0].Name()
}

// A crash in the middle of the very first start leaves nothing that counts.
func TestFirstStartInterrupted(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "raft.db.new"), []byte("half a log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := opened(t, folder, nil); err != nil {
		t.Error(err)
	}
}

// A machine that meets a command which is not what was appended ends the log.
func TestDamagedCommandEndsRun(t *testing.T) {
	l := start(t, raftlog.Config{Folder: t.TempDir()})
	result, err := l.Append(t.Context(), []byte("damage"))
	if failure, ok := result.(error); err != nil || !ok || !strings.Contains(failure.Error(), "the toy is broken") {
		t.Errorf("got %v %v, want what is broken", result, err)
	}
	<-l.ended
	if err := l.stop(); err == nil || !strings.Contains(err.Error(), "cannot apply command") || errors.Is(err, context.Canceled) {
		t.Errorf("Run gave %v, want the damage", err)
	}
	if l.Ready() {
		t.Error("a log that ended must not be ready")
	}
}

// A write that fails ends the log with the reason: no panic of raft, which
// cannot stand one, and nobody waits for ever, however often raft loses and
// wins its election meanwhile.
func TestFailedWriteEndsRun(t *testing.T) {
	for range 20 {
		folder := t.TempDir()
		l := start(t, raftlog.Config{Folder: folder})
		if _, err := l.Append(t.Context(), []byte("kept")); err != nil {
			t.Fatal(err)
		}
		if err := l.BreakFile(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), []byte("lost")); err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("got %v, want an unknown outcome", err)
		}
		<-l.ended
		if err := l.stop(); err == nil || !strings.Contains(err.Error(), "cannot write raft.db: database not open") {
			t.Errorf("Run gave %v, want the failed write", err)
		}
		if again := start(t, raftlog.Config{Folder: folder}); again.machine.count("kept") != 1 {
			t.Error("what was acknowledged before is lost")
		}
	}
}
