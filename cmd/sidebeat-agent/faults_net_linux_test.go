package main

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// There is no network when the agent starts, and later it goes away for a
// while: the agent waits, says so once, finds its address when there is one,
// and does not take its own lack of a network for the app's fault.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	if apart(t, syscall.CLONE_NEWNET) {
		return
	}
	lo(t, "lo", "")
	y := fence(t)
	y.cut()
	const home = "10.77.0.7"
	_, port, _ := net.SplitHostPort(y.api)
	y.api = "0.0.0.0:" + port
	y.join()
	_, appPort, _ := net.SplitHostPort(y.app)
	y.env = []string{
		"SIDEBEAT_NACOS=http://" + home + ":" + port, "SIDEBEAT_ADDRESS=:" + appPort, "SIDEBEAT_ALLOW_LOOPBACK=false", "SIDEBEAT_CHECK=tcp://" + home + ":80 tcp://:" + appPort,
		"SIDEBEAT_CHECK_MODE=2", "SIDEBEAT_METADATA=preserved.heart.beat.interval=1000",
	}
	web := y.listen("0.0.0.0:80")
	defer web.Close()
	y.start()
	y.until("waiting", func() bool { return y.said("there is no address to register yet") == 1 })
	run.Wait(t.Context(), 3*time.Second)
	if status, body := y.get("/healthz"); status != http.StatusOK {
		t.Errorf("not healthy: %d %s", status, body)
	}
	if y.said("there is no address to register yet") != 1 || y.said("the app is down") > 0 {
		t.Errorf("want it said once, and nothing of the app:\n%s", y.log.String())
	}
	lo(t, "lo:1", home)
	y.listed("healthy")
	for range *faults {
		y.stays("healthy", 0, func() {
			lo(t, "lo:1", "0.0.0.0")
			y.until("told", func() bool { _, body := y.get("/status"); return strings.Contains(body, "network is unreachable") })
			run.Wait(t.Context(), 3*time.Second)
			lo(t, "lo:1", home)
			y.until("back", func() bool { status, _ := y.get("/readyz"); return status == http.StatusOK })
			run.Wait(t.Context(), time.Second)
		})
	}
	if y.said("the app is down") > 0 {
		t.Errorf("our own network counts against the app:\n%s", y.log.String())
	}
}

// The name servers are dead, fail, know nothing or are slow; the registry and
// the app are known by name. The agent starts, says what it lacks, and nothing
// is held against the app; it registers soon after there is an answer.
func TestNoNames(t *testing.T) {
	t.Parallel()
	if apart(t, syscall.CLONE_NEWNET|syscall.CLONE_NEWNS) {
		return
	}
	lo(t, "lo", "")
	resolvers(t, "nameserver 127.0.0.53")
	var names nameServer
	names.is("silent")
	names.serve(t, "127.0.0.53")
	y := fence(t)
	_, port, _ := net.SplitHostPort(y.api)
	_, appPort, _ := net.SplitHostPort(y.app)
	y.env = []string{
		"SIDEBEAT_NACOS=http://nacos.test:" + port, "SIDEBEAT_CHECK=tcp://app.test:" + appPort + " tcp://:" + appPort, "SIDEBEAT_CHECK_MODE=1",
		"SIDEBEAT_METADATA=preserved.heart.beat.interval=1000",
	}
	y.start()
	for _, how := range []string{"silent", "fails", "unknown", "empty"} {
		names.is(how)
		before := names.asked.Load()
		y.until("asked while it "+how, func() bool { return names.asked.Load() > before+3 })
		if status, body := y.get("/healthz"); status != http.StatusOK || !y.runs() {
			t.Errorf("%s: not healthy: %d %s", how, status, body)
		}
	}
	names.is("slow")
	y.listed("healthy")
	for _, how := range []string{"silent", "fails"} {
		y.stays("healthy", 0, func() {
			names.is(how)
			run.Wait(t.Context(), 4*time.Second) // four beats, on a connection that is there
			names.is("well")
		})
	}
	if y.said("the app is down") > 0 {
		t.Errorf("our name server counts against the app:\n%s", y.log.String())
	}
}

// The first of two name servers is dead, as is usual after a move: the second
// one is asked before the time of a call or of a check is over.
func TestFirstNameServerIsDead(t *testing.T) {
	t.Parallel()
	if apart(t, syscall.CLONE_NEWNET|syscall.CLONE_NEWNS) {
		return
	}
	lo(t, "lo", "")
	resolvers(t, "nameserver 127.0.0.52", "nameserver 127.0.0.53")
	var dead, alive nameServer
	dead.is("silent")
	dead.serve(t, "127.0.0.52")
	alive.is("well")
	alive.serve(t, "127.0.0.53")
	y := fence(t)
	_, port, _ := net.SplitHostPort(y.api)
	_, appPort, _ := net.SplitHostPort(y.app)
	y.env = []string{"SIDEBEAT_NACOS=http://nacos.test:" + port, "SIDEBEAT_CHECK=tcp://app.test:" + appPort, "SIDEBEAT_CHECK_INTERVAL=2s", "SIDEBEAT_CHECK_TIMEOUT=1s"}
	y.start()
	// Half a second for the check and one for the call; 5 s each if it were left to Go.
	y.within(4*time.Second, "healthy", func() bool { return state(y.store, "orders") == "healthy" })
	y.stays("healthy", 2*time.Second, nil)
}
