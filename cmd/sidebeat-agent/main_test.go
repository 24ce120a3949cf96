package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sidebeat-agent": main, "legacy-app": legacyApp})
}

// legacyApp is an app as a process of its own: it listens where it is told and
// takes connections until it is killed.
func legacyApp() {
	ln, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		if conn, err := ln.Accept(); err == nil {
			conn.Close()
		}
	}
}

// site is what stands around the agent in a script: an app that answers as it
// is told, and a real registry that can go and come back.
type site struct {
	status atomic.Int32 // of the app
	asked  atomic.Int64
	signed *exec.Cmd // the process that was signalled last

	api    string
	secret string // what tokens are signed by, when it is guarded
	store  *registry.Store
	down   func()
}

// TestScripts plays what a user types, signals included.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: func(e *testscript.Env) error { return setup(t, e) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "app": app, "registry": registryIs, "listed": listed, "signal": signal, "code": code,
			"await": await, "post": post, "asked": asked,
			"guarded": guarded, "user": user, "beaten": beatenMore, "clean": clean, "certificates": certificates, "listed-soon": listedSoon,
		},
		Condition: func(name string) (bool, error) {
			if name != "raced" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return raced(), nil
		},
	})
}

// raced reports whether the race detector is on.
func raced() bool {
	built, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func setup(t *testing.T, e *testscript.Env) error {
	s := &site{api: freeAddress(t)}
	s.status.Store(200)
	port := s.serveApp(t, e)
	e.Values["site"] = s
	e.Defer(func() {
		if s.down != nil {
			s.down()
		}
	})
	for name, value := range map[string]string{
		"NACOS": "http://" + s.api, "ADMIN": freeAddress(t), "SERVICE": "orders", "ADDRESS": "127.0.0.1:" + port, "ALLOW_LOOPBACK": "true",
		"CHECK": "http://:" + port + "/", "CHECK_INTERVAL": "200ms", "CHECK_TIMEOUT": "150ms", "CHECK_FALL": "2", "DRAIN": "300ms",
	} {
		e.Setenv("SIDEBEAT_"+name, value)
	}
	e.Setenv("ADMIN", e.Getenv("SIDEBEAT_ADMIN"))
	e.Setenv("API", s.api)
	if err := os.WriteFile(e.WorkDir+"/password", []byte(canaryPassword+"\n"), 0o600); err != nil {
		return err
	}
	return s.up()
}

// freeAddress gives a loopback address that nobody listens on, below the ports
// that the kernel gives to connections: one of those may be taken again before
// it is used.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(17_000))
		if _, given := givenAddresses.LoadOrStore(address, true); given {
			continue
		}
		if ln, err := net.Listen("tcp", address); err == nil {
			ln.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

var givenAddresses sync.Map // no address is given twice

// background runs parts until the returned function is called.
func background(parts ...run.Part) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run.All(ctx, parts...) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (s *site) serveApp(t *testing.T, e *testscript.Env) (port string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			s.asked.Add(1)
			ctx.SetStatusCode(int(s.status.Load()))
		},
		ReadTimeout: time.Second, IdleTimeout: time.Second,
	}
	e.Defer(background(func(ctx context.Context) error { return run.Serve(ctx, ln, server) }))
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port
}

// up starts an empty registry at the address of the script.
func (s *site) up() error {
	ln, err := net.Listen("tcp", s.api)
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	s.store = registry.NewStore()
	server := &nacos.Server{Store: s.store, Log: log}
	s.down = background(s.store.Run, func(ctx context.Context) error { return run.Serve(ctx, ln, server.HTTP()) })
	return nil
}

func of(ts *testscript.TestScript) *site { return ts.Value("site").(*site) }

// app STATUS: what the app answers from now on.
func app(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	of(ts).status.Store(int32(status))
}

// registry up|down: it comes back empty.
func registryIs(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if args[0] == "up" {
		ts.Check(s.up())
		return
	}
	s.down()
	s.down = nil
}

