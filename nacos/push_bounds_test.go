package nacos

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// Who asked for the healthy ones is not told of others.
func TestPushHealthyOnly(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		sick := beaten
		sick.IP, sick.Healthy, sick.Weight = "10.0.0.2", false, 7
		sick.Metadata = map[string]string{metaTimeout: "600000", metaDelete: "600000"}
		if err := s.Store.Register(t.Context(), sick); err != nil {
			t.Fatal(err)
		}
		subscription{agent: javaClient, port: 5000}.poll(t, d)
		subscription{agent: javaClient, port: 5001, more: "&healthyOnly=true"}.poll(t, d)
		for round := range 2 { // the first push to each, and a change
			time.Sleep(time.Second)
			want := fmt.Sprintf("[127.0.0.1:5000 %d 7 127.0.0.1:5001 %[1]d]", round+1)
			got := weights(t, box)
			slices.Sort(got)
			if fmt.Sprint(got) != want {
				t.Errorf("got %q, want %s", got, want)
			}
			change(t, s, 2)
		}
	})
}

// However many lists of one service are asked for, a change makes a bounded
// number of them, and those that many share come first.
func TestPushListsAreBounded(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		const flood = mostLists + 50
		for n := range flood {
			subscription{agent: javaClient, port: 2000 + n, clusters: fmt.Sprint("DEFAULT,", n)}.poll(t, d)
		}
		for n := range 2 {
			subscription{agent: javaClient, port: 6000 + n, clusters: "zone"}.poll(t, d)
		}
		time.Sleep(time.Second)
		box.take()
		change(t, s, 2)
		time.Sleep(time.Second)
		sent := box.take()
		shared := slices.ContainsFunc(sent, func(m mail) bool { return m.peer.Port() == 6001 })
		if want := mostLists + 1; len(sent) != want || !shared {
			t.Errorf("%d pushes, the shared list among them: %v; want %d", len(sent), shared, want)
		}
		if n := s.push.Counts(); n.LeftOut != flood+1-mostLists {
			t.Errorf("counts are %+v", n)
		}
	})
}

// What waits for acks is bounded in bytes, and its place is free again after.
func TestPushPendingIsBounded(t *testing.T) {
	u, now := newPending(), time.Now()
	body := make([]byte, mostDatagram) // shared here, not counted so
	peer := netip.MustParseAddrPort("192.0.2.1:5000")
	round := func(n int) *round {
		r := newRound(listKey{clusters: fmt.Sprint(n)}, int64(n), body)
		r.waiting[peer] = struct{}{}
		return r
	}
	n := 0
	for u.add(round(n), false, now) && n < mostPending {
		n++
	}
	if want := mostPending / mostDatagram; n != want {
		t.Fatalf("%d wait, want %d", n, want)
	}
	if _, asked := u.ack(peer, int64(n)); asked {
		t.Error("what is over waits too")
	}
	if _, asked := u.ack(peer, 0); !asked || !u.add(round(n), false, now) {
		t.Error("no place after an ack")
	}
	u.overdue(now.Add(ackTime))
	if _, lost := u.overdue(now.Add(2 * ackTime)); lost != n || u.bytes != 0 {
		t.Errorf("%d are given up and %d bytes are kept, want %d and 0", lost, u.bytes, n)
	}
}

// With no place to wait in a push is sent all the same, once.
func TestPushWithoutAPlaceToWait(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		s.push.pending.bytes = mostPending
		subscription{agent: javaClient, port: 5000}.poll(t, d)
		time.Sleep(15 * time.Second)
		if got := weights(t, box); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		if n := s.push.Counts(); n.Sent != 1 || n.GivenUp != 1 {
			t.Errorf("counts are %+v", n)
		}
	})
}

