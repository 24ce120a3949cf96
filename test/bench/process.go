package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child under measurement.
type process struct {
	*exec.Cmd
	first chan string // the first line of its output
}

// spawn starts a program with one processor to run on, so that its CPU is not
// blurred by idle threads spinning. It dies with us.
func spawn(ctx context.Context, path string, args []string, env ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append([]string{"GOMAXPROCS=1", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if os.Getenv("BENCH_VERBOSE") == "" {
		cmd.Stderr = io.Discard
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{Cmd: cmd, first: make(chan string, 1)}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			select {
			case p.first <- lines.Text():
			default:
			}
		}
		close(p.first)
	}()
	return p, nil
}

// self starts this program again in another role.
func self(ctx context.Context, role string, args ...string) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return spawn(ctx, path, append([]string{"child", role}, args...))
}

// line waits for the first line that the process prints.
func (p *process) line(ctx context.Context) (string, error) {
	select {
	case s, ok := <-p.first:
		if !ok {
			return "", fmt.Errorf("%s ended without a word", p.Path)
		}
		return s, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// stop ends the process in order and waits for it.
func (p *process) stop(signal syscall.Signal) {
	p.Process.Signal(signal)
	p.Wait()
}

// cpu gives the time that all threads of the process have been on a processor,
// as the scheduler counts it, to the nanosecond.
func (p *process) cpu() time.Duration {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Process.Pid))
	var sum time.Duration
	for _, t := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", p.Process.Pid, t.Name()))
		if err != nil {
			continue
		}
		ns, _ := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		sum += time.Duration(ns)
	}
	return sum
}

// status gives a field of /proc/PID/status in bytes.
func (p *process) status(field string) uint64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

func median[T ~int64 | ~float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spread prints a ratio with its quartiles.
func spread(values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return fmt.Sprintf("%.2f [%.2f-%.2f]", sorted[n/2], sorted[n/4], sorted[n*3/4])
}
