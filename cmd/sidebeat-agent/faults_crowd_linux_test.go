package main

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// Many agents are started at once, each a process: all come in, and all leave.
// A full run has a thousand of them.
func TestManyAgentsAtOnce(t *testing.T) {
	n := 40
	if *faults >= 10 {
		n = 1000
	}
	y := fence(t)
	_, port, _ := net.SplitHostPort(y.app)
	y.env = []string{"SIDEBEAT_ADMIN=off", "SIDEBEAT_CHECK=tcp://:" + port, "SIDEBEAT_CHECK_INTERVAL=2s", "SIDEBEAT_CHECK_TIMEOUT=1s"}
	service := registry.Service{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: "orders"}
	healthy := func() (count int) {
		for _, in := range y.store.All(service) {
			if in.Healthy && in.Enabled {
				count++
			}
		}
		return count
	}
	var all []*exec.Cmd
	for i := range n {
		child := y.command("sidebeat-agent")
		child.Env = append(child.Env, fmt.Sprintf("SIDEBEAT_ADDRESS=127.1.%d.%d:%s", i/200, 1+i%200, port))
		child.Stderr = &y.log
		all = append(all, child)
	}
	began := time.Now()
	for _, child := range all {
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
	}
	y.within(time.Minute, "all healthy", func() bool { return healthy() == n })
	t.Logf("%d agents are in after %v", n, time.Since(began).Round(time.Millisecond))
	for _, child := range all {
		child.Process.Signal(syscall.SIGTERM)
	}
	for _, child := range all {
		if err := child.Wait(); err != nil {
			t.Errorf("ended with %v", err)
		}
	}
	if left := len(y.store.All(service)); left > 0 {
		t.Errorf("%d are still listed", left)
	}
	for _, word := range []string{`"level":"error"`, "the app is down"} {
		if strings.Contains(y.log.String(), word) {
			t.Errorf("%s is said", word)
		}
	}
}
