package admin

import (
	"context"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

const (
	pprofPath = "/debug/pprof/"
	// profileTime is how long a profile of the processor takes unless the
	// request says otherwise, profileMost how long it may.
	profileTime = 10 * time.Second
	profileMost = time.Minute
)

// profile gives a profile by its name, as go tool pprof wants it: profile is
// that of the processor over ?seconds=, the others are of now. Profiles tell
// what is in memory and stop the world, so they are for whom a POST is open.
func (s *Server) profile(name string) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !s.admitted(ctx) {
			return
		}
		ctx.SetContentType("application/octet-stream")
		if name == "profile" {
			s.processor(ctx)
			return
		}
		p := pprof.Lookup(name)
		if p == nil {
			answer(ctx, fasthttp.StatusNotFound, "no such profile")
			return
		}
		debug, _ := strconv.Atoi(string(ctx.QueryArgs().Peek("debug")))
		if err := p.WriteTo(ctx, debug); err != nil {
			answer(ctx, fasthttp.StatusInternalServerError, "internal error")
		}
	}
}

// processor profiles for a while. A server that stops waits for it as for any
// request, 5 s.
func (s *Server) processor(ctx *fasthttp.RequestCtx) {
	length := profileTime
	if n, err := strconv.Atoi(string(ctx.QueryArgs().Peek("seconds"))); err == nil && n > 0 {
		length = min(time.Duration(min(n, 3600))*time.Second, profileMost)
	}
	if err := pprof.StartCPUProfile(ctx); err != nil {
		answer(ctx, fasthttp.StatusConflict, "somebody else is at it")
		return
	}
	defer pprof.StopCPUProfile()
	_ = run.Wait(context.Background(), length) // never fails
}
