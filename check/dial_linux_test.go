package check

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

// An address that swallows everything leaves time for the next.
func TestBlackHoleLeavesTimeForTheNext(t *testing.T) {
	a := newAsker(t)
	hole := full(t)
	next := fmt.Sprintf("127.0.0.2:%d", hole.Port())
	stub(t, next, answersOK)
	nameServer(t, a, map[string]record{"two.test": {addrs: []string{"127.0.0.1", "127.0.0.2"}}})
	target := fmt.Sprintf("two.test.:%d", hole.Port())
	expect(t, a, "http://"+target+"/#timeout=600ms", Well, "200 OK")
	expect(t, a, "tcp://"+target+"#timeout=600ms", Well, "connected")
	expect(t, a, "tcp://"+hole.String()+"#timeout=100ms", Sick, "timeout after 100ms ("+hole.String()+")")
}

// A TCP question is invisible to the app, unless it asks to be seen.
func TestTCPIsHalfOpenUnlessFull(t *testing.T) {
	a := newAsker(t)
	ln, address := listen(t, "127.0.0.1:0")
	for range 20 {
		expect(t, a, "tcp://"+address.String(), Well, "connected")
	}
	expect(t, a, "tcp://"+address.String()+"#full", Well, "connected")
	ln.SetDeadline(time.Now().Add(5 * time.Second))
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the first connection seen ended with %v, want the orderly end of the full one", err)
	}
	conn.Close()
	ln.SetDeadline(time.Now().Add(50 * time.Millisecond)) // whatever came is in the queue by now
	if conn, err := ln.Accept(); err == nil {
		t.Errorf("a second connection was seen, from %s", conn.RemoteAddr())
	}
	ln.Close()
	expect(t, a, "tcp://"+address.String(), Sick, "refused ("+address.String()+")")
}
