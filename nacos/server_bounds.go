package nacos

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// Bounds of what one of many clients can take from the others.
const (
	smallBody  = 16 << 10 // bytes of a body that every connection has room for
	mostBodies = 32 << 20 // bytes of larger ones, promised within readTimeout
	keptAnswer = 32 << 10 // bytes of an answer whose buffer its connection keeps
	// penance is how long who sends no HTTP waits for the answer and the end of
	// its connection: opening the next one is what costs us.
	penance = time.Second
)

// bodies bounds the memory for large bodies. fasthttp makes room for a body as
// soon as its length is known, so that a thousand clients who send a length and
// nothing else would take a gigabyte; here they take twice mostBodies at most.
type bodies struct {
	mu   sync.Mutex
	used float64 // bytes, at
	at   time.Time
}

// take notes a body of n bytes; false when there is no room.
func (b *bodies) take(n int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := max(0, b.used-mostBodies*now.Sub(b.at).Seconds()/readTimeout.Seconds())
	if used+float64(n) > mostBodies {
		return false
	}
	b.used, b.at = used+float64(n), now
	return true
}

// limit says how large the body of a request may be. One without a length is
// small or refused.
func (b *bodies) limit(header *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	if n := header.ContentLength(); n > smallBody && (n > maxBody || b.take(n, time.Now())) {
		return c
	}
	c.MaxRequestBodySize = smallBody
	return c
}

// refuseRequest answers what is no request this server reads. After that the
// connection ends.
func refuseRequest(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var slow interface{ Timeout() bool }
	switch length := ctx.Request.Header.ContentLength(); {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && length > maxBody:
		writeBody(ctx, http.StatusRequestEntityTooLarge, typeText, "the body is larger than 1 MiB")
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && length > 0:
		writeBody(ctx, http.StatusServiceUnavailable, typeText, "too many large bodies at once; try again")
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		writeBody(ctx, http.StatusLengthRequired, typeText, "a body that is larger than 16 KiB needs a Content-Length")
	case errors.As(err, &small):
		writeBody(ctx, http.StatusRequestHeaderFieldsTooLarge, typeText, "request line and headers are larger than 32 KiB")
	case errors.As(err, &slow) && slow.Timeout():
		writeBody(ctx, http.StatusRequestTimeout, typeText, "the request took longer than 10 s")
	default:
		writeBody(ctx, http.StatusBadRequest, typeText, "this is no HTTP request")
	}
	_ = run.Wait(context.Background(), penance) // never fails
}

// release gives back what a large request or answer would hold for as long as
// its connection is open.
func release(ctx *fasthttp.RequestCtx) {
	ctx.Request.ReleaseBody(smallBody)
	if len(ctx.Response.Body()) > keptAnswer {
		ctx.Response.SetBodyRaw(ctx.Response.SwapBody(nil))
	}
}
