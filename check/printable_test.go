package check

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	f("200 OK", "200 OK")
	f(`level=error msg="deregistered"`, `level=error msg="deregistered"`)
	f("a\r\n\r\nHTTP/1.1 200 OK", `a\r\n\r\nHTTP/1.1 200 OK`)
	f("\x1b[2J\x00", `\x1b[2J\x00`)
	f("\xff\xfe", `\xff\xfe`)
	f("a\u202eb\u200d", `a\u202eb\u200d`)
	f("служба", "служба")
	f(strings.Repeat("a", 200), strings.Repeat("a", 200))
	f(strings.Repeat("a", 201), strings.Repeat("a", 197)+"...")
	f(strings.Repeat("a", 196)+"\n\n", strings.Repeat("a", 196)+"...")
	f(strings.Repeat("a", 195)+"\n", strings.Repeat("a", 195)+`\n`)
	f(strings.Repeat("ж", 101), strings.Repeat("ж", 98)+"...")
}

func FuzzPrintable(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[2J\x00\xff\u202e\r\n" + strings.Repeat("ж", 200))
	f.Fuzz(func(t *testing.T, text string) {
		got := printable(text)
		if len(got) > maxReason || !utf8.ValidString(got) {
			t.Fatalf("%q: got %q of %d bytes", text, got, len(got))
		}
		for _, r := range got {
			if !strconv.IsPrint(r) {
				t.Fatalf("%q: got %q with %q", text, got, r)
			}
		}
	})
}