// A flood of subscriptions from one address over the wire: what is over is
// answered, and counted.
func TestPushFlood(t *testing.T) {
	s := beatenServer(t)
	box := newMailbox()
	s.PushOver(box, true)
	h := s.Handler()
	ask := func(ip string, port int) {
		ctx := prepared(ordersList.target("/v1")+fmt.Sprintf("&clientIP=%s&udpPort=%d", ip, port), "")
		ctx.Request.Header.SetMethod("GET")
		ctx.Request.Header.SetUserAgent(javaClient)
		if h(ctx); ctx.Response.StatusCode() != 200 {
			t.Fatalf("answered %d", ctx.Response.StatusCode())
		}
	}
	const most, over = 20_000, 100
	for n := range most + over {
		ask("192.0.2.1", n+1)
	}
	if n := s.push.Counts(); n.Refused != over || s.Store.CountSubscribers() != most {
		t.Errorf("%d subscribers, counts are %+v", s.Store.CountSubscribers(), n)
	}
	ask("192.0.2.2", 5000)
	if n := s.Store.CountSubscribers(); n != most+1 {
		t.Errorf("%d subscribers: no place for others", n)
	}
}

func TestSubscriptionsOfOneServiceAreBounded(t *testing.T) {
	s := registry.NewStore()
	taken := 0
	for n := range 60_000 {
		ip := netip.AddrFrom4([4]byte{192, 0, 2, byte(n % 10)})
		sub := registry.Subscriber{Service: beaten.Service, Address: netip.AddrPortFrom(ip, uint16(n/10))}
		if _, ok := s.Subscribe(sub, time.Minute); ok {
			taken++
		}
	}
	if taken != 50_000 {
		t.Errorf("%d of a flood are taken", taken)
	}
	other := registry.Subscriber{Service: registry.Service{Name: "other"}, Address: netip.MustParseAddrPort("192.0.2.1:1")}
	if _, ok := s.Subscribe(other, time.Minute); !ok {
		t.Error("no place at another service")
	}
}

func TestPushState(t *testing.T) {
	pushed(t, false, func(t *testing.T, s *Server, d dialer, box *mailbox) {
		is := func(query, want string) {
			t.Helper()
			for _, path := range []string{pathOperator, pathOps} {
				if got := d.do(t, "GET", "/nacos"+path+"/push/state"+query, nil, ""); got.status != 200 || got.body != want {
					t.Errorf("%s: %d %s, want %s", query, got.status, got.body, want)
				}
			}
		}
		is("", `{"succeed":0,"total":0,"ratio":0,"reset":false}`)
		is("?detail=true", `{"succeed":0,"total":0,"ratio":0,"detail":{"avgPushCost":-1,"maxPushCost":-1},"reset":false}`)
		for n := range 4 {
			subscription{agent: javaClient, port: 5000 + n}.poll(t, d)
		}
		time.Sleep(time.Second)
		sent := box.take()
		slices.SortFunc(sent, func(a, b mail) int { return a.peer.Compare(b.peer) })
		box.ack(t, sent[0])
		synctest.Wait()
		time.Sleep(time.Second)
		box.ack(t, sent[1])
		box.ack(t, sent[2])
		synctest.Wait()
		n := s.push.Counts()
		if n.Acked != 3 {
			t.Fatalf("counts are %+v", n)
		}
		is("", `{"succeed":3,"total":3,"ratio":1.0,"reset":false}`)
		time.Sleep(22 * time.Second)
		got := s.push.state(true, false)
		if d := got.Detail; d.Average < 1600 || d.Average > 1700 || d.Most < 1900 || d.Most > 2000 {
			t.Errorf("costs are %+v, want those of acks after 1 s, 2 s and 2 s", d)
		}
		is("", `{"succeed":3,"total":4,"ratio":0.75,"reset":false}`)
		if first := s.push.state(false, true); first.Total != 4 || !first.Reset {
			t.Errorf("before the reset: %+v", first)
		}
		is("?detail=true&reset=true", `{"succeed":0,"total":0,"ratio":0,"detail":{"avgPushCost":-1,"maxPushCost":-1},"reset":true}`)
		if after := s.push.Counts(); after.Acked != 3 || after.GivenUp != 1 {
			t.Errorf("the metrics went back: %+v", after)
		}
	})
	inBubble(t, &Server{}, func(t *testing.T, d dialer) { // nobody pushes
		d.wants(t, 200, `{"succeed":0,"total":0,"ratio":0,"reset":false}`, "GET", "/nacos"+pathOperator+"/push/state", "")
	})
}
