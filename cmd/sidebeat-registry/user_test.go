package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal gives both ends of a terminal.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine gives no terminal:", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this machine gives no terminal:", err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// typed lets somebody type at a prompt each, and gives what stands on the
// terminal and on stdout in the end.
func typed(t *testing.T, lines ...string) (code int, screen, stdout string) {
	t.Helper()
	person, program := terminal(t)
	out, in := io.Pipe()
	prompts := make(chan string, 10)
	var seen strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1000)
		for {
			n, err := person.Read(buffer)
			seen.Write(buffer[:n])
			if err != nil || strings.Contains(string(buffer[:n]), "END") {
				return
			}
			if strings.Contains(string(buffer[:n]), ": ") {
				prompts <- "" // the terminal echoes no more when it asks
			}
		}
	}()
	go func() {
		var text strings.Builder
		code = addUser([]string{"reader", "read"}, program, &text, program)
		fmt.Fprint(program, "END")
		io.WriteString(in, text.String())
		in.Close()
	}()
	for _, line := range lines {
		select {
		case <-prompts:
			noEcho(t, program)
			io.WriteString(person, line+"\n")
		case <-time.After(10 * time.Second):
			t.Fatal("nobody asks")
		}
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	return code, seen.String(), string(text)
}

// noEcho waits until the terminal shows no more what is typed.
func noEcho(t *testing.T, terminal *os.File) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if state.Lflag&unix.ECHO == 0 {
			return
		}
	}
	t.Fatal("the terminal shows what is typed")
}

func TestPasswordIsNotEchoed(t *testing.T) {
	code, screen, stdout := typed(t, canaryPassword, canaryPassword)
	if code != exitOK || !strings.HasPrefix(stdout, "reader $2a$10$") {
		t.Errorf("%d %q", code, stdout)
	}
	if strings.Contains(screen, "canary7Zq4") || !strings.Contains(screen, "Password: ") || !strings.Contains(screen, "Once more: ") {
		t.Errorf("the screen does not show what it should, or the password: %d bytes", len(screen))
	}
	code, screen, stdout = typed(t, canaryPassword, "another")
	if code != exitFailed || stdout != "" || !strings.Contains(screen, "it was typed in two ways") {
		t.Errorf("%d %q", code, stdout)
	}
}
