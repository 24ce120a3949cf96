package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
)

func TestNone(t *testing.T) {
	expect(t, newAsker(t), "none:", Well, "not asked")
}

func TestZeroSpec(t *testing.T) {
	if answer := newAsker(t).Ask(t.Context(), Spec{}); answer.Kind != Unknown {
		t.Errorf("got %+v", answer)
	}
}

// hashicorp/consul#3563 and #5834: there is always a limit, the one given.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func(outer, inner, want time.Duration) {
			t.Helper()
			ctx := t.Context()
			if outer > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, outer)
				defer cancel()
			}
			ctx, cancel := bound(ctx, inner)
			defer cancel()
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != want {
				t.Errorf("%v and %v: got %v, want %v", outer, inner, time.Until(deadline), want)
			}
		}
		f(0, 0, defaultTimeout)
		f(0, time.Minute, time.Minute)
		f(time.Second, 0, time.Second)
		f(time.Second, time.Minute, time.Second)
		f(time.Minute, time.Second, time.Second)
	})
}

func TestNothingIsAskedAfterTheEnd(t *testing.T) {
	a := NewAsker(netpolicy.Policy{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if answer := a.Ask(ctx, must(t, "none:")); answer.Kind != Unknown || answer.Reason != "stopped before asking" {
		t.Errorf("context ended: got %+v", answer)
	}
	a.Close()
	a.Close()
	if answer := a.Ask(t.Context(), must(t, "none:")); answer.Kind != Unknown || answer.Reason != "stopped before asking" {
		t.Errorf("closed: got %+v", answer)
	}
}

// valyala/fasthttp#518: targets that accept and stay silent hold nothing.
func TestSilentTargetsLeaveNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	before := runtime.NumGoroutine()
	a := NewAsker(netpolicy.Policy{})
	var asking sync.WaitGroup
	for i := range 50 {
		scheme := []string{"http", "https"}[i%2]
		asking.Go(func() {
			expect(t, a, scheme+"://"+ln.Addr().String()+"/#timeout=100ms", Sick, "timeout after 100ms")
		})
	}
	asking.Wait()
	a.Close()
	settle(t, before)
}

// Close returns after the questions in flight have.
func TestCloseWaits(t *testing.T) {
	a := NewAsker(netpolicy.Policy{})
	asked := make(chan struct{})
	at := stub(t, "127.0.0.1:0", func(conn net.Conn, _ string) { close(asked); hang(conn) })
	answered := make(chan Answer, 1)
	go func() { answered <- a.Ask(t.Context(), must(t, "http://"+at+"/#timeout=200ms")) }()
	<-asked
	start := time.Now()
	a.Close()
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("Close did not wait: %v", took)
	}
	if answer := <-answered; answer.Kind != Sick {
		t.Errorf("got %+v", answer)
	}
}

// Our own lack of files says nothing about the target.
func TestNoFilesLeftIsUnknown(t *testing.T) {
	a := newAsker(t)
	at := says(t, ok)
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	starving := limit
	starving.Cur = 3 // whatever is open stays so; nothing new can be
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &starving); err != nil {
		t.Fatal(err)
	}
	answers := map[string]Answer{}
	for _, raw := range []string{"http://" + at + "/", "https://" + at + "/", "tcp://" + at, "exec:/bin/true", "http://name.test/"} {
		answers[raw] = a.Ask(t.Context(), must(t, raw))
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for raw, answer := range answers {
		if answer.Kind != Unknown || !strings.Contains(answer.Reason, "cannot") {
			t.Errorf("%s: got %v %q, want unknown", raw, answer.Kind, answer.Reason)
		}
	}
	expect(t, a, "http://"+at+"/", Well, "200 OK")
}

func TestFault(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	alive, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	f := func(ctx context.Context, err error, kind Kind, reason string) {
		t.Helper()
		got := fault(ctx, time.Now(), err)
		if got.Kind != kind || !strings.HasPrefix(got.Reason, reason) {
			t.Errorf("%v: got %v %q, want %v %q", err, got.Kind, got.Reason, kind, reason)
		}
	}
	of := func(number syscall.Errno) error {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", number)}
	}
	f(alive, of(syscall.ECONNREFUSED), Sick, "refused")
	f(alive, of(syscall.ECONNRESET), Sick, "reset")
	f(alive, of(syscall.EPIPE), Sick, "reset")
	f(alive, of(syscall.EHOSTUNREACH), Sick, "host unreachable")
	f(alive, of(syscall.ETIMEDOUT), Sick, "timeout after ")
	f(alive, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, Sick, "timeout after ")
	f(alive, context.DeadlineExceeded, Sick, "timeout after ")
	for _, number := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH, syscall.ENETDOWN,
		syscall.EPERM, syscall.EACCES, syscall.EAGAIN, syscall.EAFNOSUPPORT, syscall.EINVAL, syscall.EADDRINUSE,
	} {
		f(alive, of(number), Unknown, "cannot ask: "+number.Error())
	}
	f(alive, errors.New("odd"), Unknown, "cannot ask: odd")
	f(alive, fmt.Errorf("cannot contact x: %w", netpolicy.ErrDenied), Unknown, "cannot contact x: denied")
	f(alive, &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, Sick, "name not found: x")
	f(alive, &net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}, Unknown, "cannot resolve x: server misbehaving")
	f(alive, &net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true}, Unknown, "cannot resolve x: i/o timeout")
	for _, err := range []error{of(syscall.ECONNREFUSED), os.ErrDeadlineExceeded, context.Canceled, io.EOF, &net.DNSError{IsNotFound: true}} {
		f(ended, err, Unknown, "stopped while asking")
	}
}

// What was waited for while this process did not run is not the target's fault.
func TestStarvedIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func(late time.Duration, kind Kind, reason string) {
			t.Helper()
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			time.Sleep(2*time.Second + late)
			got := fault(ctx, start, os.ErrDeadlineExceeded)
			if got.Kind != kind || got.Reason != reason {
				t.Errorf("%v late: got %v %q, want %v %q", late, got.Kind, got.Reason, kind, reason)
			}
		}
		f(0, Sick, "timeout after 2s")
		f(time.Second, Sick, "timeout after 2s")
		f(1001*time.Millisecond, Unknown, "cannot ask: this process was stopped or starved for 1.001s")
	})
}

func TestWorst(t *testing.T) {
	f := func(want string, answers ...Answer) {
		t.Helper()
		if got := worst(answers).Reason; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	sick, slow, unknown := Answer{Kind: Sick, Reason: "refused"}, Answer{Kind: Sick, Reason: "timeout"}, Answer{Reason: "no IPv6"}
	f("refused", sick, unknown)
	f("refused", unknown, sick)
	f("timeout", slow, sick)
	f("no IPv6", unknown, Answer{Reason: "other"})
}

func TestPlansAreBounded(t *testing.T) {
	var c plans
	for i := range 3 * maxPlans {
		if _, err := c.of(must(t, fmt.Sprintf("http://:1/#body=%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.known); n > maxPlans {
		t.Errorf("%d plans are kept", n)
	}
	s := must(t, "http://:1/#match=a")
	one, _ := c.of(s)
	two, _ := c.of(s)
	if one != two {
		t.Error("the same options were compiled twice")
	}
}
