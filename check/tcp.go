package check

import (
	"context"
	"time"
)

func (a *Asker) askTCP(ctx context.Context, s Spec) Answer {
	conn, answer := a.reach(ctx, time.Now(), s.host, s.port)
	if conn == nil {
		return answer
	}
	conn.Close()
	return Answer{Kind: Well, Reason: "connected"}
}
