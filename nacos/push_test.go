package nacos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// subscription is a poll of orders by a client that listens on a port.
type subscription struct {
	agent, ip, clusters, more string
	port                      int
}

const javaClient = "Nacos-Java-Client:v1.4.8"

func (s subscription) poll(t *testing.T, d dialer) reply {
	t.Helper()
	target := fmt.Sprintf("%s&clientIP=%s&udpPort=%d&clusters=%s%s", ordersList.target("/v1"), s.ip, s.port, s.clusters, s.more)
	return d.do(t, http.MethodGet, target, http.Header{"User-Agent": {s.agent}}, "")
}

// pushed plays in a bubble with a server that pushes into a mailbox.
func pushed(t *testing.T, anyAddress bool, play func(t *testing.T, s *Server, d dialer, box *mailbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := beatenServer(t)
		change(t, s, 1)
		box := newMailbox()
		s.PushOver(box, anyAddress)
		play(t, s, startServer(t, s), box)
	})
}

// change registers the instance with a weight; it needs no beats from then on.
func change(t *testing.T, s *Server, weight float64) {
	t.Helper()
	one := beaten
	one.Weight = weight
	one.Metadata = map[string]string{metaTimeout: "600000", metaDelete: "600000"}
	if err := s.Store.Register(t.Context(), one); err != nil {
		t.Fatal(err)
	}
}

