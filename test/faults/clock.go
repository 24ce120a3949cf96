package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// skewed is clock_gettime for amd64 that asks the kernel and adds seconds to
// CLOCK_REALTIME, which is 0; the monotonic clocks stay as they are.
//
//	mov eax, 228; syscall; test edi, edi; jne out; add qword [rsi], SECONDS; out: ret
var skewed = []byte{0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x07, 0x48, 0x81, 0x06, 0, 0, 0, 0, 0xc3}

const skewedSeconds = 14 // where SECONDS stand, 4 bytes with a sign

// wall moves the wall clock of one process: the function by which it reads the
// clock stands in a page that the kernel gives it (vDSO), and is replaced there.
type wall struct {
	pid int
	at  int64 // address of the function
}

// takeWall replaces the function; the clock does not move yet.
func takeWall(p *server) (*wall, error) {
	if runtime.GOARCH != "amd64" {
		return nil, cannot("the clock of a process is moved on amd64 only")
	}
	w := &wall{pid: p.Process.Pid}
	image, start, err := w.vdso()
	if err != nil {
		return nil, cannot("the vDSO: %v", err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, cannot("the vDSO: %v", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, cannot("the vDSO: %v", err)
	}
	for _, symbol := range symbols {
		if symbol.Name == "__vdso_clock_gettime" {
			w.at = start + int64(symbol.Value)
			return w, w.write(w.at, skewed)
		}
	}
	return nil, cannot("the vDSO has no clock_gettime")
}

func (w *wall) vdso() (image []byte, start int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", w.pid))
	if err != nil {
		return nil, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var end int64
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return nil, 0, err
		}
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", w.pid))
		if err != nil {
			return nil, 0, err
		}
		defer memory.Close()
		image = make([]byte, end-start)
		_, err = memory.ReadAt(image, start)
		return image, start, err
	}
	return nil, 0, fmt.Errorf("it is not mapped")
}

// write changes code of the process while it stands still.
func (w *wall) write(at int64, code []byte) error {
	syscall.Kill(w.pid, syscall.SIGSTOP)
	defer syscall.Kill(w.pid, syscall.SIGCONT)
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", w.pid), os.O_WRONLY, 0)
	if err != nil {
		return cannot("changing code: %v", err)
	}
	defer memory.Close()
	if _, err := memory.WriteAt(code, at); err != nil {
		return cannot("changing code: %v", err)
	}
	return nil
}

// move sets how far the clock is off.
func (w *wall) move(by time.Duration) error {
	return w.write(w.at+skewedSeconds, binary.LittleEndian.AppendUint32(nil, uint32(int32(by/time.Second))))
}

const day = 24 * time.Hour

// wallClock moves the clock a day on and a day back, with auth on: tokens are
// what lives by the wall clock, silence is not.
func wallClock(ctx context.Context, s *scene) error {
	s.made = "the wall clock of the running process a day on, back, a day back, and right again (its vDSO patched by /proc/PID/mem); auth on, 20 who beat, one who falls silent"
	users := s.folder + "/users"
	if err := s.makeUser(users); err != nil {
		return err
	}
	s.env = []string{"SIDEBEAT_USERS_FILE=" + users}
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	w, err := takeWall(p)
	if err != nil {
		return err
	}
	if err := s.client.login("nacos", password); err != nil {
		return err
	}
	stop := s.load(ctx, crowd{beaters: 20, period: 500 * time.Millisecond, pause: 2 * time.Millisecond})
	defer stop()
	if err := s.allBeating(ctx, 20); err != nil {
		return err
	}
	for _, by := range []time.Duration{day, 0, -day, 0} {
		if err := s.moved(ctx, w, by); err != nil {
			return fmt.Errorf("the clock %v off: %w", by, err)
		}
	}
	s.stayedHealthy()
	if err := s.check(ctx, false); err != nil {
		return err
	}
	stop()
	return s.againAfterKill(ctx, p)
}

// moved moves the clock and looks at what lives by a clock.
func (s *scene) moved(ctx context.Context, w *wall, by time.Duration) error {
	if err := s.fallSilent(); err != nil {
		return err
	}
	before := time.Now()
	if err := w.move(by); err != nil {
		return err
	}
	if status, _ := s.client.ask("GET", "/v1/ns/instance/list", url.Values{"serviceName": {"silent"}}, patience); status == "403" {
		s.note = strings.TrimPrefix(s.note+fmt.Sprintf(", %+.0f h: tokens of before are refused with 403, a login gives one that holds", by.Hours()), ", ")
	}
	if err := s.client.login("nacos", password); err != nil {
		return err
	}
	var nodes struct {
		Data []struct {
			ExtendInfo struct{ LastRefreshTime int64 }
		}
	}
	if err := s.client.readJSON("/v1/core/cluster/nodes", nil, &nodes); err != nil || len(nodes.Data) != 1 {
		return fmt.Errorf("cannot read the clock of the registry: %v %v", nodes, err)
	}
	shown := time.UnixMilli(nodes.Data[0].ExtendInfo.LastRefreshTime)
	if off := shown.Sub(time.Now().Add(by)).Abs(); off > time.Minute {
		return fmt.Errorf("the clock of the registry did not move, it shows %v", shown.UTC())
	}
	l, _ := s.client.list("silent", patience)
	s.promise(len(l.Hosts) == 1 && l.Hosts[0].Healthy, "who had beaten a moment ago was listed as %v", l.Hosts)
	err := s.until(ctx, 10*time.Second, "who is silent is deleted", func() bool {
		l, status := s.client.list("silent", patience)
		return status == "200" && len(l.Hosts) == 0
	})
	if took := time.Since(before); err == nil && took < 2*time.Second {
		s.break_("who fell silent was deleted after %v instead of 3 s", took)
	}
	run.Wait(ctx, time.Second)
	return err
}

// fallSilent registers an instance that never beats: 1.5 s make it unhealthy,
// 3 s delete it.
func (s *scene) fallSilent() error {
	status, body := s.client.ask("POST", "/v1/ns/instance", url.Values{"serviceName": {"silent"}, "ip": {loopback(0)}, "port": {"80"},
		"metadata": {`{"preserved.heart.beat.interval":"500","preserved.heart.beat.timeout":"1500","preserved.ip.delete.timeout":"3000"}`}}, patience)
	if status != "200" {
		return fmt.Errorf("a registration was answered %s %.100s", status, body)
	}
	return nil
}
