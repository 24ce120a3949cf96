package nacos

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// stubborn asks on connections of their own and takes no answer.
func stubborn(t *testing.T, port, target string, count int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.(*net.TCPConn).SetReadBuffer(4096)
		if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	return conns
}

// until waits for what comes about by itself.
func until(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !come(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

func (a *answers) now() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// wideServer has a list of several megabytes.
func wideServer(t *testing.T) (s *Server, port string) {
	t.Helper()
	s, port = bound(t, Limits{})
	for i := range 5000 {
		one := beaten
		one.Port, one.Metadata = uint16(i+1), map[string]string{"k": strings.Repeat("v", 1000)}
		if err := s.Store.Register(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	return s, port
}

// A large list is in memory once, however many do not take it, and is gone when
// they are.
func TestLargeListsAreShared(t *testing.T) {
	s, port := wideServer(t)
	const list = "/nacos/v1/ns/instance/list?serviceName=orders"
	key := listKey{Service: beaten.Service}
	l, err := s.lists.get(context.Background(), s.Store, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	readers := func() int {
		s.bounds.answers.mu.Lock()
		defer s.bounds.answers.mu.Unlock()
		return l.readers
	}
	conns := stubborn(t, port, list, 20)
	until(t, "twenty readers", func() bool { return readers() == 20 })
	if n := s.bounds.answers.now(); n != cap(l.head) {
		t.Errorf("%d bytes are held, the list has %d", n, cap(l.head))
	}
	for _, conn := range conns {
		conn.Close()
	}
	until(t, "the end of all readers", func() bool { return s.bounds.answers.now() == 0 && readers() == 0 })
}

// Large answers that are no lists are counted until they are taken.
func TestLargeAnswersAreCounted(t *testing.T) {
	s, port := wideServer(t)
	const page = "/nacos/v1/ns/catalog/instances?serviceName=orders&clusterName=DEFAULT&pageNo=1&pageSize=5000"
	conns := stubborn(t, port, page, 3)
	until(t, "three answers", func() bool { return s.bounds.answers.now() > 3*5_000_000 })
	for _, conn := range conns {
		conn.Close()
	}
	until(t, "the end of all answers", func() bool { return s.bounds.answers.now() == 0 })
	s.bounds.answers.hold(nil, mostAnswers)
	f := func(target string, want int) {
		t.Helper()
		answer, err := http.Get("http://127.0.0.1:" + port + target)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != want {
			t.Errorf("%s: %d %.200q %v", target, answer.StatusCode, body, err)
		}
	}
	f(page, http.StatusServiceUnavailable)
	f("/nacos/v1/ns/instance/list?serviceName=orders", http.StatusServiceUnavailable)
	f("/nacos/v1/ns/instance/list?serviceName=others", http.StatusOK)
	if n := s.Refused()["requests"]; n != 2 {
		t.Errorf("%d refusals are counted", n)
	}
	s.bounds.answers.drop(nil, mostAnswers)
	f(page, http.StatusOK)
	f("/nacos/v1/ns/instance/list?serviceName=orders", http.StatusOK)
	until(t, "the end of the last", func() bool { return s.bounds.answers.now() == 0 })
}

func TestHalfOfAnswersForOneAddress(t *testing.T) {
	var a answers
	one, other, third := new(guest), new(guest), new(guest)
	f := func(by *guest, n int, want bool) {
		t.Helper()
		if got := a.hold(by, n); got != want {
			t.Errorf("%d more: %v", n, got)
		}
	}
	f(one, mostAnswers/2, true)
	f(one, 1, false)
	f(other, mostAnswers/2, true)
	f(third, 1, false)
	a.drop(one, mostAnswers/2)
	f(third, 1, true)
	a.drop(third, 1)
	a.drop(other, mostAnswers/2)
	f(one, 2*mostAnswers, true) // alone
	a.drop(one, 2*mostAnswers)
	if a.held != 0 || one.answers != 0 || other.answers != 0 || third.answers != 0 {
		t.Errorf("%d are held, %d %d %d", a.held, one.answers, other.answers, third.answers)
	}
}

// A large answer is the same bytes however it is written.
func TestLargeAnswerIsWhole(t *testing.T) {
	parts := [][]byte{[]byte("head"), nil, bytes.Repeat([]byte("x"), 100_000), []byte(url.QueryEscape("tail"))}
	want := bytes.Join(parts, nil)
	dropped := 0
	var r fasthttp.Response
	sendLarge(&r, func() { dropped++ }, bytes.Clone(parts[0]), parts[1], parts[2], parts[3])
	if r.Header.ContentLength() != len(want) {
		t.Errorf("the length is told as %d", r.Header.ContentLength())
	}
	got, err := io.ReadAll(struct{ io.Reader }{r.BodyStream()})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read: %d bytes, %v", len(got), err)
	}
	r.Reset()
	var out bytes.Buffer
	l := &largeAnswer{parts: parts, drop: func() { dropped++ }}
	if n, err := l.WriteTo(&out); err != nil || n != int64(len(want)) || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("written: %d bytes, %v", n, err)
	}
	l.Close()
	l.Close()
	if dropped != 2 {
		t.Errorf("dropped %d times, want 2", dropped)
	}
}
