package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTerminalObeysNobody: what stands in a setting or on the command line is
// shown, not obeyed.
func TestTerminalObeysNobody(t *testing.T) {
	const hostile = "/\x1b[2J\u009b31m"
	for _, args := range [][]string{nil, {"config"}, {hostile}} {
		child := exec.Command("sidebeat-agent", args...)
		child.Env = append(os.Environ(), "SIDEBEAT_TLS_CERT_FILE="+hostile, "SIDEBEAT_TLS_KEY_FILE="+hostile, "SIDEBEAT_ADMIN="+hostile)
		out, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "[2J") || strings.ContainsAny(string(out), "\x1b\u009b") {
			t.Errorf("%q: %v\n%q", args, err, out)
		}
	}
}
