package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// footprint runs one agent beside one HTTP app with its default pace and reads
// what it holds and spends.
func (b *bench) footprint(ctx context.Context) error {
	registry, address, _, err := b.startRegistry(ctx, b.temp+"/agent")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	web, err := self(ctx, "app")
	if err != nil {
		return err
	}
	defer web.stop(9)
	app, err := web.line(ctx)
	if err != nil {
		return err
	}
	agent, err := spawn(ctx, b.bin+"/sidebeat-agent", nil,
		"SIDEBEAT_NACOS=http://"+address, "SIDEBEAT_SERVICE=bench", "SIDEBEAT_ADDRESS="+app, "SIDEBEAT_ALLOW_LOOPBACK=true",
		"SIDEBEAT_CHECK=http://"+app+"/", "SIDEBEAT_ADMIN=127.0.0.1:0", "SIDEBEAT_DRAIN=0s", "SIDEBEAT_LOG_LEVEL=error")
	if err != nil {
		return err
	}
	defer agent.stop(15)
	if err := run.Wait(ctx, b.agent*4/5); err != nil {
		return err
	}
	before := agent.cpu()
	if err := run.Wait(ctx, b.agent/5); err != nil {
		return err
	}
	spent := (agent.cpu() - before).Seconds() * 1000 / (b.agent / 5).Minutes()
	if agent.status("VmRSS") == 0 {
		return fmt.Errorf("the agent has ended")
	}
	info, err := os.Stat(b.bin + "/sidebeat-agent")
	if err != nil {
		return err
	}
	mb := func(n uint64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
	report(fmt.Sprintf("agent after %v, resident MB", b.agent), mb(agent.status("VmRSS")), "aim 12, stretch 10")
	report("agent, of it anonymous MB", mb(agent.status("RssAnon")), "")
	report("agent, CPU ms a minute", fmt.Sprintf("%.0f", spent), "aim 40")
	report("agent, binary MB", mb(uint64(info.Size())), "aim 12")
	return nil
}

// app is a legacy HTTP service.
func app() int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Println(ln.Addr())
	fasthttp.Serve(ln, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("ok") })
	return 0
}
