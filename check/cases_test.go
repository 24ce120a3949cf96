package check

import (
	"net"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// A proxy takes the connection and finds nobody behind it, as a mesh's sidecar
// does (NVIDIA/container-canary#48): somebody listens, which is all that tcp
// asks, and a question that wants an answer is not fooled.
func TestProxyWithNobodyBehindIt(t *testing.T) {
	a := newAsker(t)
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 200 * time.Millisecond} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serve(t, ln, func(net.Conn) { run.Wait(t.Context(), after) })
		at := ln.Addr().String()
		expect(t, a, "tcp://"+at, Well, "connected")
		expect(t, a, "tcp://"+at+"#full", Well, "connected")
		// A proxy that closes with what it was sent unread resets the connection.
		if answer := a.Ask(t.Context(), must(t, "http://"+at+"/")); answer.Kind != Sick {
			t.Errorf("closed after %v: got %v %q", after, answer.Kind, answer.Reason)
		}
	}
}
