package nacos

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/sidebeat/sidebeat/registry"
)

// network is a net in a bubble: what happens to a connection is up to the test.
type network struct {
	mu    sync.Mutex
	hosts map[string]func(net.Conn) // nil or absent: refused
	dials map[string]int
}

func (n *network) set(host string, serve func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts, n.dials = map[string]func(net.Conn){}, map[string]int{}
	}
	n.hosts[host+":8848"] = serve
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	serve := n.hosts[address]
	n.dials[address]++
	n.mu.Unlock()
	if serve == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errors.New("connection refused"))}
	}
	here, there := net.Pipe()
	go serve(there)
	return here, nil
}

func (n *network) dialed(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[host+":8848"]
}

// healthy answers as Nacos does; mute reads and says nothing.
func healthy(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		nacosAnswer(n, asked{method: r.Method, path: r.URL.Path}, conn)
	}
}

func mute(conn net.Conn) {
	defer conn.Close()
	io.Copy(io.Discard, conn)
}

// each answers every request in the same way.
func each(answer func(w io.Writer)) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			answer(conn)
		}
	}
}

func always(status int, body string) func(net.Conn) {
	return each(func(w io.Writer) { say(w, status, "text/plain", body) })
}

// Three servers, any two dead in any way: the beat that meets them may take
// its whole budget, the next one succeeds within its own, and the ones after it
// go straight to the server that lives.
func TestAnyTwoOfThreeDead(t *testing.T) {
	deaths := map[string]func(net.Conn){"refused": nil, "silent": mute, "500": always(500, "caused: x;"), "page": always(200, "<html>")}
	for name, death := range deaths {
		for alive := range 3 {
			t.Run(name+string('a'+rune(alive)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hosts := []string{"a", "b", "c"}
					var n network
					for i, host := range hosts {
						n.set(host, death)
						if i == alive {
							n.set(host, healthy)
						}
					}
					c := opened(t, ClientConfig{Servers: hosts, Dial: n.dial})
					first := time.Now()
					_, err := c.Beat(t.Context(), orders())
					if took := time.Since(first); took > budgetTime {
						t.Errorf("the first beat took %v (%v), want at most %v", took, err, budgetTime)
					}
					second := time.Now()
					if _, err := c.Beat(t.Context(), orders()); err != nil || time.Since(second) > budgetTime {
						t.Errorf("the second beat: %v after %v", err, time.Since(second))
					}
					third := time.Now()
					if _, err := c.Beat(t.Context(), orders()); err != nil || time.Since(third) > 0 {
						t.Errorf("the third beat: %v after %v, want it at once", err, time.Since(third))
					}
				})
			})
		}
	}
}

// A server that failed is asked last for a time that doubles up to 30 s; a burst
// of failures counts once, one success ends it, and nobody is ever left out.
func TestCoolDown(t *testing.T) {
	list, err := parseServers([]string{"a,b,c"})
	if err != nil {
		t.Fatal(err)
	}
	p, now := newPool(list), time.Now()
	a := p.servers[0]
	p.sticky = a
	last := func(now time.Time) bool {
		order := p.round(now)
		if len(order) != 3 {
			t.Fatalf("got %d servers, want all three", len(order))
		}
		return order[2] == a
	}
	for fails, most := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		for range 50 {
			p.bad(a, now)
		}
		most *= time.Second
		if !last(now.Add(most/2-1)) || p.round(now.Add(most))[0] != a {
			t.Errorf("after %d failures: not asked last for %v to %v", fails+1, most/2, most)
		}
		now = now.Add(most)
	}
	p.bad(a, now)
	p.good(a)
	if p.round(now)[0] != a || a.fails != 0 {
		t.Error("a success does not end the cool-down")
	}
	for i, s := range p.servers { // all are cooling: the first to end in front
		p.bad(s, now.Add(-time.Duration(3-i)*100*time.Millisecond))
		s.until = now.Add(time.Duration(3-i) * time.Second)
	}
	if order := p.round(now); order[0] != p.servers[2] || order[2] != a {
		t.Error("of those cooling down the first to end is not asked first")
	}
}

// Clients that start together do not all take the same server.
func TestFirstServerIsSpread(t *testing.T) {
	list, err := parseServers([]string{"a,b,c"})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for range 3000 {
		counts[newPool(list).round(time.Now())[0].host]++
	}
	for host, n := range counts {
		if n < 850 || n > 1150 {
			t.Errorf("%s is first for %d of 3000 clients, want about 1000", host, n)
		}
	}
}

// Each server is asked exactly once a round, and no more often than a server
// that is overloaded can bear.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		hosts := []string{"a", "b", "c", "d", "e"}
		for _, host := range hosts {
			n.set(host, nil)
		}
		c := opened(t, ClientConfig{Servers: hosts, Dial: n.dial})
		start := time.Now()
		err := c.Register(t.Context(), orders())
		if took := time.Since(start); !errors.Is(err, registry.ErrUnavailable) || took > budgetTime {
			t.Errorf("got %v after %v", err, took)
		}
		for _, host := range hosts {
			if got := n.dialed(host); got != roundsMost {
				t.Errorf("%s was asked %d times in %d rounds", host, got, roundsMost)
			}
			if !strings.Contains(err.Error(), "http://"+host+":8848/nacos: ") {
				t.Errorf("error %q does not name %s", err, host)
			}
		}
	})
}

