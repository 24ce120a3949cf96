package nacos

import (
	"context"
	"sync"
	"time"
)

const (
	paramDetail = "detail"
	paramReset  = "reset"
)

// pushStateBody is the answer of operator/push/state
// (com.alibaba.nacos.naming.controllers.OperatorController, MetricsMonitor).
type pushStateBody struct {
	Succeed uint64         `json:"succeed"`
	Total   uint64         `json:"total"` // those that ended
	Ratio   any            `json:"ratio"` // a decimal, or the integer 0
	Detail  *pushCostsBody `json:"detail,omitempty"`
	Reset   bool           `json:"reset"`
}

// pushCostsBody has ms from a push to its ack; -1: there was none.
type pushCostsBody struct {
	Average int64 `json:"avgPushCost"`
	Most    int64 `json:"maxPushCost"`
}

// pushState tells how pushes fared since the last reset. Metrics are not reset.
func pushState(_ context.Context, s *Server, c *call) (any, error) {
	p := s.push
	if p == nil {
		p = &Push{}
	}
	return p.state(c.truth(false, paramDetail), c.truth(false, paramReset)), nil
}

func (p *Push) state(detail, reset bool) pushStateBody {
	acked, lost, costs := p.costs.since(p.Counts(), reset)
	body := pushStateBody{Succeed: acked, Total: acked + lost, Ratio: 0, Reset: reset}
	if body.Total > 0 {
		body.Ratio = asDecimal(float32(acked) / float32(body.Total))
	}
	if detail {
		body.Detail = &costs
	}
	return body
}

// pushCosts are how long acks took, and the counts at the last reset.
type pushCosts struct {
	mu    sync.Mutex
	from  PushCounts
	count int64
	sum   time.Duration
	most  time.Duration
}

func (p *pushCosts) note(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.sum += took
	p.most = max(p.most, took)
}

// since gives what came after the last reset, and resets.
func (p *pushCosts) since(now PushCounts, reset bool) (acked, lost uint64, costs pushCostsBody) {
	p.mu.Lock()
	defer p.mu.Unlock()
	acked = now.Acked - p.from.Acked
	lost = now.GivenUp - p.from.GivenUp // those that failed too, once nobody acknowledged the second one
	costs = pushCostsBody{-1, -1}
	if p.count > 0 {
		costs = pushCostsBody{(p.sum / time.Duration(p.count)).Milliseconds(), p.most.Milliseconds()}
	}
	if reset {
		p.from, p.count, p.sum, p.most = now, 0, 0, 0
	}
	return acked, lost, costs
}
