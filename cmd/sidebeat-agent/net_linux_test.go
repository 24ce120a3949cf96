package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lo sets the address of an interface, "lo" or "lo:1"; 0.0.0.0 takes it away.
// It needs a network namespace of the test's own.
func lo(t *testing.T, name, address string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	if address != "" {
		ip := netip.MustParseAddr(address).As4()
		if err := request.SetInet4Addr(ip[:]); err != nil {
			t.Fatal(err)
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request); err != nil {
			t.Fatalf("cannot set %s to %s: %v", name, address, err)
		}
		return
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}

// nameServer answers every question for an IPv4 address with one address, and
// all others with none; how is "silent", "fails", "unknown", "empty", "slow" or
// "well".
type nameServer struct {
	how   atomic.Pointer[string]
	asked atomic.Int64
}

func (s *nameServer) is(how string) { s.how.Store(&how) }

// serve answers on UDP port 53 of an address; it needs a network namespace.
func (s *nameServer) serve(t *testing.T, host string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(host, "53"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			s.asked.Add(1)
			answer := s.answer(buffer[:n])
			if answer == nil {
				continue
			}
			if *s.how.Load() == "slow" {
				time.AfterFunc(700*time.Millisecond, func() { conn.WriteTo(answer, from) })
			} else {
				conn.WriteTo(answer, from)
			}
		}
	}()
}

// answer makes the reply to a query (RFC 1035, section 4): the question is the
// 12 bytes of the header, a name that a 0 ends, type and class.
func (s *nameServer) answer(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5
	if end > len(query) || *s.how.Load() == "silent" {
		return nil
	}
	kind := binary.BigEndian.Uint16(query[end-4:])
	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = 0x81, 0x80           // an answer, recursion as wanted
	copy(reply[6:], []byte{0, 0, 0, 0, 0, 0}) // no records
	switch *s.how.Load() {
	case "fails":
		reply[3] |= 2 // SERVFAIL
	case "unknown":
		reply[3] |= 3 // NXDOMAIN
	case "slow", "well":
		if kind == 1 {
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1) // the name above, A, IN, 0 s
		}
	}
	return reply
}

// resolvers makes these the name servers of this mount namespace, and hides the
// hosts file.
func resolvers(t *testing.T, lines ...string) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(file, "/etc/resolv.conf", "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount("/etc/resolv.conf", 0) })
}