// listed SERVICE STATE...: waits for it, 20 s at most; "-" is not listed.
func listed(ts *testscript.TestScript, _ bool, args []string) {
	want, got := strings.Join(args[1:], " "), ""
	until(ts, func() bool {
		got = state(of(ts).store, args[0])
		return got == want
	}, func() string { return "the registry lists " + args[0] + " as " + got + ", want " + want })
}

func state(store *registry.Store, service string) string {
	all := store.All(registry.Service{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: service})
	if len(all) == 0 {
		return "-"
	}
	text := "healthy"
	if !all[0].Healthy {
		text = "unhealthy"
	}
	if !all[0].Enabled {
		text += " disabled"
	}
	return text
}

func until(ts *testscript.TestScript, done func() bool, why func() string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for !done() {
		if run.Wait(ctx, 5*time.Millisecond) != nil {
			ts.Fatalf("%s", why())
		}
	}
}

// asked: waits until the app is asked once more.
func asked(ts *testscript.TestScript, _ bool, _ []string) {
	s := of(ts)
	before := s.asked.Load()
	until(ts, func() bool { return s.asked.Load() > before+1 }, func() string { return "the app is not asked" })
}

// signal NAME: to the background process that was started last.
func signal(ts *testscript.TestScript, _ bool, args []string) {
	all := ts.BackgroundCmds()
	process := all[len(all)-1]
	of(ts).signed = process
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "KILL": syscall.SIGKILL}
	ts.Check(process.Process.Signal(signals[args[0]]))
}

// code N: with which the process ended that was signalled and waited for.
func code(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(of(ts).signed.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("ended with %s, want %s", got, args[0])
	}
}

// exits CODE PROGRAM ARG...: runs it and compares its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("cannot run %q: %v", args, err)
		}
		got = failed.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%q ended with %d, want %s", args[1:], got, args[0])
	}
}

func ask(method, url string) (status int, body string, err error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(method)
	request.SetRequestURI(url)
	request.SetConnectionClose()
	err = fasthttp.DoTimeout(request, response, 5*time.Second)
	return response.StatusCode(), string(response.Body()), err
}

// await URL STATUS REGEXP: asks until the answer matches, for 20 s at most.
func await(ts *testscript.TestScript, _ bool, args []string) {
	var status int
	var body string
	until(ts, func() bool {
		var err error
		status, body, err = ask("GET", args[0])
		return err == nil && strconv.Itoa(status) == args[1] && regexp.MustCompile(args[2]).MatchString(body)
	}, func() string { return args[0] + " answers " + strconv.Itoa(status) + " " + body })
}

// post URL STATUS: asks once.
func post(ts *testscript.TestScript, _ bool, args []string) {
	if status, body, err := ask("POST", args[0]); err != nil || strconv.Itoa(status) != args[1] {
		ts.Fatalf("POST %s: %d %s %v, want %s", args[0], status, body, err, args[1])
	}
}

// A sidecar is paid for once a pod: under 12 MB, and without what keeps the
// linker from dropping methods (a template engine, calling methods by name).
func TestBinaryIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	binary := filepath.Join(t.TempDir(), "sidebeat-agent")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if mb := float64(info.Size()) / 1e6; mb > 12 {
		t.Errorf("%.1f MB, want 12 at most", mb)
	} else {
		t.Logf("%.2f MB", mb)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	// The names of linked functions stay in a stripped binary, for stack traces.
	for _, name := range []string{"text/template.(*Template).Execute", "html/template.(*Template).Execute", "reflect.Value.MethodByName"} {
		if strings.Contains(string(content), name) {
			t.Errorf("%s is linked: the binary holds every method of every type", name)
		}
	}
	if !strings.Contains(string(content), "reflect.Value.Interface") {
		t.Error("the names of functions cannot be found in the binary, so this test says nothing")
	}
}
