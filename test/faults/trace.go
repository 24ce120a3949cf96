package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// tracer is strace at work on a process.
type tracer struct {
	*exec.Cmd
	said  lines
	ended chan struct{}
}

// inject has calls of a running registry fail or wait, until well is called.
func (s *scene) inject(ctx context.Context, p *server, calls, how string) (*tracer, error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return nil, cannot("there is no strace")
	}
	t := &tracer{Cmd: exec.Command(path, "-f", "-p", strconv.Itoa(p.Process.Pid), "-o", s.folder+"/strace", "-e", "trace="+calls, "-e", "inject="+calls+":"+how), ended: make(chan struct{})}
	t.Stderr = &t.said
	t.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := t.Cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(t.ended)
		t.Cmd.Wait()
	}()
	attached := func() bool {
		select {
		case <-t.ended:
			return true
		default:
			return len(t.said.all()) > 0
		}
	}
	if err := s.until(ctx, 10*time.Second, "strace attaches", attached); err != nil {
		return nil, err
	}
	if said := strings.Join(t.said.all(), " "); !strings.Contains(said, "attached") {
		return nil, cannot("strace: %s", said)
	}
	return t, nil
}

// well lets the process go.
func (t *tracer) well() {
	t.Process.Signal(syscall.SIGTERM)
	<-t.ended
}

// injected counts the calls that strace has tampered with.
func (s *scene) injected() int {
	text, _ := os.ReadFile(s.folder + "/strace")
	return strings.Count(string(text), "(INJECTED)") + strings.Count(string(text), "(DELAYED)")
}

// diskSlow has each fsync take two seconds more.
func diskSlow(ctx context.Context, s *scene) error {
	long := time.Duration(s.either(20, 8)) * time.Second
	s.made = fmt.Sprintf("each fdatasync and fsync begins 2 s later (strace), for %v, under writes and beats", long)
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond, pause: 5 * time.Millisecond})
	defer stop()
	if err := s.allBeating(ctx, 20); err != nil {
		return err
	}
	t, err := s.inject(ctx, p, "fdatasync,fsync", "delay_enter=2000000")
	if err != nil {
		return err
	}
	run.Wait(ctx, long)
	t.well()
	s.promise(s.injected() > 1, "strace held nothing up")
	s.promise(s.silence(write) > time.Second, "a write was acknowledged before its fsync")
	others := s.others(write, "200", "200 without consent", "503")
	s.promise(len(others) == 0, "durable writes were answered %v", others)
	s.stayedHealthy()
	s.unaffected()
	taken := s.count(write, "200")
	if err := s.until(ctx, 10*time.Second, "writes are quick again", func() bool { return s.count(write, "200") > taken+100 }); err != nil {
		return err
	}
	if err := s.check(ctx, false); err != nil {
		return err
	}
	stop()
	return s.againAfterKill(ctx, p)
}

// logErrors has one write or fsync of the log fail, at random moments. Nobody
// knows then what the file holds: the process ends, and what was acknowledged
// is there at the next start.
func logErrors(ctx context.Context, s *scene) error {
	rounds := s.some(24, 6)
	s.made = fmt.Sprintf("%d times one pwrite64 or fdatasync fails with EIO (strace), the 1st to 60th under writes and beats; started again each time", rounds)
	for n := range rounds {
		p, err := s.start(ctx)
		if err != nil {
			return err
		}
		if err := s.check(ctx, true); err != nil {
			return err
		}
		calls := []string{"pwrite64", "fdatasync"}[n%2]
		if err := s.failing(ctx, p, calls, 1+s.random.IntN(60)); err != nil {
			return fmt.Errorf("%s: %w", calls, err)
		}
		s.ended = p.end()
		s.promise(p.ProcessState.ExitCode() == 1 && p.says("cannot write raft.db: ") && p.says("input/output error"), "%s failed, and the registry ended with %s", calls, p.end())
	}
	ended := s.ended
	if err := s.startsAgain(ctx, "all well"); err != nil {
		return err
	}
	s.ended = "each time " + ended + "; started again: all there"
	return nil
}

// failing has one call fail and waits until the process has ended.
func (s *scene) failing(ctx context.Context, p *server, calls string, when int) error {
	t, err := s.inject(ctx, p, calls, fmt.Sprintf("error=EIO:when=%d", when))
	if err != nil {
		return err
	}
	defer t.well()
	defer s.load(ctx, crowd{beaters: 10, period: 200 * time.Millisecond})()
	return p.awaitEnd(20 * time.Second)
}

// snapshotErrors has snapshots fail. The log holds all they would have held.
func snapshotErrors(ctx context.Context, s *scene) error {
	s.made = "each fsync fails with EIO (strace) while 1500 commands are made a snapshot at the end"
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond})
	defer stop()
	err = s.until(ctx, time.Minute, "enough is written", func() bool { return s.count(write, "200") > 1500 })
	if err != nil {
		return err
	}
	s.unaffected()
	stop()
	t, err := s.inject(ctx, p, "fsync", "error=EIO")
	if err != nil {
		return err
	}
	defer t.well()
	err = p.stop()
	s.ended = p.end()
	if err != nil {
		return err
	}
	s.promise(s.injected() > 0, "no fsync failed")
	s.promise(p.says("the registry's snapshot failed"), "the log does not say that the snapshot failed")
	return s.startsAgain(ctx, "all well")
}
