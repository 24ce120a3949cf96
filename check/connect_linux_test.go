package check

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t *testing.T, address string) (*net.TCPListener, netip.AddrPort) {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s here: %v", address, err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.(*net.TCPListener), ln.Addr().(*net.TCPAddr).AddrPort()
}

func TestConnect(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, address := listen(t, host)
		for _, full := range []bool{false, true} {
			if err := connect(ctx, address, full); err != nil {
				t.Errorf("%s full=%v: %v", address, full, err)
			}
		}
		ln.Close()
		if err := connect(ctx, address, false); err != unix.ECONNREFUSED {
			t.Errorf("%s closed: got %v, want refused", address, err)
		}
	}
}

// The application must never see a half-open connection, and must see a full one.
func TestHalfOpenIsInvisible(t *testing.T) {
	ln, address := listen(t, "127.0.0.1:0")
	for range 200 {
		if err := connect(t.Context(), address, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := connect(t.Context(), address, true); err != nil {
		t.Fatal(err)
	}
	ln.SetDeadline(time.Now().Add(5 * time.Second))
	accepted := 0
	for {
		conn, err := ln.Accept()
		if err != nil {
			t.Fatalf("the full connection did not arrive: %v", err)
		}
		accepted++
		n, err := conn.Read(make([]byte, 1))
		conn.Close()
		if n == 0 && err != nil && !errors.Is(err, unix.ECONNRESET) {
			break // FIN: the full one
		}
	}
	if accepted != 1 {
		t.Errorf("accept saw %d connections, want only the full one", accepted)
	}
}

// full gives a listener whose queue is full: further SYNs are dropped.
func full(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
	for range 2 {
		conn, err := net.DialTimeout("tcp", address.String(), time.Second)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
		}
	}
	return address
}

func TestConnectEndsInTime(t *testing.T) {
	address := full(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := connect(ctx, address, false)
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > 2*time.Second {
		t.Errorf("got %v after %v, want a deadline error at 50ms", err, time.Since(start))
	}
	ctx, cancel = context.WithCancel(t.Context())
	context.AfterFunc(ctx, func() {})
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := connect(ctx, address, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}

// A deadline that has passed does not hide an answer that the kernel has.
func TestConnectAsksTheKernelAtTheDeadline(t *testing.T) {
	_, address := listen(t, "127.0.0.1:0")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, to := sockaddr(address)
	if err := unix.Connect(fd, to); err != unix.EINPROGRESS {
		t.Fatalf("got %v, want a connect in progress", err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if err := await(ctx, os.NewFile(uintptr(fd), "probe"), to); err != nil {
		t.Errorf("got %v for a connection that was made before the late look", err)
	}
}

func BenchmarkConnect(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	address := ln.Addr().(*net.TCPAddr).AddrPort()
	b.Run("halfopen", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := connect(b.Context(), address, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("dialer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			conn, err := net.DialTimeout("tcp", address.String(), 3*time.Second)
			if err != nil {
				b.Fatal(err)
			}
			conn.Close()
		}
	})
}