// weights gives whom which weight was pushed to, and empties the box.
func weights(t *testing.T, box *mailbox) (all []string) {
	t.Helper()
	sent := box.take()
	slices.SortStableFunc(sent, func(a, b mail) int { return cmp.Or(a.at.Compare(b.at), a.peer.Compare(b.peer)) })
	for _, one := range sent {
		body, _ := one.push(t)
		var l listBody
		if err := json.Unmarshal([]byte(body.Data), &l); err != nil {
			t.Fatal(err)
		}
		words := []string{one.peer.String()}
		for _, h := range l.Hosts {
			words = append(words, fmt.Sprint(h.Weight))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func TestPushWhoSubscribes(t *testing.T) {
	f := func(anyAddress bool, s subscription, want ...string) {
		t.Helper()
		pushed(t, anyAddress, func(t *testing.T, server *Server, d dialer, box *mailbox) {
			if got := s.poll(t, d); got.status != 200 {
				t.Errorf("%+v: %v", s, got)
			}
			time.Sleep(time.Second)
			if got := weights(t, box); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v: got %q, want %q", s, got, want)
			}
		})
	}
	const here = "127.0.0.1:5000 1"
	f(false, subscription{agent: javaClient, port: 5000}, here)
	f(false, subscription{agent: "Nacos-Go-Client:v1.1.6", port: 5000}, here)
	f(false, subscription{agent: "Nacos-CSharp-Client:v0.9.0", port: 5000}, here)
	f(false, subscription{agent: "Nacos-Java-Client:v1.4.8-SNAPSHOT", port: 5000}, here)
	f(false, subscription{agent: "Nacos-Java-Client:v0.0.9", port: 5000})
	f(false, subscription{agent: "Nacos-Java-Client:vX", port: 5000})
	f(false, subscription{agent: "Nacos-Python-Client:v0.1.16", port: 5000})
	f(false, subscription{agent: "curl/8", port: 5000})
	f(false, subscription{agent: javaClient})
	f(false, subscription{agent: javaClient, port: 70000})
	f(false, subscription{agent: javaClient, port: -1})
	f(false, subscription{agent: javaClient, port: 5000, clusters: "east"}, "127.0.0.1:5000")
	f(false, subscription{agent: javaClient, port: 5000, clusters: "east,DEFAULT", more: "&healthyOnly=true"}, here)
	f(false, subscription{agent: javaClient, port: 5000, more: "&app=" + strings.Repeat("x", mostWords)})

	// A third party is not shot at, unless the operator allows it.
	f(false, subscription{agent: javaClient, port: 5000, ip: "192.0.2.9"}, here)
	f(true, subscription{agent: javaClient, port: 5000, ip: "192.0.2.9"}, "192.0.2.9:5000 1")
	f(true, subscription{agent: javaClient, port: 5000, ip: "2001:db8::1"}, "[2001:db8::1]:5000 1")
	f(true, subscription{agent: javaClient, port: 5000, ip: "nonsense"})
	f(true, subscription{agent: javaClient, port: 5000, ip: "224.0.0.1"})
	f(true, subscription{agent: javaClient, port: 5000, ip: "0.0.0.0"})
	f(true, subscription{agent: javaClient, port: 5000}, here)
}

func TestPushPortIsANumber(t *testing.T) {
	pushed(t, false, func(t *testing.T, _ *Server, d dialer, _ *mailbox) {
		d.wants(t, 400, `For input string: "x"`, http.MethodGet, ordersList.target("/v1")+"&udpPort=x", "")
	})
}

// The first change goes out at once, what follows within 100 ms as one.
func TestPushMergesBursts(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		subscription{agent: javaClient, port: 5000}.poll(t, d)
		time.Sleep(time.Second)
		weights(t, box)
		change(t, s, 2)
		synctest.Wait()
		if got := weights(t, box); fmt.Sprint(got) != "[127.0.0.1:5000 2]" {
			t.Errorf("at once: %q", got)
		}
		for n := range 10 {
			change(t, s, float64(n+3))
			time.Sleep(5 * time.Millisecond)
		}
		if got := weights(t, box); len(got) != 0 {
			t.Errorf("within 100 ms: %q", got)
		}
		time.Sleep(100 * time.Millisecond)
		if got := weights(t, box); fmt.Sprint(got) != "[127.0.0.1:5000 12]" {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// A push that nobody acknowledges goes out twice, 10 s apart; an older list
// never follows a newer one.
func TestPushAgain(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		first, second := subscription{agent: javaClient, port: 5000}, subscription{agent: javaClient, port: 5001}
		poll := func() { first.poll(t, d); second.poll(t, d) }
		poll()
		time.Sleep(5 * time.Second)
		greeted := box.take()
		slices.SortFunc(greeted, func(a, b mail) int { return a.peer.Compare(b.peer) })
		box.ack(t, greeted[1])
		time.Sleep(4 * time.Second)
		if again := box.take(); len(greeted) != 2 || len(again) != 0 {
			t.Fatalf("%d pushes, %d again after 9 s", len(greeted), len(again))
		}
		time.Sleep(2 * time.Second)
		again := box.take()
		if len(again) != 1 || again[0].peer != greeted[0].peer || string(again[0].body) != string(greeted[0].body) {
			t.Fatalf("pushed again: %v, want what %v got", again, greeted[0].peer)
		}
		change(t, s, 2) // takes the place of what waits
		poll()
		time.Sleep(time.Second)
		if got := weights(t, box); len(got) != 2 {
			t.Fatalf("got %q", got)
		}
		time.Sleep(8 * time.Second)
		poll()
		change(t, s, 3)
		time.Sleep(12 * time.Second)
		want := "[127.0.0.1:5000 3 127.0.0.1:5001 3 127.0.0.1:5000 3 127.0.0.1:5001 3]"
		if got := weights(t, box); fmt.Sprint(got) != want {
			t.Errorf("got %q, want %s", got, want)
		}
		time.Sleep(30 * time.Second)
		if got := weights(t, box); len(got) != 0 {
			t.Errorf("a third time: %q", got)
		}
		n := s.push.Counts()
		if want := (PushCounts{Sent: 6, Acked: 1, Resent: 3, GivenUp: 2}); n != want {
			t.Errorf("counts are %+v, want %+v", n, want)
		}
		if len(s.push.pending.rounds)+len(s.push.pending.of)+len(s.push.pending.queue) > 0 {
			t.Errorf("still kept: %+v", s.push.pending.rounds)
		}
	})
}

func TestPushSwitchedOff(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		subscription{agent: javaClient, port: 5000}.poll(t, d)
		time.Sleep(time.Second)
		box.take()
		change(t, s, 2)
		turn := func(entry, value string) {
			t.Helper()
			if err := s.Store.SetSwitch(t.Context(), entry, value); err != nil {
				t.Fatal(err)
			}
		}
		turn("pushEnabled", "false")
		change(t, s, 3)
		subscription{agent: javaClient, port: 5001}.poll(t, d)
		time.Sleep(15 * time.Second)
		for _, text := range weights(t, box) {
			if text != "127.0.0.1:5000 2" {
				t.Errorf("pushed: %q", text)
			}
		}
		turn("pushEnabled", "true")
		turn("pushVersion", "java:1.5.0")
		subscription{agent: javaClient, port: 5001}.poll(t, d)
		if n := s.Store.CountSubscribers(); n != 1 {
			t.Errorf("%d subscribers, want the first one", n)
		}
		change(t, s, 4)
		time.Sleep(time.Second)
		if got := weights(t, box); fmt.Sprint(got) != "[127.0.0.1:5000 4]" {
			t.Errorf("on again: %q", got)
		}
	})
}

// A list that the client would cut is not sent to it.
func TestPushTooLarge(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		var lines bytes.Buffer // read when all have come to rest
		s.Log.SetOutput(&lines)
		one := beaten
		for n := range 400 {
			one.IP = fmt.Sprintf("10.7.%d.%d", n/250, n%250+1)
			one.Metadata = map[string]string{"build": fmt.Sprintf("%x", n*n*7919+n)}
			if err := s.Store.Register(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		subscription{agent: javaClient, port: 5000}.poll(t, d)
		subscription{agent: "Nacos-Go-Client:v1.1.6", port: 5001}.poll(t, d)
		time.Sleep(time.Second)
		sent := box.take()
		if len(sent) != 1 || sent[0].peer.Port() != 5000 || len(sent[0].body) < mostGo {
			t.Errorf("%d pushes", len(sent))
		}
		change(t, s, 2)
		time.Sleep(time.Second)
		if n := s.push.Counts(); n.TooLarge != 2 {
			t.Errorf("counts are %+v", n)
		}
		if said := lines.String(); strings.Count(said, "larger than a datagram") != 1 || !strings.Contains(said, "orders") {
			t.Errorf("the log says %q, want it once", said)
		}
	})
}

