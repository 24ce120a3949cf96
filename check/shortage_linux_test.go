package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test binary runs itself in a control group that may have few processes,
// or little memory: a script that cannot start what it needs, or whose program
// is killed for want of memory, says nothing about the app.
func TestOurOwnLimitsAreUnknown(t *testing.T) {
	if os.Getenv("CHECK_TEST_GROUP") != "" {
		askInGroup(t)
		return
	}
	folders := []string{makeGroup(t, "pids"), makeGroup(t, "memory")}
	join := "for g in \"$@\"; do echo $$ > $g/cgroup.procs || exit 1; done; exec " + os.Args[0] + " -test.run='^TestOurOwnLimitsAreUnknown$' -test.v"
	child := exec.Command("/bin/sh", append([]string{"-c", join, "sh"}, folders...)...)
	child.Env = append(os.Environ(), "CHECK_TEST_GROUP="+strings.Join(folders, ":"))
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "asked in the group") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// makeGroup makes a control group below ours, of the first version; of the
// second one a group with processes has none below it.
func makeGroup(t *testing.T, controller string) string {
	t.Helper()
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || part[1] != controller {
			continue
		}
		folder := filepath.Join(groupRoot, controller, part[2], fmt.Sprintf("sidebeat-test-%d", os.Getpid()))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Skipf("no control group of our own here: %v", err)
		}
		t.Cleanup(func() { os.Remove(folder) })
		return folder
	}
	t.Skipf("no control groups of the first version for %s here", controller)
	return ""
}

func askInGroup(t *testing.T) {
	pids, memory, _ := strings.Cut(os.Getenv("CHECK_TEST_GROUP"), ":")
	set := func(file, value string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	a := newAsker(t)
	script := sh("sleep 0.01; sleep 0.01; exit 3")
	expect(t, a, script, Sick, "exit 3")

	// One more process than we are: the shell, and not what it wants to start.
	// The runtime may take that place for a thread; then not even the shell.
	const reached = "cannot ask: the limit of processes or of memory of this control group was reached: "
	for tries := 0; ; tries++ {
		set(filepath.Join(pids, "pids.max"), fmt.Sprint(number(t, filepath.Join(pids, "pids.current"))+1))
		got := a.Ask(t.Context(), must(t, script))
		if got.Kind != Unknown || tries == 20 {
			t.Fatalf("without processes: %v %q", got.Kind, got.Reason)
		}
		if strings.HasPrefix(got.Reason, reached+"exit 2") {
			break
		}
	}
	set(filepath.Join(pids, "pids.max"), "max")
	expect(t, a, script, Sick, "exit 3")

	set(filepath.Join(memory, "memory.limit_in_bytes"), "67108864")
	expect(t, a, sh("head -c 300000000 /dev/zero | tail >/dev/null"), Unknown, reached)
	fmt.Println("asked in the group")
}

func number(t *testing.T, file string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Sscan(string(text), &n)
	return n
}
