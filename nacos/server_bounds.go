package nacos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// Bounds of what one of many clients can take from the others.
const (
	smallBody  = 16 << 10 // bytes of a body that every connection has room for
	mostBodies = 32 << 20 // bytes of larger ones, promised within the time to read one
	keptAnswer = 32 << 10 // bytes of an answer whose buffer its connection keeps
	// penance is how long who sends no HTTP waits for the answer and the end of
	// its connection: opening the next one is what costs us.
	penance = time.Second
)

// bodies bounds the memory for large bodies. fasthttp makes room for a body as
// soon as its length is known, so that a thousand clients who send a length and
// nothing else would take a gigabyte; here they take twice mostBodies at most,
// or two bodies when the limit of one is larger.
type bodies struct {
	mu   sync.Mutex
	used float64 // bytes, at
	at   time.Time
}

// take notes a body of n bytes; false when there is no room. What was promised
// is over within span.
func (b *bodies) take(n, most int, span time.Duration, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := max(0, b.used-float64(most)*now.Sub(b.at).Seconds()/span.Seconds())
	if used+float64(n) > float64(most) {
		return false
	}
	b.used, b.at = used+float64(n), now
	return true
}

// limitBody says how large the body of a request may be. One without a length
// is small or refused.
func (b *bounds) limitBody(header *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	n := header.ContentLength()
	if n > smallBody && (n > b.Body || b.bodies.take(n, max(mostBodies, b.Body), b.ReadTime, time.Now())) {
		return c
	}
	c.MaxRequestBodySize = smallBody
	return c
}

// refuseRequest answers what is no request this server reads. After that the
// connection ends.
func (b *bounds) refuseRequest(ctx *fasthttp.RequestCtx, err error) {
	status, text, reached := b.unreadable(err, ctx.Request.Header.ContentLength())
	b.refuse(reached)
	writeBody(ctx, status, typeText, text)
	_ = run.Wait(context.Background(), penance) // never fails
}

func (b *bounds) unreadable(err error, length int) (status int, text string, reached limit) {
	var small *fasthttp.ErrSmallBuffer
	var slow interface{ Timeout() bool }
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && length > b.Body:
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", b.Body), limitBody
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && length > 0:
		return http.StatusServiceUnavailable, "too many large bodies at once; try again", limitBody
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return http.StatusLengthRequired, fmt.Sprintf("a body that is larger than %d bytes needs a Content-Length", smallBody), limitBody
	case errors.As(err, &small):
		return http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("request line and headers are larger than %d bytes", b.Header), limitHeader
	case errors.As(err, &slow) && slow.Timeout():
		return http.StatusRequestTimeout, fmt.Sprintf("the request took longer than %v", b.ReadTime), limitReadTime
	}
	return http.StatusBadRequest, "this is no HTTP request", limitNone
}

// prompt are the paths whose reads are answered at once whatever there is: lists
// are kept ready, and the others tell of the server.
var prompt = []string{
	pathInstanceList, "/v2/ns/instance/list",
	pathServerState, pathLiveness, pathReadiness, pathActuator, pathHello, pathOperator + "/metrics", pathOps + "/metrics",
	"/v2/console/health/liveness", "/v2/console/health/readiness", "/v2/ns/operator/metrics", "/v2/ns/ops/metrics",
	"/v3/admin/core/state", "/v3/admin/core/state/liveness", "/v3/admin/core/state/readiness", "/v3/admin/ns/ops/metrics",
}

// bounded bounds how many requests of a path are at work. Beats count nowhere:
// one that is refused makes somebody unhealthy.
func (b *bounds) bounded(path string, there route) route {
	for method, h := range there {
		switch read := method == http.MethodGet; {
		case read && slices.Contains(prompt, path), strings.HasSuffix(path, "/beat"):
		case read:
			there[method] = b.counted(b.placed(h))
		case path == pathRegisterOrBeat && method == http.MethodPost:
			there[method] = unlessBeat(h, b.counted(h))
		default:
			there[method] = b.counted(h)
		}
	}
	return there
}

// unlessBeat tells beats from what else the path of v3 takes.
func unlessBeat(beat, other handler) handler {
	return func(s *Server, c *call) {
		if c.truth(false, paramHeartBeat) {
			beat(s, c)
			return
		}
		other(s, c)
	}
}

// counted refuses a request when as many as may be are at work.
func (b *bounds) counted(h handler) handler {
	return func(s *Server, c *call) {
		from := c.guest()
		if f := b.begin(from); f != nil {
			c.writeFault(f)
			return
		}
		defer b.end(from)
		h(s, c)
	}
}

// begin notes a request that counts, and refuses one too many. One address has
// half of what may be at most: on a slow disk, or behind slow reads, it would
// have all of it.
func (b *bounds) begin(from *guest) *fault {
	switch {
	case b.requests.Add(1) > int64(b.Requests):
		b.requests.Add(-1)
		return busy("too many requests at once; try again")
	case from != nil && from.requests.Add(1) > int64(b.Requests+1)/2:
		b.end(from)
		return busy("your address has half of the requests that may be at work at once (SIDEBEAT_LIMIT_REQUESTS); try again")
	}
	return nil
}

func (b *bounds) end(from *guest) {
	b.requests.Add(-1)
	if from != nil {
		from.requests.Add(-1)
	}
}

// placed has a read wait for a place, as long as an operation may take.
func (b *bounds) placed(h handler) handler {
	return func(s *Server, c *call) {
		ctx, cancel := withinTime()
		defer cancel()
		if !b.places.enter(ctx, c.guest()) {
			c.writeFault(errNoPlace())
			return
		}
		defer b.places.leave()
		h(s, c)
	}
}

func errNoPlace() *fault { return busy("too many reads at once; try again") }

func busy(text string) *fault {
	f := boot(http.StatusServiceUnavailable, text)
	f.limit = limitRequests
	return f
}
