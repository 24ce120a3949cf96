package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// stopped stops the process for longer than silence deletes an instance. What
// it could not hear counts against nobody.
func stopped(ctx context.Context, s *scene) error {
	const beaters = 50
	pause := time.Duration(s.either(40, 35)) * time.Second
	s.made = fmt.Sprintf("SIGSTOP for %v, 50 instances beat every 5 s (15 s of silence make unhealthy, 30 s delete), then SIGCONT", pause)
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: beaters, period: 5 * time.Second, pause: 20 * time.Millisecond})
	defer stop()
	if err := s.allBeating(ctx, beaters); err != nil {
		return err
	}
	p.Process.Signal(syscall.SIGSTOP)
	run.Wait(ctx, pause)
	p.Process.Signal(syscall.SIGCONT)
	run.Wait(ctx, 10*time.Second) // two beats of each
	s.stayedHealthy()
	s.promise(s.silence(read) < pause+5*time.Second, "no read was answered for %v", s.silence(read))
	if err := s.check(ctx, false); err != nil {
		return err
	}
	stop()
	return s.endWell(p)
}

// stayedHealthy is promised where nobody who beats may be thought dead.
func (s *scene) stayedHealthy() {
	flips, missed := s.changed()
	s.promise(flips == 0 && missed == 0, "%d who beat became unhealthy, %d left the list", flips, missed)
}
