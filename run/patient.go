package run

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

const (
	// shortPause is how long nobody is let in after the system had no room for
	// one more connection.
	shortPause = 50 * time.Millisecond
	// calm is how long a shortage must not have been met to be over: files come
	// free one by one, and each is taken at once.
	calm = 10 * time.Second
)

// ShortageLog is what the Logger of a server given to Serve may be too: then it
// is told when the system has no room for further connections, and with nil
// when that is over. Each change is told once.
type ShortageLog interface{ Shortage(cause error) }

// patientListener waits while the system is short of files or memory, where a
// server would end: those who are connected need it most then.
type patientListener struct {
	net.Listener
	ctx   context.Context // of Serve: Accept takes none
	tell  func(cause error)
	met   time.Time // when a shortage was met last
	short bool
}

func patiently(ctx context.Context, ln net.Listener, logger any) net.Listener {
	tell := func(error) {}
	if log, ok := logger.(ShortageLog); ok {
		tell = log.Shortage
	}
	return &patientListener{Listener: ln, ctx: ctx, tell: tell}
}

// Accept implements net.Listener. One goroutine calls it.
func (l *patientListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if !isShortage(err) {
			if err == nil && l.short && time.Since(l.met) > calm {
				l.short = false
				l.tell(nil)
			}
			return conn, err
		}
		if l.met = time.Now(); !l.short {
			l.short = true
			l.tell(err)
		}
		if Wait(l.ctx, shortPause) != nil {
			return nil, net.ErrClosed
		}
	}
}

// isShortage tells the errors of accept(2) that pass when something is closed.
func isShortage(err error) bool {
	for _, one := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
