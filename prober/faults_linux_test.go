package prober

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// serving lets do treat each connection to an address, side by side, until the
// test ends.
func serving(t *testing.T, address string, do func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); do(conn) }()
		}
	}()
	return ln.Addr().String()
}

// says reads the request, however it comes, and answers with a text.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, text)
	}
}

// unhealthyIn gives the addresses that are marked in a store.
func unhealthyIn(store *registry.Store, name string) (all []string) {
	service := instance(0).Service
	service.Name = name
	for _, in := range store.All(service) {
		if !in.Healthy {
			all = append(all, in.Address())
		}
	}
	return all
}

// neverMarked looks at the real registry for a while: nobody of the service is
// marked in it.
func neverMarked(t *testing.T, store *registry.Store, name string, while time.Duration) {
	t.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); run.Wait(t.Context(), 10*time.Millisecond) {
		if marked := unhealthyIn(store, name); len(marked) > 0 {
			t.Fatalf("%d marked: %v", len(marked), marked)
		}
	}
}

// patient is for targets that share the process, and a busy machine, with the
// prober: one late answer of theirs says nothing.
func patient(c *Config) { c.ProbeTimeout, c.ProbeFall = 500*time.Millisecond, 2 }

// Targets that take a connection and then hang, drip, reset or never stop
// talking: each gets its own verdict in time, and none costs another its
// verdict, or the prober its memory.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	store := registry.NewStore()
	check := map[string]string{metaCheck: "http:///"}
	kind := func(name string, do func(net.Conn)) (keys []registry.Key) {
		for range 4 {
			keys = append(keys, at(t, store, name, serving(t, "127.0.0.1:0", do), check))
		}
		return keys
	}
	hang := kind("hangs", func(conn net.Conn) { io.Copy(io.Discard, conn) })
	drip := kind("drips", func(conn net.Conn) {
		for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") {
			if _, err := conn.Write([]byte{b}); err != nil || run.Wait(t.Context(), 100*time.Millisecond) != nil {
				return
			}
		}
	})
	reset := kind("resets", func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) })
	large := kind("talks", func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 100<<20)
		for block := make([]byte, 1<<20); ; {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	})
	for range 40 {
		at(t, store, "well", serving(t, "127.0.0.1:0", says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")), check)
	}
	before := heap()
	p := real(t, store, netpolicy.Prober(true), patient)
	for _, keys := range [][]registry.Key{hang, drip, reset} {
		for _, key := range keys {
			becomes(t, store, key, false)
		}
	}
	neverMarked(t, store, "well", 4*time.Second)
	if marked := unhealthyIn(store, "talks"); len(marked) > 0 {
		t.Errorf("%v of %d are marked although they answer 200", marked, len(large))
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if n := len(p.Targets(0, 1000).Targets); n != 56 {
		t.Errorf("%d targets", n)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// apart runs this test again in namespaces of its own, and tells that this is
// the run outside of them.
func apart(t *testing.T, flags uintptr) bool {
	t.Helper()
	const mark = "SIDEBEATTEST_APART"
	if os.Getenv(mark) != "" {
		return false
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), mark+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	out, err := child.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSYS):
		t.Skipf("no namespace of our own here: %v", err)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Fatalf("%v\n%s", cmp.Or(err, errors.New("it did not pass")), out)
	}
	return true
}

// ip runs ip(8) in the namespace of the test.
func ip(t *testing.T, words string) {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("networks cannot be made here: %v", err)
	}
	if err != nil {
		t.Fatalf("ip %s: %v: %s", words, err, out)
	}
}

// The prober's own network goes away, so that packets vanish and then so that
// there is no route, and comes back: nobody is marked. Who died meanwhile is.
func TestOwnNetworkIsCut(t *testing.T) {
	t.Parallel()
	if apart(t, syscall.CLONE_NEWNET) {
		return
	}
	ip(t, "link set lo up")
	ip(t, "link add nowhere type veth peer name beyond")
	ip(t, "link set beyond up")
	ip(t, "link set nowhere up arp off") // so that what is sent is not held back, and lost
	ip(t, "addr add 10.78.1.1/24 dev nowhere")
	ip(t, "route add 10.78.0.0/24 dev nowhere") // where packets vanish
	const here = "local 10.78.0.0/24 dev lo"
	ip(t, "route add "+here)
	store := registry.NewStore()
	_, port, _ := net.SplitHostPort(serving(t, "0.0.0.0:0", says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))
	for i := range 20 {
		at(t, store, "bare", fmt.Sprintf("10.78.0.%d:%s", 10+i, port), nil)
		at(t, store, "web", fmt.Sprintf("10.78.0.%d:%s", 40+i, port), map[string]string{metaCheck: "http:///"})
	}
	p := real(t, store, netpolicy.Prober(true), func(c *Config) { c.ProbeFall, c.ProbeRise = 3, 2 })
	neverMarked(t, store, "bare", 1500*time.Millisecond)
	for _, cut := range []string{"", "link set nowhere down"} {
		ip(t, "route del "+here)
		if cut != "" {
			ip(t, cut)
		}
		neverMarked(t, store, "web", 2*time.Second)
		neverMarked(t, store, "bare", 2500*time.Millisecond)
		if state := p.Targets(0, 1).State; state != "no answer from anywhere" {
			t.Errorf("%q: the state is %q", cut, state)
		}
		ip(t, "route add "+here)
		neverMarked(t, store, "bare", 1500*time.Millisecond)
		neverMarked(t, store, "web", 0)
	}
	dead := at(t, store, "bare", "10.78.0.10:9", nil)
	becomes(t, store, dead, false)
	if marked := unhealthyIn(store, "bare"); len(marked) != 1 {
		t.Errorf("marked: %v", marked)
	}
}

// The prober has no files left, and then no ports: it asks nobody, says so, and
// marks nobody.
func TestOwnSocketsAreUsedUp(t *testing.T) {
	t.Parallel()
	if apart(t, syscall.CLONE_NEWNET) {
		return
	}
	ip(t, "link set lo up")
	store := registry.NewStore()
	_, port, _ := net.SplitHostPort(serving(t, "0.0.0.0:0", says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))
	for i := range 10 {
		at(t, store, "bare", fmt.Sprintf("127.0.1.%d:%s", 10+i, port), nil)
		at(t, store, "web", fmt.Sprintf("127.0.1.%d:%s", 40+i, port), map[string]string{metaCheck: "http:///"})
	}
	p := real(t, store, netpolicy.Prober(true), patient)
	neverMarked(t, store, "bare", 1500*time.Millisecond)
	f := func(cause string, use, free func()) {
		t.Helper()
		use()
		for range 5 {
			neverMarked(t, store, "bare", 300*time.Millisecond)
			neverMarked(t, store, "web", 300*time.Millisecond)
		}
		told := 0
		for _, one := range p.Targets(0, 100).Targets {
			if strings.Contains(one.Answers[0].Reason, cause) {
				told++
			}
		}
		free()
		if told != 20 {
			t.Errorf("%q is told of %d targets, want all 20: %+v", cause, told, p.Targets(0, 1).Targets)
		}
		neverMarked(t, store, "bare", 1500*time.Millisecond)
		neverMarked(t, store, "web", 0)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 3 // whatever is open stays so
	f("too many open files",
		func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few) },
		func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	var held []net.Listener
	f("cannot assign requested address", func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("44590 44599"), 0); err != nil {
			t.Fatal(err)
		}
		for n := 44590; n <= 44599; n++ {
			ln, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", n))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, ln)
		}
	}, func() {
		for _, ln := range held {
			ln.Close()
		}
	})
}

