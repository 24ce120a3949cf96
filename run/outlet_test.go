package run

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

func pipe(t *testing.T) (from, to *os.File) {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close(); to.Close() })
	return from, to
}

// sirupsen/logrus#1201: a reader that stops holds nobody up, and one that goes
// on gets what waited, whole and in order.
func TestOutletIsNotHeldUpByItsReader(t *testing.T) {
	from, to := pipe(t)
	o := NewOutlet(to)
	start := time.Now()
	const lines = 10000
	for i := range lines {
		if n, err := fmt.Fprintf(o, "%04d %s\n", i, strings.Repeat("x", 94)); n != 100 || err != nil {
			t.Fatalf("got %d %v, want 100 bytes written", n, err)
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v for %d lines that nobody read", took, lines)
	}
	lost := o.Lost()
	if lost < lines/2 || lost >= lines {
		t.Errorf("%d of %d lines are lost, want what a pipe and the outlet do not hold", lost, lines)
	}
	read := bufio.NewScanner(from)
	for i := range lines - int(lost) {
		if !read.Scan() || read.Text() != fmt.Sprintf("%04d %s", i, strings.Repeat("x", 94)) {
			t.Fatalf("got line %q, want the %d. one", read.Text(), i)
		}
	}
	// Now that it takes all again, a line is written when Write returns.
	for i := range 100 {
		fmt.Fprintf(o, "again %d\n", i)
	}
	from.SetReadDeadline(time.Now().Add(5 * time.Second))
	for i := range 100 {
		if !read.Scan() || read.Text() != fmt.Sprintf("again %d", i) {
			t.Fatalf("got line %q %v", read.Text(), read.Err())
		}
	}
	if now := o.Lost(); now != lost {
		t.Errorf("%d lines are lost now, %d before", now, lost)
	}
}

func TestOutletWritesBeforeItReturns(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := NewOutlet(file)
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for range 200 {
				o.Write([]byte("line\n"))
			}
		})
	}
	writing.Wait()
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != strings.Repeat("line\n", 800) {
		t.Errorf("got %d bytes %v, want 800 lines", len(text), err)
	}
}

func TestOutletCountsWhatTheFileRefuses(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	o := NewOutlet(full)
	for range 3 {
		if n, err := o.Write([]byte("line\n")); n != 5 || err != nil {
			t.Errorf("got %d %v", n, err)
		}
	}
	if o.Lost() != 3 {
		t.Errorf("%d lines are lost, want 3", o.Lost())
	}
}

// The test binary runs itself: a process whose standard error nobody reads any
// more goes on.
func TestNobodyReadsStandardError(t *testing.T) {
	if os.Getenv("RUN_TEST_EPIPE") != "" {
		_, stop := UntilSignal(t.Context())
		defer stop()
		o := NewOutlet(os.Stderr)
		for range 3 {
			o.Write([]byte("line\n"))
		}
		fmt.Printf("lost %d\n", o.Lost())
		os.Exit(0)
	}
	from, to := pipe(t)
	from.Close()
	child := exec.Command(os.Args[0], "-test.run=^TestNobodyReadsStandardError$")
	child.Env = append(os.Environ(), "RUN_TEST_EPIPE=1")
	child.Stderr = to
	if out, err := child.Output(); err != nil || string(out) != "lost 3\n" {
		t.Errorf("got %q %v, want it to go on", out, err)
	}
}
