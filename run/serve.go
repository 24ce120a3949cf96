package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// drainTime is how long a server that stops waits for requests in flight.
const drainTime = 5 * time.Second

// Listen opens a TCP listener. The error names the address.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", address, err)
	}
	return lazyListener{ln}, nil
}

// Serve answers on the listener until the context ends, then stops taking
// connections and gives requests in flight 5 s to finish. It closes the
// listener. While the system has no room for further connections they wait, and
// a Logger that is a ShortageLog is told. The server must have ReadTimeout and
// IdleTimeout set, or a half-sent request holds up the shutdown.
func Serve(ctx context.Context, ln net.Listener, server *fasthttp.Server) error {
	server.CloseOnShutdown = true
	shutdown := func(ctx context.Context) error {
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		err := server.ShutdownWithContext(drain)
		ln.Close() // a server that had not begun to serve knows of no listener to close
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("cannot stop serving %s: %w", ln.Addr(), err)
		}
		return nil
	}
	serve := func(ctx context.Context) error {
		if err := server.Serve(patiently(ctx, ln, server.Logger)); err != nil {
			return fmt.Errorf("cannot serve on %s: %w", ln.Addr(), err)
		}
		return nil
	}
	return All(ctx, serve, shutdown)
}
