package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
)

// said prints what a server's log is told.
type said struct{}

func (said) Printf(string, ...any) {}

func (said) Shortage(cause error) { fmt.Println("shortage:", cause) }

// serveWithFewFiles is the child: a server that has room for a few connections.
func serveWithFewFiles() error {
	ctx, stop := UntilSignal(context.Background())
	defer stop()
	ln, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	few := syscall.Rlimit{Cur: 24, Max: 24}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		return err
	}
	return Serve(ctx, ln, &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("alive") }, Logger: said{}, ReadTimeout: time.Minute, IdleTimeout: time.Minute,
	})
}

// askOn asks on a connection and gives the last line of the answer.
func askOn(conn net.Conn) string {
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil {
		return err.Error()
	}
	return string(answer[max(n-5, 0):n])
}

// fewFiles starts the child and gives its lines after the first, its address.
func fewFiles(t *testing.T) (child *exec.Cmd, lines *bufio.Scanner, address string) {
	t.Helper()
	child = exec.Command(os.Args[0], "-test.run=^TestServeOutlivesAShortageOfFiles$")
	child.Env = append(os.Environ(), "RUN_TEST_FEW_FILES=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill() })
	lines = bufio.NewScanner(out)
	lines.Scan()
	return child, lines, lines.Text()
}

// A server without a file left for one more connection goes on with those that
// it has, says so once, takes others as soon as there is room, and can be
// stopped meanwhile. The test binary runs itself.
func TestServeOutlivesAShortageOfFiles(t *testing.T) {
	if os.Getenv("RUN_TEST_FEW_FILES") != "" {
		if err := serveWithFewFiles(); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	child, lines, address := fewFiles(t)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := dial()
	defer first.Close()
	if got := askOn(first); got != "alive" {
		t.Fatalf("got %q", got)
	}
	var idle []net.Conn
	for range 40 {
		idle = append(idle, dial())
	}
	lines.Scan()
	if got := lines.Text(); !strings.Contains(got, "shortage: ") || !strings.Contains(got, "too many open files") {
		t.Errorf("the log was told %q", got)
	}
	if got := askOn(first); got != "alive" {
		t.Errorf("who was connected got %q", got)
	}
	for _, conn := range idle {
		conn.Close()
	}
	another := dial()
	defer another.Close()
	if got := askOn(another); got != "alive" {
		t.Errorf("who came after it got %q", got)
	}
	for range 40 {
		defer dial().Close()
	}
	child.Process.Signal(syscall.SIGTERM)
	for lines.Scan() {
		t.Errorf("the log was told %q", lines.Text())
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// short is a listener of a system that lacks files at some of its calls.
type short struct {
	net.Listener
	calls string // a call each: s has no room, c gives a connection
}

func (l *short) Accept() (net.Conn, error) {
	call := l.calls[0]
	if l.calls = l.calls[1:]; call == 's' {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ENFILE)}
	}
	return nil, nil
}

// told notes what a server's log is told.
type told []string

func (t *told) Shortage(cause error) {
	if cause == nil {
		*t = append(*t, "over")
	} else {
		*t = append(*t, "short")
	}
}

// A shortage is told at its beginning, and its end when it has not been met for
// a while: not each time that one file comes free and is taken.
func TestShortageIsToldAtEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log told
		ln := patiently(t.Context(), &short{calls: "csscscscccsc"}, &log)
		for range 4 {
			if _, err := ln.Accept(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(told{"short"}, log); diff != "" {
			t.Error(diff)
		}
		time.Sleep(calm + time.Second)
		ln.Accept()
		ln.Accept()
		if diff := cmp.Diff(told{"short", "over"}, log); diff != "" {
			t.Error(diff)
		}
		ln.Accept()
		if diff := cmp.Diff(told{"short", "over", "short"}, log); diff != "" {
			t.Error(diff)
		}
	})
}

// A server that is told to stop while it waits stops.
func TestShortageDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := patiently(ctx, &short{calls: strings.Repeat("s", 100)}, nil).Accept()
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want that it is closed", err)
		}
	})
}
