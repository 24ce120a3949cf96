package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// grace is what a program that was told to stop has before it is killed, and
// what a grandchild that holds its output open has before it is left alone.
const grace = 200 * time.Millisecond

// passedOn are the variables a program gets from our own environment, if set.
// Everything else it names itself with env=NAME or env=NAME=value.
var passedOn = []string{"PATH", "HOME", "USER", "HOSTNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// secretName tells whether a variable belongs to us: secrets are among them.
func secretName(name string) bool { return strings.HasPrefix(strings.ToUpper(name), "SIDEBEAT_") }

// askExec runs the program without a shell, in a process group of its own that
// is ended as a whole when time is up. A child that leaves the group, as with
// setsid, is out of reach. Exit code 0 is Well, another or a signal is Sick; a
// program that cannot be started is Unknown, and so is one that fails while our
// control group may start no more processes or has no more memory.
func askExec(ctx context.Context, start time.Time, s Spec, p *plan) Answer {
	out := &output{limit: p.output}
	var ended atomic.Bool // we, not the program, decided when it ends
	command := exec.CommandContext(ctx, s.target)
	command.Args, command.Env = arguments(s)
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = grace
	command.Cancel = func() error {
		if err := syscall.Kill(-command.Process.Pid, syscall.SIGTERM); err != nil {
			return os.ErrProcessDone
		}
		ended.Store(true)
		return nil
	}
	before := own.shortages()
	if err := children.start(command); err != nil {
		return startFault(ctx, s.target, err)
	}
	err := command.Wait()
	children.done(command.Process.Pid)
	if ended.Load() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		if errors.Is(ctx.Err(), context.Canceled) {
			return Answer{Kind: Unknown, Reason: "stopped while asking"}
		}
		return out.after(excused(timeout(ctx, start), before))
	}
	return out.after(excused(exited(command.ProcessState, err), before))
}

// excused is the answer, or Unknown when the program failed while our own
// control group ran short: it may not have been able to start what it needs.
func excused(a Answer, before uint64) Answer {
	if a.Kind == Sick && own.shortages() != before {
		return Answer{Kind: Unknown, Reason: "cannot ask: the limit of processes or of memory of this control group was reached: " + a.Reason}
	}
	return a
}

func startFault(ctx context.Context, program string, err error) Answer {
	var number syscall.Errno
	switch {
	case ctx.Err() != nil:
		return Answer{Kind: Unknown, Reason: "stopped before asking"}
	case errors.As(err, &number):
		return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot run %s: %v", program, number)}
	}
	return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot run %s: %v", program, err)}
}

func exited(state *os.ProcessState, err error) Answer {
	if state == nil {
		return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot learn the exit code: %v", err)}
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case state.Success(): // err may say that a grandchild held the output
		return Answer{Kind: Well, Reason: "exit 0"}
	case ok && status.Signaled():
		return Answer{Kind: Sick, Reason: "killed by signal: " + status.Signal().String()}
	case state.ExitCode() > 0:
		return Answer{Kind: Sick, Reason: fmt.Sprintf("exit %d", state.ExitCode())}
	}
	return Answer{Kind: Unknown, Reason: fmt.Sprintf("cannot learn the exit code: %v", err)}
}

// arguments gives the argument list and the environment.
func arguments(s Spec) (args, env []string) {
	args = []string{s.target}
	for _, name := range passedOn {
		env = appendVariable(env, name)
	}
	for _, o := range splitOptions(s.args) {
		switch {
		case o.name == "arg":
			args = append(args, o.value)
		case strings.Contains(o.value, "="):
			env = append(env, o.value)
		default:
			env = appendVariable(env, o.value)
		}
	}
	return args, env
}

func appendVariable(env []string, name string) []string {
	if value, found := os.LookupEnv(name); found {
		return append(env, name+"="+value)
	}
	return env
}

// output keeps the first limit bytes and counts the rest.
type output struct {
	kept  []byte
	limit int
	lost  int
}

func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), o.limit-len(o.kept))
	o.kept = append(o.kept, p[:n]...)
	o.lost += len(p) - n
	return len(p), nil
}

// after adds what the program wrote to the reason.
func (o *output) after(a Answer) Answer {
	if o.lost > 0 {
		a.Reason += fmt.Sprintf(" (%d bytes of output, %d dropped)", len(o.kept)+o.lost, o.lost)
	}
	if text := strings.TrimSpace(string(o.kept)); text != "" {
		a.Reason += ": " + text
	}
	return a
}
