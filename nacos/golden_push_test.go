package nacos

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// mailbox is a socket in this process, for bubbles: real ones do not work there.
type mailbox struct {
	mu     sync.Mutex
	sent   []mail
	acks   chan mail
	closed chan struct{}
	once   sync.Once
}

type mail struct {
	at   time.Time
	peer netip.AddrPort
	body []byte
}

func newMailbox() *mailbox {
	return &mailbox{acks: make(chan mail, 100), closed: make(chan struct{})}
}

func (m *mailbox) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case one := <-m.acks:
		return copy(b, one.body), one.peer, nil
	case <-m.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (m *mailbox) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, mail{time.Now(), to, bytes.Clone(b)})
	return len(b), nil
}

func (m *mailbox) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// take empties the box.
func (m *mailbox) take() []mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent := m.sent
	m.sent = nil
	return sent
}

// push reads a datagram.
func (m mail) push(t *testing.T) (body pushBody, zipped bool) {
	t.Helper()
	text := m.body
	if zipped = bytes.HasPrefix(text, []byte{0x1f, 0x8b}); zipped {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if text, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return body, zipped
}

// ack sends what a client answers a push.
func (m *mailbox) ack(t *testing.T, of mail) {
	t.Helper()
	body, _ := of.push(t)
	m.acks <- mail{peer: of.peer, body: fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%d","data":""}`, body.Moment)}
}

// maskedPush is a push without what changes from run to run, in the list within
// too.
func maskedPush(t *testing.T, text string) string {
	t.Helper()
	var body pushBody
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return body.Type + masked(body.Data)
}

// playPush plays a subscriber. Ours tells of a change at once and not after
// half a second, so that a burst may take two datagrams: what counts is the last.
func playPush(t *testing.T, r recording, c *score) {
	s := &Server{Store: registry.NewStore(), Log: silentLog()}
	box := newMailbox()
	s.PushOver(box, false)
	serve := startServer(t, s)
	began := time.Now()
	var got []mail
	for n, one := range r.Steps {
		reach(t, serve, r, n, began)
		switch {
		case one.UDP == "from server":
			if got = box.take(); len(got) == 0 {
				t.Fatalf("step %d (%s): nothing came", n, one.Note)
			}
			last := got[len(got)-1]
			if to := one.to(r); last.peer.String() != to {
				t.Errorf("step %d: pushed to %v, want %s", n, last.peer, to)
			}
			body, zipped := last.push(t)
			c.judge(t, r, n, shape{Type: fmt.Sprint("gzip ", zipped), Body: body.Type + masked(body.Data)})
		case one.UDP == "to server":
			for _, each := range got {
				box.ack(t, each)
			}
		case one.Request != nil:
			c.judge(t, r, n, ask(t, serve, one))
		}
	}
	if late := box.take(); len(late) > 0 {
		t.Errorf("%d datagrams that Nacos did not send, the first: %s", len(late), late[0].body)
	}
}

var udpPort = regexp.MustCompile(`\d+`)

// to is where the recorded subscriber listened.
func (s step) to(r recording) string {
	for _, one := range r.Steps {
		if one.Request != nil && udpPort.MatchString(one.Request.Query[paramUDPPort]) {
			return "127.0.0.1:" + one.Request.Query[paramUDPPort]
		}
	}
	return ""
}
