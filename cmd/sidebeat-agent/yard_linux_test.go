package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// faults makes the tests of faults last: 10 gives the counts of a full run.
var faults = flag.Int("faults", 1, "how many times the usual rounds the tests of faults play, 1 to 10")

// yard is a registry that keeps what it knows and can be cut off or spoilt, an
// app that can die, and an agent that runs as a process.
type yard struct {
	*testing.T
	store *registry.Store
	api   string // of the registry
	spoil atomic.Pointer[fasthttp.RequestHandler]
	calls atomic.Int64
	cut   func() // takes the registry away

	app     string // where the app listens
	closing func()

	admin string
	env   []string // of the agent, over what start sets
	child *exec.Cmd
	log   locked
	ended chan struct{}
}

// locked is a buffer that a child writes while the test reads.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fence lays out a yard with everything up but the agent.
func fence(t *testing.T) *yard {
	t.Helper()
	y := &yard{T: t, store: registry.NewStore(), api: freeAddress(t), app: freeAddress(t), admin: freeAddress(t)}
	t.Cleanup(background(y.store.Run))
	y.join()
	y.appUp()
	t.Cleanup(func() { y.cut(); y.appDown() })
	return y
}

// join puts the registry back where it was, with all that it knew.
func (y *yard) join() {
	y.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	server := (&nacos.Server{Store: y.store, Log: quiet}).HTTP()
	inner := server.Handler
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		y.calls.Add(1)
		if spoil := y.spoil.Load(); spoil != nil {
			(*spoil)(ctx)
			return
		}
		inner(ctx)
	}
	ln := y.listen(y.api)
	stop := background(func(ctx context.Context) error { return run.Serve(ctx, ln, server) })
	y.cut = sync.OnceFunc(func() { ln.Close(); stop() })
}

func (y *yard) listen(address string) net.Listener {
	y.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		y.Fatal(err)
	}
	return ln
}

// appUp lets something listen where the app is: TCP only, which answers all
// that connect by closing.
func (y *yard) appUp() {
	ln := y.listen(y.app)
	y.closing = func() { ln.Close() }
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
}

func (y *yard) appDown() { y.closing() }

// command prepares an agent with a swift check; env goes over what is set here.
func (y *yard) command(program string) *exec.Cmd {
	child := exec.Command(program)
	child.Env = append(os.Environ(),
		"SIDEBEAT_NACOS=http://"+y.api, "SIDEBEAT_ADMIN="+y.admin, "SIDEBEAT_SERVICE=orders", "SIDEBEAT_ADDRESS="+y.app,
		"SIDEBEAT_ALLOW_LOOPBACK=true", "SIDEBEAT_CHECK_INTERVAL=100ms", "SIDEBEAT_CHECK_TIMEOUT=90ms", "SIDEBEAT_DRAIN=0s",
	)
	child.Env = append(child.Env, y.env...)
	return child
}

// start runs the agent; at the end of the test it has to end well.
func (y *yard) start() {
	y.Helper()
	if y.child == nil {
		y.child = y.command("sidebeat-agent")
	}
	y.child.Stderr = &y.log
	if err := y.child.Start(); err != nil {
		y.Fatal(err)
	}
	y.ended = make(chan struct{})
	go func() { y.child.Wait(); close(y.ended) }()
	y.Cleanup(func() {
		if code := y.stop(); code != exitOK {
			y.Errorf("the agent ended with %d:\n%s", code, y.log.String())
		}
	})
}

// stop ends the agent by SIGTERM and gives its exit code.
func (y *yard) stop() int {
	y.child.Process.Signal(syscall.SIGTERM)
	<-y.ended
	return y.child.ProcessState.ExitCode()
}

func (y *yard) runs() bool {
	select {
	case <-y.ended:
		return false
	default:
		return true
	}
}

// until polls: there is no fake time between processes.
func (y *yard) until(what string, so func() bool) {
	y.Helper()
	y.within(15*time.Second, what, so)
}

func (y *yard) within(most time.Duration, what string, so func() bool) {
	y.Helper()
	for end := time.Now().Add(most); !so(); run.Wait(context.Background(), 5*time.Millisecond) {
		if time.Now().After(end) {
			y.Fatalf("not %s in %v; the registry lists %q; the log:\n%s", what, most, state(y.store, "orders"), y.log.String())
		}
	}
}

// listed waits until the registry lists the app so.
func (y *yard) listed(want string) {
	y.Helper()
	y.until(want, func() bool { return state(y.store, "orders") == want })
}

// stays tells that the registry lists the app so for a while, whatever is done
// meanwhile.
func (y *yard) stays(want string, while time.Duration, meanwhile func()) {
	y.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for run.Wait(ctx, 5*time.Millisecond) == nil {
			if got := state(y.store, "orders"); got != want {
				ended <- fmt.Errorf("the registry lists %q, want %q all the time", got, want)
				return
			}
		}
		ended <- nil
	}()
	if meanwhile != nil {
		meanwhile()
	}
	run.Wait(context.Background(), while)
	cancel()
	if err := <-ended; err != nil {
		y.Errorf("%v; the log:\n%s", err, y.log.String())
	}
}

func (y *yard) said(text string) int { return strings.Count(y.log.String(), text) }

// get asks the agent's own HTTP.
func (y *yard) get(path string) (status int, body string) {
	status, text, err := admin.Get(context.Background(), y.admin, path)
	if err != nil {
		return 0, err.Error()
	}
	return status, string(text)
}

// apart runs this test again in namespaces of its own, and tells that this is
// the run outside of them.
func apart(t *testing.T, flags uintptr) bool {
	t.Helper()
	const mark = "SIDEBEATTEST_APART"
	if os.Getenv(mark) != "" {
		return false
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", fmt.Sprintf("-faults=%d", *faults))
	child.Env = append(os.Environ(), mark+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	out, err := child.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("no namespace of our own here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", cmp.Or(err, errors.New("it did not pass")), out)
	}
	return true
}
