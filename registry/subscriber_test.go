package registry

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSubscribers(t *testing.T) {
	live(t, func(l life) {
		at := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
		orders, other := Service{"dev", "G1", "orders"}, Service{"dev", "G2", "reorders"}
		java := Subscriber{orders, at("10.0.0.9:5000"), "a,b", "Nacos-Java-Client:v1.4.3", "shop", true}
		python := Subscriber{orders, at("10.0.0.8:5000"), "", "python", "", false}
		again := Subscriber{other, java.Address, "", java.Agent, "", false}
		fresh := func(s Subscriber, want bool) {
			l.Helper()
			if got, taken := l.Subscribe(s, 30*time.Second); got != want || !taken {
				l.Errorf("%v: fresh %v", s, got)
			}
		}
		is := func(got []Subscriber, want ...Subscriber) {
			l.Helper()
			same := func(a, b netip.AddrPort) bool { return a == b }
			if diff := cmp.Diff(want, got, cmp.Comparer(same)); diff != "" {
				l.Errorf("-want +got:\n%s", diff)
			}
		}
		fresh(java, true)
		fresh(python, true)
		fresh(again, true)
		java.Clusters = "c" // a second one replaces the first
		fresh(java, false)
		is(l.Subscribers(orders), python, java)
		is(l.Subscribers(other), again)
		is(l.Subscribers(Service{Name: "orders"}))
		is(l.FindSubscribers(Service{"dev", "", "orders"}), python, java, again)
		is(l.FindSubscribers(Service{"dev", "G2", "order"}), again)
		is(l.FindSubscribers(Service{"", "G2", "order"}))
		if n := l.CountSubscribers(); n != 3 {
			l.Errorf("%d subscriptions, want 3", n)
		}

		l.pass(20 * time.Second)
		fresh(java, false)
		l.pass(12 * time.Second)
		is(l.Subscribers(orders), java)
		is(l.Subscribers(other), again) // one client, one time
		fresh(again, false)
		l.Unsubscribe(orders, java.Address)
		l.Unsubscribe(orders, java.Address)
		is(l.Subscribers(orders))
		if n := l.CountSubscribers(); n != 1 {
			l.Errorf("%d subscriptions, want 1", n)
		}
		// The public namespace and the default group may be left out.
		plain := Subscriber{Service{Name: "plain"}, python.Address, "", "", "", false}
		fresh(plain, true)
		plain.Service = Service{DefaultNamespace, DefaultGroup, "plain"}
		is(l.Subscribers(plain.Service), plain)
	})
}

func TestClients(t *testing.T) {
	s := NewStore()
	l := life{t, s}
	odd := eph("a", "1")
	odd.IP = "web-1.example.org"
	oddToo := odd
	oddToo.Name = "elsewhere"
	alike := per("db", "1")
	l.register(eph("a", "1"), eph("b", "1"), eph("a", "2"), odd, oddToo, alike)
	var got []string
	for _, c := range s.Clients() {
		got = append(got, c.String())
	}
	want := []string{"10.0.0.1:8080#false", "10.0.0.1:8080#true", "10.0.0.2:8080#true", "web-1.example.org:8080#true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i := range 8 { // each the first odd one of its shard, if it is not the same shard
		other := eph(fmt.Sprint("service-", i), "1")
		other.IP = fmt.Sprint("web-1", i)
		l.register(other)
	}
	if e, p := s.CountClients(); e != 11 || p != 1 || len(s.Clients()) != 12 {
		t.Errorf("got %d ephemeral, %d persistent, want 11 and 1", e, p)
	}
	f := func(c Client, want ...Instance) {
		t.Helper()
		got := s.Published(c)
		for i := range got {
			got[i].Revision = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c, diff)
		}
	}
	f(eph("a", "1").Client(), eph("a", "1"), eph("b", "1"))
	f(alike.Client(), alike)
	f(odd.Client(), odd, oddToo)
	f(eph("a", "9").Client())
	f(per("a", "2").Client())
}
