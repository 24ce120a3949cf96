package check

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A port that nobody listens on, among those the kernel gives to clients, is
// asked until the kernel gives that very port to the question: it is connected
// to itself, and still nobody listens (stackoverflow.com/questions/5139808).
// The test binary runs itself in a network namespace with few such ports.
func TestNobodyIsConnectedToItself(t *testing.T) {
	if os.Getenv("CHECK_TEST_SELF") != "" {
		askDeadPort(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestNobodyIsConnectedToItself$")
	child.Env = append(os.Environ(), "CHECK_TEST_SELF=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := child.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || strings.Contains(string(out), "cannot narrow") {
		t.Skipf("no network namespace of our own here: %v %s", err, out)
	}
	if err != nil || !strings.Contains(string(out), "asked 4000 times") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func askDeadPort(t *testing.T) {
	if err := errors.Join(loopbackUp(), os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("44590 44610"), 0)); err != nil {
		fmt.Println("cannot narrow the ports:", err)
		return
	}
	a := newAsker(t)
	for range 1000 {
		for _, host := range []string{"127.0.0.1", "::1"} {
			for _, full := range []bool{false, true} {
				err := connect(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(host), 44600), full)
				if err != unix.ECONNREFUSED {
					t.Fatalf("%s full=%v: got %v, want refused", host, full, err)
				}
				canListen(t)
			}
		}
		expect(t, a, "http://:44600/", Sick, "refused")
		canListen(t)
	}
	fmt.Println("asked 4000 times")
}

// canListen is the app that comes back: no question may have left the port in
// use, as a connection to itself does that is closed in the usual way.
func canListen(t *testing.T) {
	t.Helper()
	for _, address := range []string{"0.0.0.0:44600", "[::1]:44600"} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("the app cannot listen where it was asked: %v", err)
		}
		ln.Close()
	}
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
