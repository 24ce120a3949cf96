package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

// tmpfs makes a disk of the scene's own, gone with the scene.
func (s *scene) tmpfs(options string) (at string, err error) {
	at = filepath.Join(s.folder, "disk")
	if os.Getenv(apart) == "" {
		return "", cannot("a disk of its own needs root")
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, options); err != nil {
		return "", cannot("mounting a disk: %v", err)
	}
	return at, nil
}

func unmount(at string) { unix.Unmount(at, unix.MNT_DETACH) }

// diskFull fills the disk to the last byte while everybody writes, and makes
// room again.
func diskFull(ctx context.Context, s *scene) error {
	disk, err := s.tmpfs("size=160m")
	if err != nil {
		return err
	}
	defer unmount(disk)
	s.data = disk + "/data"
	s.made = "a disk of 160 MB filled to the last byte within milliseconds, under writes and beats; emptied after some seconds, twice"
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond, pause: time.Millisecond})
	defer stop()
	if err := s.allBeating(ctx, 20); err != nil {
		return err
	}
	for range 2 {
		if err := s.filled(ctx, disk); err != nil {
			return err
		}
	}
	s.stayedHealthy()
	s.unaffected()
	others := s.others(write, "200", "200 without consent", "503")
	s.promise(len(others) == 0, "durable writes were answered %v", others)
	s.promise(p.says("the disk is nearly full") || p.says("the disk is full"), "the log does not say that the disk is full")
	if err := s.check(ctx, false); err != nil {
		return err
	}
	stop()
	return s.againAfterKill(ctx, p)
}

// filled fills the disk and waits until writes are refused, then makes room and
// waits until they are taken.
func (s *scene) filled(ctx context.Context, disk string) error {
	refused := s.count(write, "503")
	filler, err := fill(disk)
	if err != nil {
		return err
	}
	err = s.until(ctx, 5*time.Second, "durable writes are refused with 503", func() bool { return s.count(write, "503") > refused+5 })
	if err != nil {
		return err
	}
	run.Wait(ctx, 2*time.Second)
	if err := os.Remove(filler); err != nil {
		return err
	}
	taken := s.count(write, "200")
	return s.until(ctx, 10*time.Second, "durable writes are taken again", func() bool { return s.count(write, "200") > taken+50 })
}

// fill takes every byte of the disk.
func fill(disk string) (path string, err error) {
	path = filepath.Join(disk, "filler")
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	size := int64(0)
	for piece := int64(16 << 20); piece >= 4096; {
		if err := unix.Fallocate(int(file.Fd()), 0, size, piece); err != nil {
			piece /= 2
			continue
		}
		size += piece
	}
	return path, nil
}

// unaffected is promised to beats and reads where only the disk is ill.
func (s *scene) unaffected() {
	for _, kind := range []string{beat, read} {
		others := s.others(kind, "200", "not known, registered again")
		s.promise(len(others) == 0, "%s were answered %v", kind, others)
		s.promise(s.silence(kind) < 5*time.Second, "no %s were answered for %v", kind, s.silence(kind))
	}
}

// againAfterKill shows that what was acknowledged outlives the process.
func (s *scene) againAfterKill(ctx context.Context, p *server) error {
	p.kill()
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	if err := s.check(ctx, true); err != nil {
		return err
	}
	err = s.endWell(p)
	s.ended = "went on; killed and started again: all there; " + s.ended
	return err
}

// diskReadOnly starts the registry where nothing can be written.
func diskReadOnly(ctx context.Context, s *scene) error {
	disk, err := s.tmpfs("size=160m")
	if err != nil {
		return err
	}
	defer unmount(disk)
	s.data = disk + "/data"
	s.made = "a folder with data on a disk mounted read-only, then writable"
	if err := s.writeSome(ctx); err != nil {
		return err
	}
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return cannot("mounting a disk read-only: %v", err)
	}
	s.refusesToStart("read-only file system")
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT, ""); err != nil {
		return err
	}
	return s.startsAgain(ctx, "writable again")
}

