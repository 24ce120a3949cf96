package check

import (
	"context"
	"net/netip"
	"time"
)

// askTCP asks whether somebody listens. That says that the kernel, or a proxy
// on the way, takes connections, and not that the app answers.
func (a *Asker) askTCP(ctx context.Context, s Spec) Answer {
	answer, connected := a.each(ctx, time.Now(), s.host, s.port, func(ctx context.Context, target netip.AddrPort) error {
		return connect(ctx, target, s.full())
	})
	if connected {
		return Answer{Kind: Well, Reason: "connected"}
	}
	return answer
}
