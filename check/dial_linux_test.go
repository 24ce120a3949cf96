package check

import (
	"fmt"
	"testing"
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
