package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reap collects, until ctx ends, the exit codes of processes that nobody waits
// for. It is for PID 1 of a container, to which orphans are given: without it
// they fill the table of processes as zombies. A child whose exit code a check
// waits for is left alone; a process that starts children by other means must
// not run it.
func Reap(ctx context.Context) error {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		if err := children.sweep(); err != nil {
			return fmt.Errorf("cannot reap: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-died:
		case <-children.left:
		}
	}
}

// sweep reaps strangers until none is left, or until it meets a child of ours
// that is dead and not yet waited for: that one hides those behind it, and left
// is rung as soon as it is gone.
func (f *family) sweep() error {
	for {
		pid, err := firstDead()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ECHILD) || err == nil && pid == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if !f.reap(pid) {
			return nil
		}
	}
}

// reap waits for pid unless it is ours. It looks under the lock that is held
// while children are started, or it might see one before it is noted.
func (f *family) reap(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.own[pid] {
		return false
	}
	unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return true
}

// pidOffset is where waitid(2) puts the pid into its siginfo: after three
// 32-bit numbers, aligned as a pointer.
const pidOffset = 8 + unsafe.Sizeof(uintptr(0))

// firstDead gives a dead child without waiting for it, or 0.
func firstDead() (int, error) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), pidOffset))), err
}
