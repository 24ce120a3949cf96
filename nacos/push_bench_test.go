package nacos

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// BenchmarkPush changes one of 1000 instances and waits until the last of 1000
// subscribers heard it. CPU is that of this process, subscribers included; they
// do not acknowledge.
func BenchmarkPush(b *testing.B) {
	const hearers = 1000
	s := crowded(b, 1000)
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		b.Fatal(err)
	}
	p := s.PushOver(conn, false)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(b.Context())
	go func() { ended <- p.Run(ctx) }()
	defer func() { stop(); <-ended }()
	heard := make(chan struct{}, hearers)
	for range hearers {
		hearDirectly(b, s.Store, heard)
	}
	var waits, spent time.Duration
	one := beaten
	one.Metadata = map[string]string{"zone": "a", "version": "1.2.3"}
	for b.Loop() {
		if err := run.Wait(ctx, 2*pushPeriod); err != nil { // changes that come quicker are merged
			b.Fatal(err)
		}
		one.Weight = 3 - one.Weight
		began, before := time.Now(), cpu(b)
		if err := s.Store.Register(ctx, one); err != nil {
			b.Fatal(err)
		}
		for range hearers {
			<-heard
		}
		waits, spent = waits+time.Since(began), spent+cpu(b)-before
	}
	b.ReportMetric(waits.Seconds()*1e3/float64(b.N), "ms-to-last")
	b.ReportMetric(spent.Seconds()*1e3/float64(b.N), "ms-CPU")
	if n := p.Counts(); n.Failed+n.TooLarge+n.LeftOut > 0 {
		b.Errorf("counts are %+v", n)
	}
}

// hearDirectly subscribes without HTTP and says each time that a push came.
func hearDirectly(b *testing.B, s *registry.Store, heard chan<- struct{}) {
	b.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	at, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		b.Fatal("no UDP")
	}
	s.Subscribe(registry.Subscriber{Service: beaten.Service, Address: at.AddrPort(), Agent: javaClient}, time.Hour)
	go func() {
		text := make([]byte, mostDatagram)
		for {
			if _, _, err := conn.ReadFromUDPAddrPort(text); err != nil {
				return
			}
			heard <- struct{}{}
		}
	}()
}
