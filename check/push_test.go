package check

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t)
		f := func(raw string, kind Kind, reason string) {
			t.Helper()
			answer := a.Ask(t.Context(), must(t, raw))
			if answer.Kind != kind || answer.Reason != reason {
				t.Errorf("%s: got %v %q, want %v %q", raw, answer.Kind, answer.Reason, kind, reason)
			}
		}
		f("push:orders", Unknown, "nothing pushed yet")
		time.Sleep(29 * time.Second)
		f("push:orders", Unknown, "nothing pushed yet")
		f("push:orders#ttl=20s", Sick, "nothing pushed in 20s")
		time.Sleep(time.Second)
		f("push:orders", Sick, "nothing pushed in 30s")
		a.Push("orders", true, 0, "")
		f("push:orders", Well, "pushed 0s ago")
		f("push:", Sick, "nothing pushed in 30s")
		a.Push("", true, 0, "up\x1b\n")
		f("push:", Well, `pushed 0s ago: up\x1b\n`)
		time.Sleep(29 * time.Second)
		f("push:orders", Well, "pushed 29s ago")
		time.Sleep(time.Second)
		f("push:orders", Sick, "last push 30s ago, over 30s")
		f("push:orders#ttl=31s", Well, "pushed 30s ago")
		a.Push("orders", true, 5*time.Second, "")
		time.Sleep(5 * time.Second)
		f("push:orders", Sick, "last push 5s ago, over 5s")
		a.Push("orders", false, time.Minute, "no database")
		time.Sleep(40 * time.Second)
		f("push:orders", Sick, "pushed as failing: no database")
		time.Sleep(20 * time.Second)
		f("push:orders", Sick, "last push 1m0s ago, over 1m0s")
	})
}

// Strangers that push any number of names fill no memory.
func TestPushNamesAreBounded(t *testing.T) {
	a := newAsker(t)
	a.Push(strings.Repeat("a", maxPushName+1), true, 0, "")
	for i := range 2 * maxPushNames {
		a.Push(fmt.Sprint(i), true, 0, strings.Repeat("n", 1<<10))
	}
	a.Push("0", false, 0, "") // those that are known go on
	if n := len(a.pushed.known); n != maxPushNames {
		t.Errorf("got %d names, want %d", n, maxPushNames)
	}
	expect(t, a, "push:0", Sick, "pushed as failing")
	if n := len(a.pushed.known["1"].note); n > maxReason {
		t.Errorf("a note of %d bytes is kept", n)
	}
}
