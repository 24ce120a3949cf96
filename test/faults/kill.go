package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// killed kills the registry at random moments under writes and beats: while it
// serves, and now and then while it starts.
func killed(ctx context.Context, s *scene) error {
	moments := s.some(200, 40)
	s.made = fmt.Sprintf("SIGKILL at %d random moments under writes of 7 clients and beats of 20; every fifth while it starts", moments)
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond})
	defer stop()
	for n := range moments {
		p, err := s.begin()
		if err != nil {
			return err
		}
		if n%5 == 4 {
			run.Wait(ctx, time.Duration(s.random.Int64N(int64(25*time.Millisecond))))
			p.kill()
			continue
		}
		if err := s.serves(ctx, p); err != nil {
			return fmt.Errorf("after %d kills: %w", n, err)
		}
		if err := s.check(ctx, true); err != nil {
			return fmt.Errorf("after %d kills: %w", n, err)
		}
		run.Wait(ctx, time.Duration(s.random.Int64N(int64(500*time.Millisecond))))
		p.kill()
	}
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	if err := s.check(ctx, true); err != nil {
		return err
	}
	if err := s.allBeating(ctx, 20); err != nil {
		return err
	}
	s.promise(s.count(write, "200") > moments, "too little was written to say anything")
	stop()
	return s.endWell(p)
}

// endWell ends the registry in order and notes it.
func (s *scene) endWell(p *server) error {
	err := p.stop()
	s.ended = p.end()
	return err
}
