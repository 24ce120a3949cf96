package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit gives the lines of a unit file by their names.
func unit(t *testing.T, file string) map[string][]string {
	t.Helper()
	lines := map[string][]string{}
	for line := range strings.Lines(read(t, file)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			lines[name] = append(lines[name], value)
		}
	}
	return lines
}

func TestUnits(t *testing.T) {
	for _, file := range files(t, "systemd/*.service") {
		name := strings.TrimSuffix(filepath.Base(file), ".service")
		lines := unit(t, file)
		for _, want := range []string{"ExecStart=/usr/local/bin/" + name, "DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict",
			"CapabilityBoundingSet=", "Restart=always", "RestartPreventExitStatus=2", "TimeoutStopSec=30"} {
			key, value, _ := strings.Cut(want, "=")
			if !slices.Contains(lines[key], value) {
				t.Errorf("%s: no line %s", name, want)
			}
		}
	}
}

// systemd itself reads the units; a program that exists is put in the place of
// the one they start.
func TestUnitsBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT READ by systemd: this machine has no systemd-analyze (Debian: systemd)")
	}
	for _, file := range files(t, "systemd/*.service") {
		name := filepath.Base(file)
		text := strings.ReplaceAll(read(t, file), "ExecStart=/usr/local/bin/"+strings.TrimSuffix(name, ".service"), "ExecStart=/bin/true")
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		help, _ := exec.Command(analyze, "security", "--help").CombinedOutput()
		if !strings.Contains(string(help), "--threshold") {
			t.Logf("NOT ASKED: the exposure of %s; this systemd is too old", name)
			continue
		}
		out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", path).CombinedOutput()
		if err != nil {
			t.Errorf("%s is exposed more than 2.0: %s", name, out)
		}
	}
}
