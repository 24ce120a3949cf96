package run

import (
	"os"
	"sync"
	"time"
)

const (
	outletMost = 64 << 10              // bytes of lines that wait, as many as a pipe of Linux holds
	outletWait = 50 * time.Millisecond // for a line to be written, before its writer goes on
)

// Outlet writes lines to a file whose reader may stop reading or go away, as
// the other end of standard error may: nobody who writes is held up by that
// for more than 50 ms, and no write fails (sirupsen/logrus#1201). While the
// file takes nothing, lines wait, up to 64 KiB of them; further ones are lost
// and counted. While it takes all, a line is written when Write returns.
//
// Use NewOutlet; it may be used by many goroutines at once. A goroutine writes
// while there are lines; one that the file holds up ends with the process.
type Outlet struct {
	file *os.File

	mu    sync.Mutex
	lines [][]byte
	size  int           // bytes in lines
	idle  chan struct{} // closed when all is written; nil: nothing is being written
	stuck bool          // the file did not take a line in time
	lost  uint64
}

// NewOutlet returns an Outlet that writes to the file.
func NewOutlet(file *os.File) *Outlet { return &Outlet{file: file} }

// Fd is the file's, by which a terminal is told from a file.
func (o *Outlet) Fd() uintptr { return o.file.Fd() }

// Lost counts the lines that nobody will read.
func (o *Outlet) Lost() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// Write takes one line, whole. It returns no error.
func (o *Outlet) Write(line []byte) (int, error) {
	if idle := o.take(line); idle != nil {
		o.await(idle)
	}
	return len(line), nil
}

// take lets the line wait to be written, and gives what to wait for: nil while
// there is no hope that the file takes it soon.
func (o *Outlet) take(line []byte) (idle chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.idle != nil && o.size+len(line) > outletMost {
		o.lost++
		return nil
	}
	o.lines = append(o.lines, append([]byte(nil), line...))
	o.size += len(line)
	if o.idle == nil {
		o.idle = make(chan struct{})
		go o.work()
	}
	if o.stuck {
		return nil
	}
	return o.idle
}

func (o *Outlet) await(idle chan struct{}) {
	timer := time.NewTimer(outletWait)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		o.mu.Lock()
		o.stuck = o.idle == idle
		o.mu.Unlock()
	}
}

// work writes until nothing waits.
func (o *Outlet) work() {
	for {
		line, idle := o.next()
		if line == nil {
			close(idle)
			return
		}
		if _, err := o.file.Write(line); err != nil {
			o.mu.Lock()
			o.lost++
			o.mu.Unlock()
		}
	}
}

// next gives the line that waits longest, or the channel to close.
func (o *Outlet) next() (line []byte, idle chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 0 {
		idle, o.idle, o.stuck, o.lines = o.idle, nil, false, nil
		return nil, idle
	}
	line, o.lines = o.lines[0], o.lines[1:]
	o.size -= len(line)
	return line, nil
}