// What comes to the socket changes nothing unless it answers a push and comes
// from where that went.
func TestPushStrangeAcks(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		subscription{agent: javaClient, port: 5000}.poll(t, d)
		time.Sleep(time.Second)
		got := box.take()[0]
		body, _ := got.push(t)
		stranger := netip.MustParseAddrPort("192.0.2.9:5000")
		f := func(from netip.AddrPort, text string) { box.acks <- mail{peer: from, body: []byte(text)} }
		ack := func(moment any) string { return fmt.Sprintf(`{"type":"push-ack","lastRefTime":%v,"data":""}`, moment) }
		f(stranger, ack(body.Moment))
		f(got.peer, ack(body.Moment+1))
		f(got.peer, ack("null"))
		f(got.peer, fmt.Sprintf(`{"type":"unknown-ack","lastRefTime":%d,"data":""}`, body.Moment))
		f(got.peer, "")
		f(got.peer, strings.Repeat("[", mostAck))
		synctest.Wait()
		if n := s.push.Counts(); n.Acked != 0 || n.Unasked != 6 {
			t.Errorf("counts are %+v", n)
		}
		f(netip.MustParseAddrPort("[::ffff:127.0.0.1]:5000"), ack(body.Moment)) // as a socket for both kinds of IP tells it; a number, as Node writes it
		synctest.Wait()
		if n := s.push.Counts(); n.Acked != 1 {
			t.Errorf("counts are %+v", n)
		}
	})
}

// A real socket, a real subscriber.
func TestPushOverUDP(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { pushOverUDP(t, "127.0.0.1") })
	t.Run("IPv6", func(t *testing.T) { pushOverUDP(t, "::1") })
}

func pushOverUDP(t *testing.T, ip string) {
	t.Helper()
	s := beatenServer(t)
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s.PushOver(conn, true)
	d := startServerNow(t, s)
	at, ok := client.LocalAddr().(*net.UDPAddr)
	if !ok {
		t.Fatal("no UDP")
	}
	subscription{agent: javaClient, port: at.Port, ip: ip}.poll(t, d)
	b := make([]byte, mostDatagram)
	if err := client.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for n, want := range []string{"1", "2"} {
		if n > 0 {
			change(t, s, float64(n+1))
		}
		size, from, err := client.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatal(err)
		}
		one := mail{body: b[:size]}
		body, _ := one.push(t)
		if !strings.Contains(body.Data, `"weight":`+want) {
			t.Errorf("pushed %s, want weight %s", body.Data, want)
		}
		if _, err := fmt.Fprintf(udpTo{client, from}, `{"type":"push-ack","lastRefTime":"%d","data":""}`, body.Moment); err != nil {
			t.Fatal(err)
		}
		for s.push.Counts().Acked < uint64(n+1) {
			if run.Wait(ctx, time.Millisecond) != nil {
				t.Fatalf("counts are %+v", s.push.Counts())
			}
		}
	}
}

type udpTo struct {
	*net.UDPConn
	to netip.AddrPort
}

func (u udpTo) Write(b []byte) (int, error) { return u.WriteToUDPAddrPort(b, u.to) }

func FuzzPushAck(f *testing.F) {
	for _, seed := range []string{
		`{"type":"push-ack","lastRefTime":"2203735758211","data":""}`, `{"type":"push-ack","lastRefTime":1959090366933,"data":""}`,
		`{"type":"push-ack"}`, `{"type":"push-ack","lastRefTime":"1e3"}`, `{"type":"push-ack","lastRefTime":"-1"}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		moment, err := parseAck(b)
		if err != nil {
			return
		}
		again, err := parseAck(fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%d"}`, moment))
		if err != nil || again != moment {
			t.Errorf("%q is %d, which is read as %d (%v)", b, moment, again, err)
		}
	})
}

// Whoever floods the registry with subscriptions takes no place from others.
func TestSubscriptionsOfOneAddressAreBounded(t *testing.T) {
	s := registry.NewStore()
	take := func(ip string, n int) (taken int) {
		sub := registry.Subscriber{Address: netip.AddrPortFrom(netip.MustParseAddr(ip), 5000)}
		for i := range n {
			sub.Service = registry.Service{Namespace: "public", Group: "G", Name: fmt.Sprint(ip, i)}
			if _, ok := s.Subscribe(sub, time.Minute); ok {
				taken++
			}
		}
		return taken
	}
	if n := take("192.0.2.1", 30_000); n != 20_000 {
		t.Errorf("%d of a flood are taken", n)
	}
	if n := take("192.0.2.2", 10); n != 10 {
		t.Errorf("%d of 10 others are taken", n)
	}
}
