package check

import (
	"bufio"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// stub serves every connection with talk, which gets the head of the request
// ("" for none), on address ("127.0.0.1:0") and returns where it listens. All
// connections are closed and their goroutines have ended when the test ends.
func stub(t testing.TB, address string, talk func(conn net.Conn, head string)) string {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, ln, func(conn net.Conn) { talk(conn, readHead(conn)) })
	return ln.Addr().String()
}

func serve(t testing.TB, ln net.Listener, talk func(net.Conn)) {
	var running sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				talk(conn)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

func readHead(conn net.Conn) string {
	var head strings.Builder
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String()
		}
	}
}

// says is a stub on IPv4 loopback that answers every request with this.
func says(t testing.TB, answer string) string {
	t.Helper()
	return stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) { conn.Write([]byte(answer)) })
}

// hang waits until the other side closes.
func hang(conn net.Conn) {
	for buffer := make([]byte, 1024); ; {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

func newAsker(t testing.TB) *Asker {
	a := NewAsker(netpolicy.Policy{})
	t.Cleanup(a.Close)
	return a
}

// expect asks raw with a limit of 5 s unless it names its own, and compares
// kind and beginning of the reason.
func expect(t testing.TB, a *Asker, raw string, kind Kind, reason string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	answer := a.Ask(ctx, must(t, raw))
	if answer.Kind != kind || !strings.HasPrefix(answer.Reason, reason) {
		t.Errorf("%s: got %v %q, want %v %q", raw, answer.Kind, answer.Reason, kind, reason)
	}
	if answer.Reason != printable(answer.Reason) || answer.Took <= 0 {
		t.Errorf("%s: got reason %q after %v", raw, answer.Reason, answer.Took)
	}
	return answer
}

// settle waits until no more goroutines run than before.
func settle(t testing.TB, before int) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
