package setting

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTerminal(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var out bytes.Buffer
		if n, err := fmt.Fprint(Terminal(&out), text); n != len(text) || err != nil || out.String() != want {
			t.Errorf("%q: %d %v %q, want %q", text, n, err, out.String(), want)
		}
	}
	f("", "")
	f("one\n\ttwo\n\nthree", "one\n\ttwo\n\nthree")
	f("\x1b]0;owned\a\r\n", `\u001b]0;owned\u0007\u000d`+"\n")
	f("\x1b[2J\u009b2J\x7f\u202e", `\u001b[2J\u009b2J\u007f\u202e`)
	f("größe 上海", "größe 上海")
}

func TestTerminalShowsNoControlBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		var out bytes.Buffer
		fmt.Fprint(Terminal(&out), text)
		if bad := regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}]`).FindString(out.String()); bad != "" {
			t.Fatalf("%q within %q", bad, out.String())
		}
		if got := strings.Count(out.String(), "\n"); got != strings.Count(text, "\n") {
			t.Fatalf("%d lines of %q", got, text)
		}
	})
}
