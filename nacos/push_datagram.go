package nacos

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

const (
	// gzipFrom is the size in bytes from which a push is compressed
	// (com.alibaba.nacos.naming.constants.Constants.COMPRESSED_THRESHOLD).
	gzipFrom = 1024
	// mostDatagram is what UDP over IPv4 carries (RFC 768, RFC 791).
	mostDatagram = 65507
	// mostGo is the buffer of nacos-sdk-go v1 (clients/naming_client/push_receiver.go):
	// it cuts what is larger, and cannot read the rest.
	mostGo = 4024
)

func mostBytes(agent string) int {
	if strings.HasPrefix(agent, agentGo) {
		return mostGo
	}
	return mostDatagram
}

// pushBody is a datagram to a subscriber
// (com.alibaba.nacos.naming.push.v1.PushPacket).
type pushBody struct {
	Type   string `json:"type"`
	Data   string `json:"data"`        // a list as JSON, without groupName
	Moment int64  `json:"lastRefTime"` // names the push in its ack
}

// datagram writes what is pushed of a list. Whoever reads it finds out by its
// first bytes whether it is compressed.
func datagram(l shownList, group string, moment int64) ([]byte, error) {
	name, err := encode(group)
	if err != nil {
		return nil, err
	}
	head := bytes.Replace(l.head, []byte(`"groupName":`+string(name)+`,`), nil, 1)
	data := string(head) + strconv.FormatInt(l.moment, 10) + string(l.tail)
	plain, err := encode(pushBody{"dom", data, moment})
	if err != nil || len(plain) < gzipFrom {
		return plain, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(plain)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// ackBody is what a client answers a push
// (com.alibaba.nacos.naming.push.v1.PushAck). Java and Go write the moment as
// text, Node as a number.
type ackBody struct {
	Type   string      `json:"type"`
	Moment json.Number `json:"lastRefTime"`
}

// parseAck gives the moment of the push that a datagram acknowledges.
func parseAck(b []byte) (moment int64, err error) {
	var ack ackBody
	if err := json.Unmarshal(b, &ack); err != nil {
		return 0, fmt.Errorf("cannot read the ack of a push: %w", err)
	}
	if ack.Type != "push-ack" {
		return 0, fmt.Errorf("cannot read the ack of a push: its type is %.20q", ack.Type)
	}
	return ack.Moment.Int64()
}

// mostAck bounds an ack in bytes: real ones have some 60.
const mostAck = 1024

// hear takes acks until the context ends.
func (p *Push) hear(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = p.conn.Close() })() // ends the read below
	b := make([]byte, mostAck)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // what a kernel tells of an earlier datagram, for example
			if err := run.Wait(ctx, pushPeriod); err != nil {
				return err
			}
			continue
		}
		p.heard(from, b[:n], time.Now())
	}
}

// heard notes what came to the socket.
func (p *Push) heard(from netip.AddrPort, b []byte, now time.Time) {
	moment, err := parseAck(b)
	if err != nil {
		p.counts.unasked.Add(1)
		return
	}
	sent, ok := p.pending.ack(from, moment)
	if !ok {
		p.counts.unasked.Add(1)
		return
	}
	p.counts.acked.Add(1)
	p.costs.note(now.Sub(sent))
}

// send pushes one list to many: one encoding for all of them. With whole it
// goes to all who subscribed to the list, so that what they have not answered
// yet does not matter any more.
func (p *Push) send(key listKey, to []subscriber, whole bool) {
	l, err := p.lists.get(context.Background(), p.store, key, nil)
	if err != nil {
		return // encode says that of no list
	}
	moment := p.pending.moment(time.Now())
	body, err := datagram(l, key.Group, moment)
	if err != nil {
		return
	}
	r := newRound(key, moment, body)
	for _, s := range to {
		if len(body) <= s.most {
			r.waiting[s.AddrPort] = struct{}{}
		}
	}
	if cut := len(to) - len(r.waiting); cut > 0 {
		p.counts.tooLarge.Add(uint64(cut))
		p.sayTooLarge(key.Service, cut)
	}
	all := slices.Collect(maps.Keys(r.waiting)) // acks come while we send
	if !p.pending.add(r, whole, time.Now()) {
		p.counts.givenUp.Add(uint64(len(all)))
	}
	p.write(delivery{body, all}, &p.counts.sent)
}

// resend sends again what was not acknowledged in time.
func (p *Push) resend(now time.Time) {
	again, givenUp := p.pending.overdue(now)
	p.counts.givenUp.Add(uint64(givenUp))
	if !p.store.Switches().PushEnabled {
		return
	}
	for _, one := range again {
		p.write(one, &p.counts.resent)
	}
}

func (p *Push) write(d delivery, counter *atomic.Uint64) {
	for _, to := range d.to {
		if _, err := p.conn.WriteToUDPAddrPort(d.body, to); err != nil {
			p.counts.failed.Add(1)
			continue
		}
		counter.Add(1)
	}
}

// pushCounts count datagrams, and subscriptions that there was no place for.
type pushCounts struct {
	sent, acked, resent, givenUp, failed, tooLarge, leftOut, unasked, refused atomic.Uint64
}

// PushCounts are how many datagrams had which fate since the start.
type PushCounts struct {
	Sent, Acked, Resent uint64
	GivenUp             uint64 // sent twice without an ack; or once, while too much waits for acks
	Failed              uint64 // the kernel did not take it
	TooLarge            uint64 // not sent: the client could not read it
	LeftOut             uint64 // not sent: one of too many lists of its service
	Unasked             uint64 // acks that nothing waits for any more, or never did; garbage included
	Refused             uint64 // subscriptions that were not taken
}

// Counts gives the counters.
func (p *Push) Counts() PushCounts {
	n := &p.counts
	return PushCounts{
		n.sent.Load(), n.acked.Load(), n.resent.Load(), n.givenUp.Load(),
		n.failed.Load(), n.tooLarge.Load(), n.leftOut.Load(), n.unasked.Load(), n.refused.Load(),
	}
}
