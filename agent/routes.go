package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	pushPath = "/push/"
	pushMost = 24 * time.Hour
	noteMost = 200 // bytes that are kept of what an app says
)

// Routes are the agent's own endpoints for the admin server:
//
//	POST /drain                             returns when all apps are out of the registry
//	POST /push/NAME?ok=true&ttl=30s&note=.. what an app says of itself, for the check push:NAME
func (g *Agent) Routes() map[string]fasthttp.RequestHandler {
	routes := map[string]fasthttp.RequestHandler{"POST /drain": g.drainRoute}
	if g.Push != nil {
		routes["POST "+pushPath] = g.pushRoute
	}
	return routes
}

// DrainTime bounds a whole drain.
func (g *Agent) DrainTime() time.Duration {
	var most time.Duration
	for _, a := range g.apps {
		most = max(most, a.plan.drain)
	}
	return most + 2*callTime + parting
}

func (g *Agent) drainRoute(ctx *fasthttp.RequestCtx) {
	limit, cancel := context.WithTimeout(context.Background(), g.DrainTime())
	defer cancel()
	if err := g.Drain(limit); err != nil {
		ctx.Error(err.Error()+"\n", fasthttp.StatusServiceUnavailable)
		return
	}
	ctx.SetBodyString("drained\n")
}

func (g *Agent) pushRoute(ctx *fasthttp.RequestCtx) {
	name := strings.TrimPrefix(string(ctx.Path()), pushPath)
	args := ctx.QueryArgs()
	ok, err := strconv.ParseBool(string(args.Peek("ok")))
	if err != nil {
		ctx.Error("give ok=true or ok=false\n", fasthttp.StatusBadRequest)
		return
	}
	if all := g.pushed(); !slices.Contains(all, "push:"+name) {
		ctx.Error("no check has that name; there are: "+strings.Join(all, " ")+"\n", fasthttp.StatusNotFound)
		return
	}
	var ttl time.Duration // 0: as the check says
	if text := string(args.Peek("ttl")); text != "" {
		if ttl, err = time.ParseDuration(text); err != nil || ttl <= 0 || ttl > pushMost {
			ctx.Error("give ttl as a duration up to 24h, as 30s\n", fasthttp.StatusBadRequest)
			return
		}
	}
	note := string(args.Peek("note"))
	g.Push(name, ok, ttl, strings.ToValidUTF8(note[:min(len(note), noteMost)], ""))
	g.hear()
	ctx.SetBodyString("ok\n")
}

// pushed lists the push checks of all apps, as push:NAME.
func (g *Agent) pushed() (all []string) {
	for _, a := range g.apps {
		for i := range a.bells {
			if s := a.spec(i); s.Scheme() == "push" {
				label, _, _ := strings.Cut(s.Label(), "#")
				all = append(all, label)
			}
		}
	}
	return all
}

// hear asks the push checks at once.
func (g *Agent) hear() {
	for _, a := range g.apps {
		for i, bell := range a.bells {
			if a.spec(i).Scheme() == "push" {
				bell.Ring()
			}
		}
	}
}
