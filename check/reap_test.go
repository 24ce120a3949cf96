//go:build linux

package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// The test binary runs itself as PID 1 of a new PID namespace, as an agent in
// a container without an init.
func TestReapAsPID1(t *testing.T) {
	if os.Getenv("CHECK_TEST_PID1") != "" {
		asPID1(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestReapAsPID1$")
	child.Env = append(os.Environ(), "CHECK_TEST_PID1=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := child.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("no new PID namespace is permitted here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "zombies left: 0") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(strings.TrimSpace(string(out)))
}

// asPID1 asks while Reap runs, and then waits until nobody is left.
func asPID1(t *testing.T) {
	if os.Getpid() != 1 {
		t.Fatalf("got PID %d, want 1", os.Getpid())
	}
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reaped := make(chan error, 1)
	go func() { reaped <- Reap(ctx) }()
	most := askAsPID1(t)
	left := orphans()
	for deadline := time.Now().Add(10 * time.Second); left > 0 && time.Now().Before(deadline); left = orphans() {
		runtime.Gosched()
	}
	cancel()
	if err := <-reaped; !errors.Is(err, context.Canceled) {
		t.Errorf("Reap returned %v", err)
	}
	fmt.Printf("zombies at once: %d, zombies left: %d\n", most, left)
}

// orphans counts the processes of the namespace, dead or alive, but ourselves.
func orphans() int { return processes(func(string, int) bool { return true }) - 1 }

// askAsPID1 asks 200 rounds of programs that leave orphans, and tells how many
// zombies were seen at once.
func askAsPID1(t *testing.T) (most int64) {
	a := NewAsker(netpolicy.Policy{})
	defer a.Close()
	var seen atomic.Int64
	var asking sync.WaitGroup
	for worker := range 4 {
		asking.Go(func() {
			for round := range 50 {
				code := 1 + (worker*50+round)%100
				// One orphan dies before its parent, one with it, one later.
				script := fmt.Sprintf("(true &); (sleep 0.02 >/dev/null 2>&1 &); (sleep 0.1 >/dev/null 2>&1 &); exit %d", code)
				expect(t, a, sh(script), Sick, fmt.Sprintf("exit %d", code))
				zombies := int64(processes(func(state string, _ int) bool { return state == "Z" }))
				seen.Store(max(seen.Load(), zombies))
			}
		})
	}
	asking.Wait()
	expect(t, a, sh("trap '' TERM; sleep 300 & sleep 300")+"#timeout=200ms", Sick, "timeout after 200ms")
	return seen.Load()
}
