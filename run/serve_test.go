package run

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// The context may end before the server has begun to serve.
func TestServeOfAnEndedContextEnds(t *testing.T) {
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ln, err := Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(ctx, ln, &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, ReadTimeout: time.Second, IdleTimeout: time.Second})
		}()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("still serving")
		}
		if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			conn.Close()
			t.Fatal("the listener is still open")
		}
	}
}
