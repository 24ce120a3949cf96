// Sidebeat-prober asks the persistent instances of a registry whether they are
// alive and marks them. `sidebeat-prober --help` says how.
package main

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/prober"
	"github.com/sidebeat/sidebeat/run"
	"github.com/sidebeat/sidebeat/setting"
)

var version = "dev"

func main() { os.Exit(command(os.Args[1:], setting.Terminal(os.Stdout), setting.Terminal(os.Stderr))) }

// settings are those of prober, registry client and log.
type settings struct {
	prober.Config
	setting.Log
}

// Validate joins the complaints of all.
func (s *settings) Validate() error {
	return errors.Join(s.Config.Validate(), s.Log.Validate(), nacos.CheckServers("SIDEBEAT_NACOS", s.Nacos))
}

// serve joins the parts and probes until a signal.
func serve(s *settings, outlet *run.Outlet) error {
	log := s.Log.New(outlet)
	ctx, stop := run.UntilSignal(context.Background())
	defer stop()
	secure, err := s.RegistryTLS.TLS(log)
	if err != nil {
		return err
	}
	own, err := s.Listeners.TLS(log)
	if err != nil {
		return err
	}
	client, err := nacos.NewClient(nacos.ClientConfig{
		Servers: s.Nacos, Username: s.Username, Password: s.Password.Value, TLS: secure, Version: version, Log: log,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	server := new(admin.Server) // until there is one
	asker := check.NewAsker(s.Policy(func(target netip.AddrPort) bool {
		return client.Serves(target) || netpolicy.Listens(server.Bound(), target)
	}))
	defer asker.Close()
	p, err := prober.New(s.Config, client, asker, log)
	if err != nil {
		return err
	}
	p.Observe = client.ProberInside
	server = &admin.Server{
		Address: s.Admin, TLS: own, Token: s.AdminToken.Value, Pprof: s.AdminPprof, Log: log, Version: version, LogLost: outlet.Lost, Healthy: p.Healthy, Ready: p.Ready, Status: p.Status, Metrics: p.Metrics,
		Routes: map[string]fasthttp.RequestHandler{"GET /targets": p.ServeTargets},
	}
	if s.Admin != admin.Off {
		if err := server.Listen(ctx); err != nil {
			return err
		}
		log.WithField("address", server.Bound()).Info("the prober works")
	}
	return run.All(ctx, p.Run, server.Run)
}

func runProber(stderr io.Writer) int {
	s, err := load(stderr)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	if err := serve(s, run.NewOutlet(os.Stderr)); err != nil {
		return fail(stderr, exitFailed, err)
	}
	return exitOK
}
