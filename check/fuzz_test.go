package check

import (
	"bufio"
	"bytes"
	"io"
	"testing"
	"time"
)

// scripted is a server that says this and hangs up, whatever it is told.
type scripted struct{ io.Reader }

func (scripted) Write(p []byte) (int, error) { return len(p), nil }

// Whatever a server answers, the answer says something about the server: it is
// not taken for a fault of our own, it has a reason, and Well only with a head
// that has an accepted status.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		ok, "", "H", "HTTP/1.1 200 OK\n\n{\"status\":\"UP\"}", "SSH-2.0-x\r\n", "\x15\x03\x01\x00\x02\x02\x46", "HTTP/1.1 103 X\r\n\r\n" + ok,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=1\r\nUP:x\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00",
		"HTTP/1.1 302 Found\r\nLocation: //a.test:1/b?c\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: /a b?c d\r\n\r\n", "HTTP/1.1 308 X\r\nLocation: http://[::1%25x]:99999/\r\n\r\n",
	} {
		for which := range 3 {
			f.Add([]byte(seed), which)
		}
	}
	options := []string{"", "redirects=5", "body=UP&match=^a*$&match=UP&json=status==UP&json=/a/0==null"}
	f.Fuzz(func(t *testing.T, said []byte, which int) {
		p, err := compile(options[uint(which)%uint(len(options))])
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{
			hop: hop{scheme: "http", target: "/x?y", method: "GET"}, ctx: t.Context(), start: time.Now(), plan: p,
			stream: scripted{bytes.NewReader(said)}, reader: bufio.NewReader(nil),
		}
		answer, next := x.run()
		switch {
		case next != nil:
			if next.target == "" || next.target[0] != '/' || bytes.ContainsFunc([]byte(next.target), func(r rune) bool { return r <= ' ' }) || next.scheme != "http" && next.scheme != "https" {
				t.Fatalf("%q leads to %+v", said, next)
			}
		case answer.Reason == "" || answer.Kind == Unknown:
			t.Fatalf("%q: got %v %q", said, answer.Kind, answer.Reason)
		case answer.Kind == Well && !bytes.Contains(said, []byte("HTTP/")):
			t.Fatalf("%q: got %v %q", said, answer.Kind, answer.Reason)
		}
	})
}