// writeSome has the crowd write for a moment, then kills the registry.
func (s *scene) writeSome(ctx context.Context) error {
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer p.kill()
	defer s.load(ctx, crowd{pause: time.Millisecond})()
	return s.until(ctx, 10*time.Second, "some is written", func() bool { return s.count(write, "200") > 500 })
}

// refusesToStart starts the registry and wants it to end with 1 and the words.
func (s *scene) refusesToStart(text string) {
	p, err := s.begin()
	if err == nil {
		err = p.awaitEnd(10 * time.Second)
	}
	if err != nil {
		s.break_("%v", err)
		return
	}
	s.ended = strings.Trim(s.ended+"; refuses to start: "+p.end(), "; ")
	s.promise(p.ProcessState.ExitCode() == 1 && p.says(text), "want exit 1 and %q, got %s", text, p.end())
}

// startsAgain starts the registry where all is well again.
func (s *scene) startsAgain(ctx context.Context, when string) error {
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	if err := s.check(ctx, true); err != nil {
		return err
	}
	before := s.ended
	err = s.endWell(p)
	s.ended = strings.Trim(before+"; "+when+": all there; "+s.ended, "; ")
	return err
}

// loopDisk makes a disk of ext4 on the image that turns read-only at its first
// error, as most are configured to.
func (s *scene) loopDisk() (at string, err error) {
	if os.Getenv(apart) == "" {
		return "", cannot("a disk of its own needs root")
	}
	at = filepath.Join(s.folder, "disk")
	file, err := os.Create(s.image())
	if err != nil {
		return "", err
	}
	if err := errors.Join(file.Truncate(256<<20), file.Close(), os.Mkdir(at, 0o700)); err != nil {
		return "", err
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", s.image()).CombinedOutput(); err != nil {
		return "", cannot("mkfs.ext4: %v %s", err, out)
	}
	_, err = s.mountLoop(at)
	return at, err
}

func (s *scene) image() string { return filepath.Join(s.folder, "image") }

// mountLoop mounts the image; its device goes when it is unmounted.
func (s *scene) mountLoop(at string) (device string, err error) {
	out, err := exec.Command("losetup", "-f", "--show", s.image()).CombinedOutput()
	if err != nil {
		return "", cannot("a loop device: %v %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	defer exec.Command("losetup", "-d", device).Run()
	if err := unix.Mount(device, at, "ext4", 0, "errors=remount-ro"); err != nil {
		return "", cannot("mounting ext4: %v", err)
	}
	return device, nil
}

// diskTurnsReadOnly has the kernel find an error in the file system while the
// registry writes to it.
func diskTurnsReadOnly(ctx context.Context, s *scene) error {
	disk, err := s.loopDisk()
	if err != nil {
		return err
	}
	defer unmount(disk)
	s.data = disk + "/data"
	s.made = "ext4 on a loop device with errors=remount-ro, an error triggered in the kernel under writes and beats; unmounted and mounted again after the end"
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond, pause: time.Millisecond})
	defer stop()
	if err := s.allBeating(ctx, 20); err != nil {
		return err
	}
	if err := failFileSystem(disk); err != nil {
		return err
	}
	if err := p.awaitEnd(10 * time.Second); err != nil {
		return err
	}
	why := p.says("read-only file system") || p.says("input/output error") // the latter for what was on its way
	s.promise(p.ProcessState.ExitCode() == 1 && why, "want exit 1 and why, got %s", p.end())
	s.ended = p.end()
	s.refusesToStart("read-only file system")
	stop()
	unmount(disk)
	if _, err := s.mountLoop(disk); err != nil {
		return err
	}
	return s.startsAgain(ctx, "writable again")
}

// failFileSystem has the kernel believe that it found the disk corrupted.
func failFileSystem(disk string) error {
	var st unix.Stat_t
	if err := unix.Stat(disk, &st); err != nil {
		return err
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return cannot("finding the device: %v", err)
	}
	if err := os.WriteFile("/sys/fs/ext4/"+filepath.Base(device)+"/trigger_fs_error", []byte("1"), 0); err != nil {
		return cannot("an error of ext4: %v", err)
	}
	return nil
}
