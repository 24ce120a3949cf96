package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sh is the check that runs this script.
func sh(script string) string { return "exec:/bin/sh?arg=-c&arg=" + Escape(script) }

func TestExec(t *testing.T) {
	a := newAsker(t)
	f := func(raw string, kind Kind, reason string) {
		t.Helper()
		if answer := expect(t, a, raw, kind, reason); answer.Took > 3*time.Second {
			t.Errorf("%s: took %v", raw, answer.Took)
		}
	}
	f(sh("exit 0"), Well, "exit 0")
	f(sh("echo fine; exit 0"), Well, "exit 0: fine")
	f(sh("echo bad >&2; exit 3"), Sick, "exit 3: bad")
	f(sh("kill -SEGV $$"), Sick, "killed by signal: segmentation fault")
	f("exec:/bin/cat", Well, "exit 0") // nothing to read, and no terminal
	f("exec:/bin/echo?arg=$HOME;%20exit%201&arg=--deep&arg=", Well, "exit 0: $HOME; exit 1 --deep")
	// hashicorp/consul#3253
	f(sh(`printf 'a\r\n\r\nHTTP/1.1 200 OK\033[2J\000\377\376\342\200\256\nlevel=error msg="x"'`), Well, `exit 0: a\r\n\r\nHTTP/1.1 200 OK\x1b[2J\x00\xff\xfe\u202e\nlevel=error`)
	f("exec:/no/such/program", Unknown, "cannot run /no/such/program: no such file")
	f("exec:/etc/passwd", Unknown, "cannot run /etc/passwd: permission denied")
	f("exec:/etc", Unknown, "cannot run /etc: ")
	noProgram := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(noProgram, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	f("exec:"+noProgram, Unknown, "cannot run "+noProgram+": exec format error")
}

func TestExecOutputIsBounded(t *testing.T) {
	a := newAsker(t)
	f := func(options, want string) {
		t.Helper()
		expect(t, a, sh("head -c 3000000 /dev/zero | tr '\\0' x")+options, Well, want)
	}
	f("", "exit 0 (3000000 bytes of output, 2995904 dropped): xxxx")
	f("#output=2", "exit 0 (3000000 bytes of output, 2999998 dropped): xx")
	f("#output=0", "exit 0 (3000000 bytes of output, 3000000 dropped)")
}

func TestExecEnvironment(t *testing.T) {
	for name, value := range map[string]string{"SIDEBEAT_PASSWORD": "hunter2", "OTHER_SECRET": "hunter2", "APP_HOME": "/opt/app", "HOME": "/home/x"} {
		t.Setenv(name, value)
	}
	a := newAsker(t)
	expect(t, a, sh("env | grep -c hunter2"), Sick, "exit 1: 0")
	expect(t, a, sh("echo $HOME $APP_HOME $A; test -n \"$PATH\""), Well, "exit 0: /home/x")
	expect(t, a, sh("echo $HOME $APP_HOME $A")+"&env=APP_HOME&env=A=b%20c&env=NOT_SET", Well, "exit 0: /home/x /opt/app b c")
}

// hashicorp/consul#3597: the whole group ends at the timeout, whatever its
// processes do about TERM, and however the program then exits.
func TestExecTimeoutEndsTheGroup(t *testing.T) {
	a := newAsker(t)
	f := func(script string) {
		t.Helper()
		answer := expect(t, a, sh(script)+"#timeout=300ms", Sick, "timeout after 300ms: ")
		if answer.Took < 290*time.Millisecond || answer.Took > 2*time.Second {
			t.Errorf("%s: took %v", script, answer.Took)
		}
		group, err := strconv.Atoi(answer.Reason[strings.LastIndex(answer.Reason, " ")+1:])
		if err != nil {
			t.Fatalf("%s: %q ends with no pid", script, answer.Reason)
		}
		noneAlive(t, group)
	}
	f("echo $$; sleep 300")
	f("echo $$; sleep 300 & sleep 300 & wait")
	f("trap '' TERM; echo $$; sleep 300 & sleep 300")
	f("trap 'exit 0' TERM; echo $$; sleep 300 & wait")
	f("echo $$; (trap '' TERM; exec sleep 300 >/dev/null 2>&1) & wait")
	f("echo $$; exec sleep 300 >/dev/null 2>&1")
}

// noneAlive waits until no process of the group is alive. Dead ones nobody has
// waited for yet do not count: that is their parent's business.
func noneAlive(t *testing.T, group int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		alive := processes(func(state string, of int) bool { return of == group && state != "Z" && state != "X" })
		if alive == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes of group %d are alive", alive, group)
		}
	}
}

// processes counts those in /proc whose state and group are wanted.
func processes(wanted func(state string, group int) bool) (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var state string
		var parent, group int
		after := text[strings.LastIndexByte(string(text), ')')+1:]
		if _, err := fmt.Sscan(string(after), &state, &parent, &group); err == nil && wanted(state, group) {
			n++
		}
	}
	return n
}

func TestExecStoppedIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mark := filepath.Join(t.TempDir(), "started")
	go func() {
		for _, err := os.Stat(mark); err != nil; _, err = os.Stat(mark) {
			runtime.Gosched()
		}
		cancel()
	}()
	answer := newAsker(t).Ask(ctx, must(t, sh("touch "+mark+"; sleep 300")))
	if answer.Kind != Unknown || answer.Reason != "stopped while asking" || answer.Took > 3*time.Second {
		t.Errorf("got %+v", answer)
	}
}

// A grandchild that keeps the output open does not hold the answer up.
func TestExecGrandchildHoldsTheOutput(t *testing.T) {
	a := newAsker(t)
	before := runtime.NumGoroutine()
	answer := expect(t, a, sh("echo $$; sleep 5 & exit 0"), Well, "exit 0: ")
	if answer.Took > 2*time.Second {
		t.Errorf("took %v", answer.Took)
	}
	expect(t, a, sh("sleep 5 & exit 4"), Sick, "exit 4")
	settle(t, before)
}

func TestExecStolenResultIsUnknown(t *testing.T) {
	if got := exited(nil, syscall.ECHILD); got.Kind != Unknown {
		t.Errorf("got %+v", got)
	}
}

func TestExecInParallel(t *testing.T) {
	a := newAsker(t)
	before := runtime.NumGoroutine()
	var asking sync.WaitGroup
	for i := range 40 {
		asking.Go(func() { expect(t, a, sh(fmt.Sprintf("exit %d", i+1)), Sick, fmt.Sprintf("exit %d", i+1)) })
	}
	asking.Wait()
	settle(t, before)
	if len(children.own) != 0 {
		t.Errorf("%d children are still noted", len(children.own))
	}
}
