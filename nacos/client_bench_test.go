package nacos

import (
	"net"
	"testing"

	"github.com/valyala/fasthttp"
)

// BenchmarkLightBeat is what one beat costs an agent: the client alone, against
// a server in the same process that answers from memory.
func BenchmarkLightBeat(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.SetBodyString(saidOK)
	}}
	go server.Serve(ln)
	defer server.Shutdown()
	c, err := NewClient(ClientConfig{Servers: []string{ln.Addr().String()}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	i := orders()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Beat(b.Context(), i); err != nil {
			b.Fatal(err)
		}
	}
}
