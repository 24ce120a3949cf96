package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/run"
)

// TestMain makes the test binary its own legacy app, as the program is one on a
// machine without Python.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (strings.HasPrefix(os.Args[1], "app-") || os.Args[1] == "demo" || os.Args[1] == "run") {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestChanges(t *testing.T) {
	a := seen{Service: "DEFAULT_GROUP@@a", IP: "10.0.0.1", Port: 1, Healthy: true}
	b := seen{Service: "b", IP: "10.0.0.2", Port: 2}
	sick := a
	sick.Healthy = false
	away := errors.New("refused")
	c := changes{known: map[string]bool{}, answers: true}
	f := func(all []seen, err error, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, c.see(all, err)); diff != "" {
			t.Error(diff)
		}
	}
	f(nil, nil)
	f([]seen{a, b}, nil, "a at 10.0.0.1:1 is listed, healthy", "b at 10.0.0.2:2 is listed, unhealthy")
	f([]seen{a, b}, nil)
	f([]seen{sick, b}, nil, "a at 10.0.0.1:1 is unhealthy")
	f(nil, away, "the registry does not answer")
	f(nil, away)
	f([]seen{a}, nil, "the registry answers again", "a at 10.0.0.1:1 is healthy", "b at 10.0.0.2:2 is gone from the list")
}

// Both legacy apps, in Python where there is one and as our own, answer what
// their agents and probers ask.
func TestApps(t *testing.T) {
	f := func(path string) {
		t.Helper()
		t.Setenv("PATH", path)
		family := family{t.TempDir(), run.NewSet(mostProcesses)}
		orders, ledger, language, err := newApps(t.Context(), family.folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(language)
		for _, a := range []app{orders, ledger} {
			p, err := family.start(a.service, nil, a.command...)
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("ledger, process %d\n", p.pid())
			if a.service == "orders" {
				want = "ok\n"
			}
			if got := talk(t, p, a.port); !strings.HasSuffix(got, want) {
				t.Errorf("%s said %q, want %q; %s", a.service, got, want, p.lastWords())
			}
			p.stop()
		}
		family.waiting.Wait()
	}
	f(os.Getenv("PATH"))
	f(t.TempDir()) // no python3 there
}

// talk asks for /health and gives all that comes back.
func talk(t *testing.T, p *process, at uint16) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for p.alive() {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port(at)))
		if err != nil {
			if run.Wait(ctx, 10*time.Millisecond) != nil {
				t.Fatal(err)
			}
			continue
		}
		defer conn.Close()
		io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n")
		answer, _ := io.ReadAll(conn) // a bare TCP app may answer with a reset
		return string(answer)
	}
	t.Fatalf("%s has ended: %s", p.name, p.lastWords())
	return ""
}

func TestProcessesEnd(t *testing.T) {
	family := family{t.TempDir(), run.NewSet(mostProcesses)}
	t.Setenv("SIDEBEAT_SERVICE", "of this machine")
	calm, err := family.start("calm", []string{"SIDEBEAT_GROUP=given"}, "sh", "-c", `env | grep SIDEBEAT; exec sleep 1000`)
	if err != nil {
		t.Fatal(err)
	}
	site := site{family: family}
	said := func() bool { return calm.lastWords() != "" }
	if err := site.await(t.Context(), stopWithin, "it speaks", calm, said); err != nil {
		t.Fatal(err)
	}
	if calm.lastWords() != "SIDEBEAT_GROUP=given" {
		t.Errorf("a child saw %q, want the given settings only", calm.lastWords())
	}
	calm.stop()
	if calm.alive() || calm.cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("got %v, want an end by signal", calm.cmd.ProcessState)
	}
	calm.stop() // a second time does no harm
	err = site.await(t.Context(), stopWithin, "it lives", calm, calm.alive)
	if want := `cannot see that it lives: the process "calm" has ended; its last words:` + "\nSIDEBEAT_GROUP=given"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	family.waiting.Wait()
}

func TestStepThatIsNotSeen(t *testing.T) {
	family := family{t.TempDir(), run.NewSet(mostProcesses)}
	p, err := family.start("sleeper", nil, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	site := site{family: family}
	err = site.await(t.Context(), time.Millisecond, "pigs fly", p, func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "cannot see that pigs fly within 1ms") {
		t.Errorf("got %v, want what was not seen", err)
	}
}

// The whole demo; a kill -9 of it takes its children along.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a quarter of a minute, and builds the programs")
	}
	var out strings.Builder
	demo := exec.Command(os.Args[0], "demo")
	demo.Stdout, demo.Stderr = &out, &out
	if err := demo.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "✔"); n != 12 || strings.Contains(out.String(), "✘") {
		t.Errorf("%d of 12 steps were seen:\n%s", n, out.String())
	}
}

func TestKilledDemoLeavesNoProcesses(t *testing.T) {
	demo, temp := playing(t, "demo", "orders is registered")
	demo.Process.Signal(syscall.SIGKILL)
	demo.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for len(mentioning(t, temp)) > 0 {
		if run.Wait(ctx, 10*time.Millisecond) != nil {
			t.Fatalf("still there: %v", mentioning(t, temp))
		}
	}
}

func TestCtrlCLeavesNothing(t *testing.T) {
	forever, temp := playing(t, "run", "is listed, healthy")
	forever.Process.Signal(syscall.SIGINT)
	if err := forever.Wait(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(temp)
	if n := mentioning(t, temp); err != nil || len(left) > 0 || len(n) > 0 {
		t.Errorf("left behind: %v, %v %v", left, n, err)
	}
}

// playing starts the program in a folder for temporary files and reads until it
// says something.
func playing(t *testing.T, word, until string) (program *exec.Cmd, temp string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the programs")
	}
	temp = t.TempDir()
	program = exec.Command(os.Args[0], word)
	program.Env = append(os.Environ(), "TMPDIR="+temp)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4096)
	for seen := ""; !strings.Contains(seen, until); {
		n, err := out.Read(text)
		if seen += string(text[:n]); err != nil {
			t.Fatal(err, seen)
		}
	}
	// The demo kills its app as soon as it was seen.
	if n := len(mentioning(t, temp)); n < 2 {
		t.Errorf("%d processes play, want registry and agent at least", n)
	}
	return program, temp
}

// mentioning lists processes that write into the folder.
func mentioning(t *testing.T, folder string) (found []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if filepath.Base(p) == fmt.Sprint(os.Getpid()) {
			continue
		}
		output, _ := os.Readlink(p + "/fd/1") // gone meanwhile: does not count
		if strings.HasPrefix(output, folder) {
			found = append(found, p)
		}
	}
	return found
}
