package check

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connect asks whether somebody listens on the address. It returns nil, a
// unix.Errno of the kernel, os.ErrDeadlineExceeded or the context's error.
//
// Unless full is set the connection is half-open: with TCP_QUICKACK off the
// kernel holds back the last ACK of the handshake for up to 200 ms, and with a
// linger of 0 the close sends RST instead, so the application's accept never
// sees it, no server logs it and neither side keeps a TIME_WAIT. Should the
// close come later than that (a starved process), the application sees a
// connection that is reset at once.
//
// The socket waits in the runtime's own poller: half the CPU of net.Dialer,
// because neither addresses nor connection objects are made.
func connect(ctx context.Context, address netip.AddrPort, full bool) error {
	family, to := sockaddr(address)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if !full {
		err = halfOpen(fd)
	}
	if err == nil {
		err = unix.Connect(fd, to)
	}
	if errors.Is(err, unix.EINPROGRESS) {
		// On loopback the handshake is over by now: no need to wait in the poller.
		err = progress(fd, to)
	}
	if err == unix.EALREADY {
		return await(ctx, os.NewFile(uintptr(fd), "probe"), to)
	}
	unix.Close(fd)
	return err
}

// halfOpen makes a connect of the socket end before the handshake does.
func halfOpen(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0); err != nil {
		return err
	}
	return abort(fd)
}

// abort makes the close of a socket drop its connection, and leave no
// TIME_WAIT.
func abort(fd int) error {
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
}

// abortive is for the Control of a net.Dialer, which closes what was connected
// to itself and dials again. Whoever gets the connection has to take it back by
// SetLinger(-1).
func abortive(_, _ string, raw syscall.RawConn) error {
	var fault error
	err := raw.Control(func(fd uintptr) { fault = abort(int(fd)) })
	return errors.Join(err, fault)
}

// progress tells how a connect goes: a second connect(2) answers EALREADY
// while it is under way, then once with its outcome.
func progress(fd int, to unix.Sockaddr) error {
	err := unix.Connect(fd, to)
	if err != nil && err != unix.EISCONN {
		return err
	}
	if own, err := unix.Getsockname(fd); err == nil && same(own, to) {
		abort(fd) // or the port stays in use, and whoever is to listen there cannot
		return unix.ECONNREFUSED
	}
	return nil
}

// same tells that a socket was connected to itself (simultaneous open, RFC
// 9293, 3.5): the kernel gave it the very port of this machine that it asked
// for, so nobody listens there.
func same(own, to unix.Sockaddr) bool {
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		to, ok := to.(*unix.SockaddrInet4)
		return ok && own.Port == to.Port && own.Addr == to.Addr
	case *unix.SockaddrInet6:
		to, ok := to.(*unix.SockaddrInet6)
		return ok && own.Port == to.Port && own.Addr == to.Addr
	}
	return false
}

// await waits for the outcome in the runtime's poller and closes the socket.
// The kernel is asked once more at the deadline, so that a process that was
// starved does not call a target dead that had long answered.
func await(ctx context.Context, socket *os.File, to unix.Sockaddr) error {
	defer socket.Close()
	if deadline, ok := ctx.Deadline(); ok {
		socket.SetWriteDeadline(deadline)
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { socket.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	outcome := error(unix.EALREADY)
	look := func(fd uintptr) bool {
		outcome = progress(int(fd), to)
		return outcome != unix.EALREADY
	}
	waited := conn.Write(look)
	if waited != nil && outcome == unix.EALREADY {
		if err := conn.Control(func(fd uintptr) { look(fd) }); err != nil {
			return err
		}
	}
	switch {
	case outcome != unix.EALREADY:
		return outcome
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	}
	return os.ErrDeadlineExceeded
}

// sockaddr gives the address in the form of the kernel. An IPv4-mapped address
// is asked over IPv4.
func sockaddr(address netip.AddrPort) (family int, to unix.Sockaddr) {
	ip := address.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(address.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(address.Port()), ZoneId: zone(ip.Zone()), Addr: ip.As16()}
}

// zone gives the index of the interface that the zone of an IPv6 address
// names; 0 when there is none.
func zone(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	if itf, err := net.InterfaceByName(name); err == nil {
		return uint32(itf.Index)
	}
	return 0
}