// Ten thousand targets on one core, their listener on it too, asked each 5 s
// instead of 20: nobody is marked, and every period in which a target was not
// asked is counted.
func TestTenThousandTargetsOnOneCore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const n = 10_000
	store := registry.NewStore()
	_, port, _ := net.SplitHostPort(serving(t, "0.0.0.0:0", func(net.Conn) {}))
	for i := range n {
		at(t, store, "many", fmt.Sprintf("127.1.%d.%d:%s", i/250, 1+i%250, port), nil)
	}
	p := real(t, store, netpolicy.Prober(true), func(c *Config) { c.ProbeInterval, c.ProbeTimeout = 5*time.Second, 3200*time.Millisecond })
	counts := func() (answers, missed int64) {
		p.with(func(c *core, _ time.Duration) {
			for _, of := range c.tally.answers {
				answers += of
			}
			missed = c.tally.missed
		})
		return answers, missed
	}
	for answers := int64(0); answers < n; answers, _ = counts() {
		neverMarked(t, store, "many", 200*time.Millisecond)
	}
	asked, missed := counts()
	began := time.Now()
	neverMarked(t, store, "many", 11*time.Second)
	periods := int64(time.Since(began) / (5 * time.Second))
	answers, slots := counts()
	asked, missed = answers-asked, slots-missed
	if asked+missed < periods*n {
		t.Errorf("%d asked and %d counted as missed in %d periods of %d targets", asked, missed, periods, n)
	}
	t.Logf("%d asked, %d missed in %d periods", asked, missed, periods)
}

// Targets that keep their connections open come and go: nothing of them stays,
// and who is gone is not asked any more (knative/networking#1139,
// google/cloudprober#275).
func TestTargetsComeAndGo(t *testing.T) {
	t.Parallel()
	if apart(t, 0) { // for the counts of the whole process
		return
	}
	var asked atomic.Int64
	_, port, _ := net.SplitHostPort(serving(t, "0.0.0.0:0", func(conn net.Conn) {
		for { // keeps it as long as the other side does
			if _, err := conn.Read(make([]byte, 4096)); err != nil {
				return
			}
			asked.Add(1)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}))
	store := registry.NewStore()
	p := real(t, store, netpolicy.Prober(true))
	total := func() int { return p.Targets(0, 1).Total }
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !so(); run.Wait(t.Context(), 5*time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not %s: %d targets, %d goroutines, %d files", what, total(), runtime.NumGoroutine(), files(t))
			}
		}
	}
	until("at work", func() bool { return p.Healthy() == nil && p.Targets(0, 1).State == "writing" })
	goroutines, open := runtime.NumGoroutine(), files(t)
	for range 2 {
		var keys []registry.Key
		for i := range 300 {
			keys = append(keys, at(t, store, "web", fmt.Sprintf("127.2.%d.%d:%s", i/200, 1+i%200, port), map[string]string{metaCheck: "http:///"}))
		}
		before := asked.Load()
		until("asked", func() bool { return asked.Load() >= before+int64(len(keys)) })
		for _, key := range keys {
			if err := store.Deregister(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		until("forgotten", func() bool { return total() == 0 })
		until("over", func() bool { return runtime.NumGoroutine() <= goroutines+2 && files(t) <= open+2 })
		after := asked.Load()
		run.Wait(t.Context(), 1200*time.Millisecond)
		if more := asked.Load() - after; more > 0 {
			t.Errorf("%d questions to targets that are gone", more)
		}
	}
}

func files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
