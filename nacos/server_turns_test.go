package nacos

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// A thousand reads of one address cost another one turn.
func TestAddressesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		taken := p.free
		many, few := new(guest), new(guest)
		for range taken {
			p.enter(t.Context(), many)
		}
		var came []*guest
		wait := func(g *guest) {
			go func() {
				if p.enter(t.Context(), g) {
					came = append(came, g) // one leaves at a time
				}
			}()
			synctest.Wait()
		}
		for range 1000 {
			wait(many)
		}
		for range 3 {
			wait(few)
		}
		for range 6 {
			p.leave()
			synctest.Wait()
		}
		for i, g := range came {
			if want := []*guest{many, few}[i%2]; g != want {
				t.Errorf("turn %d is the other's", i)
			}
		}
		for range 997 + taken {
			p.leave()
			synctest.Wait()
		}
		if p.free != taken || len(p.waiting) != 0 || len(p.order) != 0 || len(came) != 1003 {
			t.Errorf("%d free, %d and %d waiting, %d came", p.free, len(p.waiting), len(p.order), len(came))
		}
	})
}

// Who gives up leaves nothing behind and takes nothing along.
func TestGivenUpTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		taken := p.free
		for range taken {
			p.enter(t.Context(), nil)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g := new(guest)
		later := make(chan bool, 1)
		for range 2 {
			go func() {
				if p.enter(short, g) {
					t.Error("there is a place")
				}
			}()
		}
		synctest.Wait()
		go func() { later <- p.enter(t.Context(), g) }()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for range taken {
			p.leave()
		}
		if !<-later {
			t.Error("who waited longer has no place")
		}
		p.leave()
		if p.free != taken || len(p.waiting) != 0 || len(p.order) != 0 {
			t.Errorf("%d free, %d and %d waiting", p.free, len(p.waiting), len(p.order))
		}
	})
}

// One address has half of the requests at work at most, and gives each back.
func TestHalfOfRequestsForOneAddress(t *testing.T) {
	s, by, port := boundBy(t, Limits{Requests: 3})
	open := func(from string) func(method, target string) int {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(from, port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		in := bufio.NewReader(conn)
		return func(method, target string) int {
			if _, err := io.WriteString(conn, method+" "+target+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, answer.Body)
			return answer.StatusCode
		}
	}
	one, other := open("127.0.0.1"), open("127.0.0.2")
	f := func(ask func(method, target string) int, method, target string, want int) {
		t.Helper()
		if got := ask(method, target); got != want {
			t.Errorf("%s %s: %d, want %d", method, target, got, want)
		}
	}
	const create = "/nacos/v1/ns/service?serviceName=new"
	const persistent = `/nacos/v1/ns/instance/beat?serviceName=p&beat={"ip":"127.0.0.1","port":3,"ephemeral":false}`
	for range 5 {
		f(one, "POST", "/nacos/v1/ns/service?serviceName=", http.StatusBadRequest)
	}
	busy := by.guestFrom(t, "127.0.0.1/32")
	if n := busy.requests.Load(); n != 0 {
		t.Fatalf("%d requests are at work after the last", n)
	}
	for range 2 {
		if f := s.bounds.begin(busy); f != nil {
			t.Fatal(f)
		}
	}
	f(one, "POST", create, http.StatusServiceUnavailable)
	f(one, "POST", create+"&heartBeat=true", http.StatusServiceUnavailable)
	f(one, "PUT", persistent, http.StatusServiceUnavailable)
	f(one, "PUT", lightTarget, http.StatusOK)
	f(other, "POST", create, http.StatusOK)
	f(other, "PUT", persistent, http.StatusOK)
	s.bounds.end(busy)
	f(one, "PUT", persistent, http.StatusOK)
	s.bounds.end(busy)
	if _, n := s.Load(); n != 0 || busy.requests.Load() != 0 {
		t.Errorf("%d requests are at work, %d of the address", n, busy.requests.Load())
	}
}

// guestFrom gives who has connections from an address.
func (l *boundListener) guestFrom(t *testing.T, address string) *guest {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guests[netip.MustParsePrefix(address)]
	if g == nil {
		t.Fatalf("nobody is there from %s", address)
	}
	return g
}
