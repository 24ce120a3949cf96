package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// group makes a control group of the first version below our own.
func (y *yard) group(controller string) (folder string) {
	y.Helper()
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || part[1] != controller {
			continue
		}
		folder = filepath.Join("/sys/fs/cgroup", controller, part[2], "sidebeat-agent-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(folder, 0o755); err != nil {
			y.Skipf("no control group of our own here: %v", err)
		}
		y.Cleanup(func() { os.Remove(folder) })
		return folder
	}
	y.Skipf("no control groups of the first version for %s here", controller)
	return ""
}

// in prepares a program that runs in a control group.
func (y *yard) in(folder, program string, args ...string) *exec.Cmd {
	child := y.command("/bin/sh")
	child.Args = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, folder, program}, args...)
	return child
}

func (y *yard) set(folder, file, value string) {
	y.Helper()
	if err := os.WriteFile(filepath.Join(folder, file), []byte(value), 0); err != nil {
		y.Fatal(err)
	}
}

// The processes of the container are used up while exec checks run: at first
// so that no program starts, then so that a script cannot start another. It is
// told, nothing is marked, and the agent lives.
func TestNoProcessesLeft(t *testing.T) {
	t.Parallel()
	y := fence(t)
	folder := y.group("pids")
	y.env = []string{"SIDEBEAT_CHECK=exec:/bin/sh?arg=-c&arg=sleep%200.01;sleep%200.01 exec:/bin/true", "SIDEBEAT_CHECK_FALL=1", "SIDEBEAT_CHECK_INTERVAL=500ms", "SIDEBEAT_CHECK_TIMEOUT=450ms", "SIDEBEAT_METADATA=preserved.heart.beat.interval=1000"}
	y.child = y.in(folder, "sidebeat-agent")
	y.start()
	y.listed("healthy")
	hog := y.in(folder, "sleep", "600") // what a leaking script leaves
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { hog.Process.Kill(); hog.Wait() }()
	y.until("in the group", func() bool {
		text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		return strings.Contains(string(text), strconv.Itoa(hog.Process.Pid))
	})
	y.stays("healthy", 0, func() {
		y.set(folder, "pids.max", "1")
		y.until("told", func() bool { return y.said("the check cannot be asked") >= 2 })
		run.Wait(t.Context(), 2*time.Second)
		for left := range 4 {
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", y.child.Process.Pid))
			y.set(folder, "pids.max", strconv.Itoa(1+len(threads)+left))
			run.Wait(t.Context(), time.Second)
		}
		y.set(folder, "pids.max", "max")
		run.Wait(t.Context(), time.Second)
	})
	if status, body := y.get("/readyz"); status != http.StatusOK {
		t.Errorf("not ready afterwards: %d %s", status, body)
	}
	if y.said("the app is down") > 0 {
		t.Errorf("our own limit counts against the app:\n%s", y.log.String())
	}
}

// 16 MB are enough, whatever the registry sends: a whole life, with programs as
// checks, and answers of 4 MB. The pages of the program's file count for whoever
// read them first, which is not the agent.
func TestSixteenMegabytes(t *testing.T) {
	t.Parallel()
	if raced() {
		t.Skip("the race detector alone takes more")
	}
	y := fence(t)
	folder := y.group("memory")
	y.set(folder, "memory.limit_in_bytes", strconv.Itoa(16<<20))
	y.env = []string{"SIDEBEAT_CHECK=exec:/bin/true tcp://" + y.app, "SIDEBEAT_METADATA=preserved.heart.beat.interval=1000"}
	y.child = y.in(folder, "sidebeat-agent")
	y.start()
	y.listed("healthy")
	large := says(200, "application/json", `{"code":10200,"pad":"`+strings.Repeat("x", 4<<20-100)+`"}`)
	y.stays("healthy", 0, func() {
		for range 3 {
			before := y.calls.Load()
			y.spoil.Store(&large)
			y.until("asked", func() bool { return y.calls.Load() > before })
			y.spoil.Store(nil)
			for range 20 {
				y.get("/status")
				y.get("/metrics")
			}
		}
	})
	if !y.runs() {
		t.Fatalf("ended:\n%s", y.log.String())
	}
	most, _ := os.ReadFile(filepath.Join(folder, "memory.max_usage_in_bytes"))
	t.Logf("%s bytes at most", strings.TrimSpace(string(most)))
}

// Nothing can be written anywhere, there is no folder for temporary files and
// no home, and the user is nobody: the agent lives as ever.
func TestNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	if apart(t, syscall.CLONE_NEWNS) {
		return
	}
	program, err := exec.LookPath("sidebeat-agent")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("/usr/local", fmt.Sprintf("sidebeat-test-%d", os.Getpid())) // not below /tmp, which is hidden
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		syscall.Unmount("/tmp", 0)
		syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_BIND, "")
		os.RemoveAll(folder)
	}()
	y := fence(t)
	y.child = y.command(filepath.Join(folder, "agent"))
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	heart := filepath.Join(folder, "heart")
	if err := os.WriteFile(y.child.Path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(heart, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	readOnly(t)
	y.child.Env = append(y.child.Env, "TMPDIR=/nowhere", "HOME=", "SIDEBEAT_CHECK=exec:/bin/true file:"+heart+" tcp://"+y.app)
	y.child.Args[0] = "sidebeat-agent"
	y.child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	y.start()
	y.listed("healthy")
	y.appDown()
	y.listed("unhealthy")
	y.appUp()
	y.listed("healthy")
	if code := y.stop(); code != exitOK || state(y.store, "orders") != "-" {
		t.Errorf("ended with %d, listed %q", code, state(y.store, "orders"))
	}
	for _, level := range []string{`"level":"error"`, "panic", "read-only", "permission denied"} {
		if y.said(level) > 0 {
			t.Errorf("it complains:\n%s", y.log.String())
		}
	}
}

// readOnly makes the whole tree read-only, and /tmp, if it can be seen at all,
// an empty place nobody may write to.
func readOnly(t *testing.T) {
	t.Helper()
	f := func(source, target, kind string, flags uintptr, data string) {
		t.Helper()
		if err := syscall.Mount(source, target, kind, flags, data); err != nil {
			t.Fatalf("cannot mount %s: %v", target, err)
		}
	}
	f("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, "")
	f("tmpfs", "/tmp", "tmpfs", syscall.MS_RDONLY, "mode=555,size=4k")
	f("", "/", "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
	if err := os.WriteFile("/usr/local/written", nil, 0o600); err == nil {
		t.Fatal("the root can still be written to")
	}
}
