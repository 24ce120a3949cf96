package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

// filesExhausted leaves the registry 64 files and opens more connections than
// that. Who is connected goes on; others wait until there is room.
func filesExhausted(ctx context.Context, s *scene) error {
	const idle = 2000
	s.made = fmt.Sprintf("prlimit --nofile=64 on the running process and %d idle connections, closed after some seconds", idle)
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond, pause: 2 * time.Millisecond})
	defer stop()
	if err := s.allBeating(ctx, 20); err != nil {
		return err
	}
	if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil); err != nil {
		return cannot("prlimit: %v", err)
	}
	connections := make([]net.Conn, 0, idle)
	closeAll := func() {
		for _, c := range connections {
			c.Close()
		}
	}
	defer closeAll()
	for range idle {
		dialer := net.Dialer{Timeout: 50 * time.Millisecond} // beyond its backlog the kernel does not answer
		if c, err := dialer.DialContext(ctx, "tcp", s.address); err == nil {
			connections = append(connections, c)
		}
		if len(connections) > 300 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	run.Wait(ctx, 5*time.Second)
	s.promise(!p.over(), "the registry ended: %s", p.lastWords())
	s.promise(p.says("too many open files"), "the log does not say that there are too many open files")
	s.stayedHealthy()
	s.unaffected()
	closeAll()
	another := s.client.another()
	if err := s.until(ctx, 10*time.Second, "a new client is answered", another.ready); err != nil {
		return err
	}
	if err := s.check(ctx, false); err != nil {
		return err
	}
	stop()
	s.note = fmt.Sprintf("lines of the log that say it: %d", len(pick(p.said.all(), "too many open files")))
	return s.againAfterKill(ctx, p)
}
