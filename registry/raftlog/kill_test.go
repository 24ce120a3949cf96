package raftlog_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/sidebeat/sidebeat/registry/raftlog"
)

const childFolder = "RAFTLOG_TEST_FOLDER"

// TestMain makes the test binary its own child: with a folder in the
// environment it appends commands until it is killed.
func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		fmt.Fprintln(os.Stderr, appendForever(folder))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendForever prints each command that was acknowledged; 32 writers append at
// once, so that the kill meets group commits.
func appendForever(folder string) error {
	ctx := context.Background()
	log, err := raftlog.Open(raftlog.Config{Folder: folder, Log: logger(io.Discard)}, newToy())
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { err = log.Run(ctx) })
	if err := log.WaitReady(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	for w := range 32 {
		all.Go(func() {
			for i := 0; ; i++ {
				command := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if _, err := log.Append(ctx, []byte(command)); err != nil {
					return
				}
				os.Stdout.WriteString(command + "\n") // one write a line: never torn
			}
		})
	}
	all.Wait()
	return err
}

// killed runs a child until it has acknowledged some commands, kills it, and
// gives what it has acknowledged. With after < 0 it is killed as soon as it
// has opened its pipe, in the middle of its start.
func killed(t *testing.T, folder string, after int) (acknowledged []string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+folder)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaint strings.Builder
	child.Stderr = &complaint
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for after >= 0 && scanner.Scan() {
		if scanner.Text() != "ready" {
			acknowledged = append(acknowledged, scanner.Text())
		}
		if len(acknowledged) >= after {
			break
		}
	}
	child.Process.Kill()
	for scanner.Scan() {
		if scanner.Text() != "ready" {
			acknowledged = append(acknowledged, scanner.Text())
		}
	}
	if child.Wait(); child.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %s", complaint.String())
	}
	return acknowledged
}

// Everything that was acknowledged before a SIGKILL is there after it, whatever
// it interrupted: the first start, appends, snapshots, starts.
func TestKill9(t *testing.T) {
	t.Parallel()
	const rounds = 30
	folder := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acknowledged := map[string]bool{}
	for round := range rounds {
		after := random.IntN(1500)
		if round%5 == 0 {
			after = -1
		}
		for _, command := range killed(t, folder, after) {
			acknowledged[command] = true
		}
		if round%10 == 9 {
			l := start(t, raftlog.Config{Folder: folder})
			missing := 0
			for command := range acknowledged {
				if l.machine.count(command) != 1 {
					missing++
				}
			}
			if missing > 0 {
				t.Fatalf("round %d: %d of %d acknowledged commands are not there once", round, missing, len(acknowledged))
			}
			if err := l.stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d commands acknowledged", len(acknowledged))
}
