package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

const (
	hearers = 1000 // subscribers by UDP
	changes = 20   // of one instance
)

// pushes measures how long 1000 subscribers wait for a change of one among 1000
// instances, and what it costs the registry.
func (b *bench) pushes(ctx context.Context) error {
	registry, address, err := b.crowded(ctx, b.temp+"/pushes")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	heard := make(chan struct{}, hearers)
	all := make([]*net.UDPConn, 0, hearers)
	defer func() {
		for _, conn := range all {
			conn.Close()
		}
	}()
	for range hearers {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		all = append(all, conn)
		go hear(conn, heard)
	}
	if err := each(hearers, func(i int) error { return subscribe(address, all[i]) }); err != nil {
		return err
	}
	if err := await(ctx, heard, hearers); err != nil { // the first push to each
		return err
	}
	var waits, costs []float64
	for n := range changes {
		if err := run.Wait(ctx, 200*time.Millisecond); err != nil { // changes that come quicker are merged
			return err
		}
		before, began := registry.cpu(), time.Now()
		if err := post(address, crowdMember(0, float64(n+2))); err != nil {
			return err
		}
		if err := await(ctx, heard, hearers); err != nil {
			return err
		}
		waits, costs = append(waits, float64(time.Since(began))), append(costs, float64(registry.cpu()-before))
	}
	what := fmt.Sprintf("1 of %d changes, %d hear by UDP: ", crowd, hearers)
	report(what+"ms to the last", fmt.Sprintf("%.1f", median(waits)/1e6), "")
	report(what+"ms of CPU", fmt.Sprintf("%.1f", median(costs)/1e6), "")
	return nil
}

// hear takes pushes and acknowledges them as a client would, until the socket
// is closed.
func hear(conn *net.UDPConn, heard chan<- struct{}) {
	b := make([]byte, math.MaxUint16)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		if acknowledge(conn, from, b[:n]) == nil {
			heard <- struct{}{}
		}
	}
}

func acknowledge(conn *net.UDPConn, to netip.AddrPort, push []byte) error {
	moment, err := momentOf(push)
	if err != nil {
		return err
	}
	_, err = conn.WriteToUDPAddrPort(fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%d","data":""}`, moment), to)
	return err
}

// moments spares reading again what all subscribers are sent: that would take
// this process longer than it takes the registry to send it.
var moments sync.Map // datagram: lastRefTime

// momentOf reads what names a push.
func momentOf(push []byte) (int64, error) {
	if known, ok := moments.Load(string(push)); ok {
		return known.(int64), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(push))
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	var body struct{ LastRefTime int64 }
	if err := json.Unmarshal(text, &body); err != nil {
		return 0, err
	}
	moments.Store(string(push), body.LastRefTime)
	return body.LastRefTime, nil
}

func subscribe(address string, conn *net.UDPConn) error {
	var req fasthttp.Request
	var resp fasthttp.Response
	req.SetRequestURI(fmt.Sprintf("http://%s%s&udpPort=%d", address, listPath, conn.LocalAddr().(*net.UDPAddr).Port))
	req.Header.SetUserAgent("Nacos-Java-Client:v1.4.8")
	if err := poster.DoTimeout(&req, &resp, 10*time.Second); err != nil {
		return err
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("a subscription was answered %d %.100q", resp.StatusCode(), resp.Body())
	}
	return nil
}

// await waits until so many pushes were heard.
func await(ctx context.Context, heard <-chan struct{}, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for i := range n {
		select {
		case <-heard:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pushes were heard: %w", i, n, ctx.Err())
		}
	}
	return nil
}
