package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sidebeat-registry": main})
}

// What a user types, signals included: testdata/*.txt. Each script has two free
// ports and a folder of its own in its settings.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("API", freeAddress(t))
			e.Setenv("SIDEBEAT_LISTEN", e.Getenv("API"))
			e.Setenv("SIDEBEAT_ADMIN", freeAddress(t))
			e.Setenv("ADMIN", e.Getenv("SIDEBEAT_ADMIN"))
			e.Setenv("PORT", portOf(e.Getenv("API")))
			e.Setenv("ADMINPORT", portOf(e.Getenv("ADMIN")))
			e.Setenv("SIDEBEAT_DATA", e.WorkDir+"/data")
			e.Setenv("SIDEBEAT_PROBE_ALLOW_LOOPBACK", "true")
			e.Values["tokens"] = &tokens{}
			return writeWhole(e.WorkDir+"/password", canaryPassword+"\n")
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "request": request, "signal": signal,
			"smalldisk": smallDisk, "fill": fill,
			"users": users, "login": login, "waitlogin": waitLogin, "tokened": tokened, "nosecrets": noSecrets,
			"certificates": certificates, "awaithealth": awaitHealth, "refused": refused,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "mount":
				return canMount(t), nil
			case "raced":
				built, ok := debug.ReadBuildInfo()
				return ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"}), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
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

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// exits CODE PROGRAM ARG...: runs it and compares its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("cannot run %q: %v", args, err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("%q ended with %d, want %d", args[1:], got, want)
	}
}

func ask(method, url string) (status int, body string, err error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(method)
	request.SetRequestURI(url)
	request.SetConnectionClose()
	client := fasthttp.Client{TLSConfig: insecure.Transport.(*http.Transport).TLSClientConfig}
	err = client.DoTimeout(request, response, 5*time.Second)
	return response.StatusCode(), string(response.Body()), err
}

// await URL REGEXP: asks until the answer is 200 and matches, for 10 s at most.
func await(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		status, body, err := ask("GET", args[0])
		if err == nil && status == 200 && regexp.MustCompile(args[1]).MatchString(body) {
			return
		}
		if run.Wait(ctx, 10*time.Millisecond) != nil {
			ts.Fatalf("%s: %d %s %v, want %s", args[0], status, body, err, args[1])
		}
	}
}

// request METHOD URL STATUS REGEXP: asks once.
func request(ts *testscript.TestScript, _ bool, args []string) {
	status, body, err := ask(args[0], args[1])
	if err != nil || strconv.Itoa(status) != args[2] || !regexp.MustCompile(args[3]).MatchString(body) {
		ts.Fatalf("%s %s: %d %s %v, want %s %s", args[0], args[1], status, body, err, args[2], args[3])
	}
}

// canMount tells whether a small disk can be had: that needs root.
func canMount(t *testing.T) bool {
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m"); err != nil {
		t.Log("cannot mount a small disk:", err)
		return false
	}
	return unix.Unmount(at, 0) == nil
}

// smalldisk FOLDER SIZE: mounts a disk there for the rest of the script.
func smallDisk(ts *testscript.TestScript, _ bool, args []string) {
	at := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(at, 0o700))
	ts.Check(unix.Mount("tmpfs", at, "tmpfs", 0, "size="+args[1]))
	ts.Defer(func() { ts.Check(unix.Unmount(at, unix.MNT_DETACH)) })
}

// fill FILE MB: makes a file of that size.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer file.Close()
	ts.Check(unix.Fallocate(int(file.Fd()), 0, 0, size<<20))
}

// signal: sends SIGTERM to the background process that was started last.
func signal(ts *testscript.TestScript, _ bool, _ []string) {
	all := ts.BackgroundCmds()
	ts.Check(all[len(all)-1].Process.Signal(syscall.SIGTERM))
}
