package check

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A secret in a file is sent as the file has it at that time, and never shown.
func TestHeaderFromFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan string, 1)
	addr := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) { got <- head; conn.Write([]byte(ok)) })
	a := newAsker(t)
	raw := "http://" + addr + "/#headerfile=Authorization:" + file + "&header=X-A:1"
	f := func(text, want string) {
		t.Helper()
		write(text)
		expect(t, a, raw, Well, "200 OK")
		if head := <-got; !strings.Contains(head, "\r\nX-A: 1\r\nAuthorization:"+want+"\r\n") {
			t.Errorf("%q: got %s", text, head)
		}
	}
	f("Bearer first\n", " Bearer first")
	f("  Bearer second\r\n\n", " Bearer second")
	f("", " ")
	f(strings.Repeat("x", mostHeader), " "+strings.Repeat("x", mostHeader))

	g := func(text, why string) {
		t.Helper()
		write(text)
		answer := expect(t, a, raw, Unknown, "cannot read header Authorization: ")
		if !strings.Contains(answer.Reason, why) || strings.Contains(answer.Reason, "secret") {
			t.Errorf("%.20q: %s", text, answer.Reason)
		}
	}
	g("secret\r\nX-B: 2", "holds a control byte")
	g("secret"+strings.Repeat("x", mostHeader), "more than 8192 bytes")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect(t, a, raw, Unknown, "cannot read header Authorization: stat ")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, a, raw, Unknown, "cannot read header Authorization: "+file+" is no regular file")
}

// A redirect to another host does not take the secret along.
func TestHeaderFileStaysAtHome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("Bearer secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	other := stub(t, "127.0.0.2:0", func(conn net.Conn, head string) { got <- head; conn.Write([]byte(ok)) })
	hop := says(t, "HTTP/1.1 302 Found\r\nLocation: http://"+other+"/\r\n\r\n")
	expect(t, newAsker(t), "http://"+hop+"/#redirects=1&headerfile=Authorization:"+file, Well, "200 OK")
	if head := <-got; strings.Contains(head, "secret") {
		t.Errorf("got %s", head)
	}
}
