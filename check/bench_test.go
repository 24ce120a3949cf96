package check

import (
	"net"
	"net/http"
	"testing"

	"github.com/sidebeat/sidebeat/netpolicy"
)

// One question over HTTP on a connection of its own, beside net/http's client
// told to do the same.
func BenchmarkHTTP(b *testing.B) {
	at := "http://" + says(b, ok) + "/"
	b.Run("ask", func(b *testing.B) {
		a := NewAsker(netpolicy.Policy{})
		s := must(b, at)
		for b.Loop() {
			if answer := a.Ask(b.Context(), s); answer.Kind != Well {
				b.Fatal(answer)
			}
		}
	})
	b.Run("net-http", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
		for b.Loop() {
			response, err := client.Get(at)
			if err != nil {
				b.Fatal(err)
			}
			response.Body.Close()
		}
	})
}

// One question over TCP, beside net.Dialer.
func BenchmarkTCP(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serve(b, ln, func(net.Conn) {})
	b.Run("ask", func(b *testing.B) {
		a := NewAsker(netpolicy.Policy{})
		s := must(b, "tcp://"+ln.Addr().String())
		for b.Loop() {
			if answer := a.Ask(b.Context(), s); answer.Kind != Well {
				b.Fatal(answer)
			}
		}
	})
	b.Run("net-dialer", func(b *testing.B) {
		for b.Loop() {
			conn, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			conn.Close()
		}
	})
}