// Nacos that answers 503 for 5 s gets at most five requests (an old client was
// seen to send 19 008).
func TestOverloadIsNotMadeWorse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		var n network
		n.set("a", each(func(w io.Writer) { requests.Add(1); say(w, 503, "text/plain", "server is DOWN now") }))
		c := opened(t, ClientConfig{Servers: []string{"a"}, Dial: n.dial})
		end := time.Now().Add(5 * time.Second)
		for time.Now().Before(end) { // an agent beats every 5 s
			if _, err := c.Beat(t.Context(), orders()); !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "DOWN now") {
				t.Errorf("got %v", err)
			}
			time.Sleep(5 * time.Second)
		}
		if got := requests.Load(); got > 5 {
			t.Errorf("got %d requests in 5 s, want at most 5", got)
		}
	})
}

// The client stays with the server that answers, says so once when it has to
// leave it, and comes back to nobody while that one lives.
func TestSticky(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logtest.NewNullLogger()
		var n network
		n.set("a", healthy)
		n.set("b", nil)
		c := opened(t, ClientConfig{Servers: []string{"a", "b"}, Dial: n.dial, Log: log})
		beat := func() {
			t.Helper()
			if _, err := c.Beat(t.Context(), orders()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		beat()
		asked := n.dialed("b")
		for range 20 {
			beat()
		}
		if got := n.dialed("b"); got != asked {
			t.Errorf("b was dialled %d times while a lives", got-asked)
		}
		n.set("b", healthy)
		n.set("a", nil)
		c.Close() // the connection to a is gone
		for range 20 {
			beat()
		}
		n.set("a", healthy)
		asked = n.dialed("a")
		for range 20 {
			beat()
		}
		if got := n.dialed("a"); got != asked {
			t.Errorf("a was dialled %d times while b lives", got-asked)
		}
		if len(lines.AllEntries()) != 1 || lines.LastEntry().Message != "registry changed" ||
			lines.LastEntry().Level != logrus.WarnLevel || lines.LastEntry().Data["registry"] != "http://b:8848/nacos" {
			t.Errorf("got %d lines, last %+v, want one that names b", len(lines.AllEntries()), lines.LastEntry())
		}
	})
}

// A thousand agents whose server dies in the same instant do not fall on the
// survivor in one instant.
func TestNoStormOnTheSurvivor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		var mu sync.Mutex
		var at []time.Duration
		n.set("a", healthy)
		start := time.Now()
		n.set("b", func(conn net.Conn) {
			mu.Lock()
			at = append(at, time.Since(start))
			mu.Unlock()
			healthy(conn)
		})
		clients := make([]*Client, 1000)
		for i := range clients {
			clients[i] = opened(t, ClientConfig{Servers: []string{"a", "b"}, Dial: n.dial})
			clients[i].pool.sticky = clients[i].pool.servers[0]
		}
		n.set("a", nil)
		var running sync.WaitGroup
		for _, c := range clients {
			running.Go(func() {
				if _, err := c.Beat(t.Context(), orders()); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		slices.Sort(at)
		buckets := map[int]int{}
		for _, d := range at {
			buckets[int(d/(10*time.Millisecond))]++
		}
		for bucket, n := range buckets {
			if n > 120 { // 67 on average over 150 ms
				t.Errorf("%d of 1000 came within 10 ms, %v after the start", n, time.Duration(bucket)*10*time.Millisecond)
			}
		}
		if len(at) != 1000 || at[len(at)-1] > hopJitter {
			t.Errorf("%d came, the last after %v", len(at), at[len(at)-1])
		}
	})
}

// A call that the caller gave up blames no server and says so.
func TestCancelledCallBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		n.set("a", mute)
		n.set("b", mute)
		c := opened(t, ClientConfig{Servers: []string{"a", "b"}, Dial: n.dial})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := c.Beat(ctx, orders())
		if took := time.Since(start); !errors.Is(err, context.Canceled) || errors.Is(err, registry.ErrUnavailable) || took != time.Second {
			t.Errorf("got %v after %v, want the cancellation at once", err, took)
		}
		for _, s := range c.pool.servers {
			if s.fails > 0 {
				t.Errorf("%v is blamed", s.base)
			}
		}
	})
}

// A name that fails and then works is found within one call, and one that moves
// to another address is asked for with the next connection. The resolver is
// real; the name server is ours.
func TestNameFailsThenWorks(t *testing.T) {
	s := scriptedServer(t, nacosAnswer)
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var answers atomic.Bool
	resolver := nameServer(t, &answers)
	dialer := &net.Dialer{Resolver: resolver}
	c := opened(t, ClientConfig{Servers: []string{"nacos-0.test:" + port}, Dial: dialer.DialContext, Budget: time.Second})
	err = c.Register(t.Context(), orders())
	if !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "no such host") {
		t.Fatalf("got %v, want that the host is unknown", err)
	}
	answers.Store(true)
	if err := c.Register(t.Context(), orders()); err != nil {
		t.Errorf("after the name came to life: %v", err)
	}
}

// nameServer answers NXDOMAIN, or 127.0.0.1 to every A question once good.
func nameServer(t *testing.T, good *atomic.Bool) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		packet := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			conn.WriteTo(nameAnswer(packet[:n], good.Load()), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// nameAnswer turns a question into its answer (RFC 1035 section 4).
func nameAnswer(question []byte, good bool) []byte {
	end := 12 + slices.Index(question[12:], 0) + 5 // name, type, class
	answer := slices.Clone(question[:end])
	kind := binary.BigEndian.Uint16(question[end-4:])
	binary.BigEndian.PutUint16(answer[2:], 0x8580) // an answer, with authority
	copy(answer[6:], make([]byte, 6))
	if !good {
		answer[3] |= 3 // NXDOMAIN
	} else if kind == 1 {
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return answer
}
