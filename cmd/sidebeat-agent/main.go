// Sidebeat-agent keeps the instances of one pod's apps in a Nacos registry in
// step with whether the apps are alive. `sidebeat-agent --help` says how.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/agent"
	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/run"
	"github.com/sidebeat/sidebeat/setting"
)

var version = "dev"

// Exit codes; 130 is a second signal.
const (
	exitOK     = 0
	exitFailed = 1 // it could not run, or the answer is no
	exitUsage  = 2 // a setting or a word on the command line is wrong
	exitListed = 3 // an instance could not be deregistered and may still be listed
)

func main() { os.Exit(command(os.Args[1:], setting.Terminal(os.Stdout), setting.Terminal(os.Stderr))) }

// settings are those of agent, registry client and log.
type settings struct {
	agent.Config
	setting.Log
}

// parts are the joined parts of one agent.
type parts struct {
	settings
	outlet *run.Outlet // where the log goes
	log    *logrus.Logger
	agent  *agent.Agent
	asker  *check.Asker
	client *nacos.Client
	admin  *admin.Server
}

// join reads the settings and joins the parts; all that is wrong with the
// settings is said at once, before anything is contacted.
func join(warn io.Writer) (*parts, error) {
	p := &parts{settings: settings{Config: agent.Config{PodIP: os.Getenv("POD_IP")}}, outlet: run.NewOutlet(os.Stderr), admin: &admin.Server{}}
	warnings, err := setting.Load(&p.Config, &p.Log)
	for _, w := range warnings {
		fmt.Fprintln(warn, "warning:", w)
	}
	p.log = p.Log.New(p.outlet)
	secure, tlsErr := p.RegistryTLS.TLS(p.log)
	if err == nil { // else it has been said
		err = tlsErr
	}
	client, clientErr := nacos.NewClient(nacos.ClientConfig{
		Servers: p.Nacos, Username: p.Username, Password: p.Password.Value, TLS: secure, Version: version, Log: p.log,
	})
	if clientErr != nil {
		clientErr = fmt.Errorf("cannot use SIDEBEAT_NACOS: %w", clientErr)
	}
	if err := errors.Join(err, clientErr); err != nil {
		return nil, err
	}
	p.client, p.asker = client, check.NewAsker(p.Policy(p.own))
	if p.agent, err = agent.New(p.Config, client, p.asker, p.log); err != nil {
		return nil, err
	}
	p.agent.Route, p.agent.Push = client.Route, p.asker.Push
	return p, nil
}

// own tells whether an address is the agent's own or the registry's: no check
// goes there, whatever a redirect or a name says.
func (p *parts) own(target netip.AddrPort) bool {
	return p.client.Serves(target) || netpolicy.Listens(p.admin.Bound(), target)
}

// serve runs the agent until ctx ends at a signal, then drains. The admin
// endpoint is bound first, so that a port in use is found before anything is
// registered, and answers until the drain is over.
func serve(ctx context.Context, p *parts) error {
	own, err := p.Listeners.TLS(p.log)
	if err != nil {
		return err
	}
	p.admin = &admin.Server{
		Address: p.Admin, TLS: own, Token: p.AdminToken.Value, Pprof: p.AdminPprof, Log: p.log, Version: version, LogLost: p.outlet.Lost,
		Healthy: p.agent.Healthy, Ready: p.agent.Ready, Status: p.agent.Status, Metrics: p.agent.Metrics, Routes: p.agent.Routes(),
	}
	if p.Admin != admin.Off {
		if err := p.admin.Listen(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	look := func(inner context.Context) error {
		inner, cancel := context.WithCancel(inner)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return p.agent.Run(inner)
	}
	all := []run.Part{look, p.admin.Run, trim}
	if os.Getpid() == 1 {
		all = append(all, check.Reap)
	}
	return run.All(context.Background(), all...)
}

// trim gives memory back once a minute: a sidecar is paid for once a pod.
func trim(ctx context.Context) error {
	return run.Every(ctx, time.Minute, time.Minute, func(context.Context) { debug.FreeOSMemory() })
}

func runAgent(stderr io.Writer) int {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1) // a few requests a second; fewer threads, less memory
	}
	ctx, stop := run.UntilSignal(context.Background()) // first: settings may take time to read
	defer stop()
	p, err := join(stderr)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	defer p.client.Close()
	defer p.asker.Close()
	switch err := serve(ctx, p); {
	case errors.Is(err, agent.ErrStillListed):
		return fail(stderr, exitListed, err)
	case err != nil:
		return fail(stderr, exitFailed, err)
	}
	return exitOK
}

func fail(w io.Writer, code int, err error) int {
	fmt.Fprintln(w, "sidebeat-agent:", err)
	return code
}
