package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

const (
	shutdownIoctl = 0x8004587d // EXT4_IOC_SHUTDOWN, linux/fs.h
	noLogFlush    = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH: what was not synced is lost
)

// powerCut cuts the disk off at random moments, so that only what was synced
// comes back: kill -9 alone leaves everything that was written to the kernel.
func powerCut(ctx context.Context, s *scene) error {
	moments := s.some(40, 8)
	disk, err := s.loopDisk()
	if err != nil {
		return err
	}
	defer unmount(disk)
	users := s.folder + "/users"
	if err := s.makeUser(users); err != nil {
		return err
	}
	s.data, s.env = disk+"/data", []string{"SIDEBEAT_USERS_FILE=" + users}
	s.made = fmt.Sprintf("ext4 on a loop device cut off without flushing (EXT4_IOC_SHUTDOWN) at %d random moments under writes and beats, auth on; mounted again", moments)
	for n := range moments {
		if err := s.cutOnce(ctx, disk); err != nil {
			return fmt.Errorf("after %d cuts: %w", n, err)
		}
	}
	return s.startsAgain(ctx, "after the last")
}

// cutOnce starts the registry, compares, and cuts the disk off a moment later.
func (s *scene) cutOnce(ctx context.Context, disk string) error {
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	if s.client.token.Load() == nil {
		if err := s.client.login("nacos", password); err != nil {
			return err
		}
	}
	if err := s.check(ctx, true); err != nil { // a token of before the cut holds, else this fails
		return err
	}
	stop := s.load(ctx, crowd{beaters: 10, period: 500 * time.Millisecond})
	defer stop()
	run.Wait(ctx, time.Duration(s.random.Int64N(int64(500*time.Millisecond))))
	if err := cutOff(disk); err != nil {
		return err
	}
	err = p.awaitEnd(10 * time.Second)
	stop()
	s.promise(err != nil || p.ProcessState.ExitCode() == 1, "the registry ended with %s", p.end())
	p.kill()
	// A process that was just forked holds the folder until it has begun its own program.
	if err := s.until(ctx, 5*time.Second, "the disk is unmounted", func() bool { return unix.Unmount(disk, 0) == nil }); err != nil {
		return err
	}
	_, err = s.mountLoop(disk)
	return err
}

func cutOff(disk string) error {
	file, err := os.Open(disk)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.IoctlSetPointerInt(int(file.Fd()), shutdownIoctl, noLogFlush); err != nil {
		return cannot("cutting off ext4: %v", err)
	}
	return nil
}
