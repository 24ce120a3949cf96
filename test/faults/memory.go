package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// group makes a memory cgroup of the size, of either version. enter is a
// program that enters it before it executes its arguments.
func group(name string, size int) (folder string, enter []string, err error) {
	limit, root := "memory.max", "/sys/fs/cgroup"
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil {
		limit, root = "memory.limit_in_bytes", "/sys/fs/cgroup/memory"
	}
	folder = filepath.Join(root, name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", nil, cannot("a memory cgroup: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, limit), []byte(strconv.Itoa(size)), 0o644); err != nil {
		return "", nil, errors.Join(cannot("a limit of memory: %v", err), os.Remove(folder))
	}
	os.WriteFile(filepath.Join(folder, "memory.swap.max"), []byte("0"), 0o644) // version 2, where there is swap
	return folder, []string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, folder}, nil
}

// memoryTooSmall has instances registered until the kernel kills the registry,
// and starts it with less than it needs, then with enough.
func memoryTooSmall(ctx context.Context, s *scene) error {
	size := s.either(48<<20, 32<<20)
	s.made = fmt.Sprintf("a memory cgroup of %d MB, persistent instances with 900 characters of metadata until the kernel kills; started again in the same, then without a limit", size>>20)
	name := fmt.Sprintf("sidebeat-faults-%d", os.Getpid())
	folder, enter, err := group(name, size)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range s.servers {
			p.kill()
		}
		os.Remove(folder)
	}()
	p, err := s.start(ctx, enter...)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond, big: true})
	defer stop()
	if err := p.awaitEnd(3 * time.Minute); err != nil {
		return fmt.Errorf("%w; it takes %s", err, usage(folder))
	}
	stop()
	status, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	s.promise(status.Signal() == syscall.SIGKILL, "the registry was not killed but ended with %s", p.end())
	s.ended = p.end()
	again, err := s.begin(enter...)
	if err != nil {
		return err
	}
	err = s.until(ctx, 20*time.Second, "it serves or is killed", func() bool { return again.over() || s.client.ready() })
	if err != nil {
		return err
	}
	if again.over() {
		s.ended += "; again with as little: " + again.end()
	} else {
		s.ended += "; again with as little: serves"
		if err := s.check(ctx, true); err != nil {
			if again.awaitEnd(5*time.Second) != nil {
				return err
			}
			s.ended += " until its lists are read, then " + again.end()
		}
	}
	again.kill()
	return s.startsAgain(ctx, "without a limit")
}

func usage(folder string) string {
	for _, name := range []string{"memory.usage_in_bytes", "memory.current"} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil {
			return strings.TrimSpace(string(text)) + " bytes"
		}
	}
	return "?"
}
