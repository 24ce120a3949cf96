// Sidebeat-registry is a naming server that speaks Nacos, with the prober
// inside. `sidebeat-registry --help` says how.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/prober"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/registry/raftlog"
	"github.com/sidebeat/sidebeat/run"
	"github.com/sidebeat/sidebeat/setting"
)

var version = "dev"

func main() { os.Exit(command(os.Args[1:], setting.Terminal(os.Stdout), setting.Terminal(os.Stderr))) }

// parts are the joined parts of one registry.
type parts struct {
	Config
	outlet *run.Outlet // where the log goes
	log    *logrus.Logger
	store  *registry.Store
	raft   *raftlog.Log
	asker  *check.Asker
	prober *prober.Prober // nil: SIDEBEAT_PROBE=false
	admin  *admin.Server
	access *access.Guard // nil: auth is off
	api    net.Listener
	server *nacos.Server
	http   *fasthttp.Server // of server
	push   *nacos.Push
}

// serve joins the parts and serves until a signal. The log is the last to end,
// so that every request in flight is still made durable.
func serve(c Config) error {
	ctx, stop := run.UntilSignal(context.Background())
	defer stop()
	outlet := run.NewOutlet(os.Stderr)
	p := &parts{Config: c, outlet: outlet, log: c.New(outlet), store: registry.NewStore()}
	if err := p.open(ctx); err != nil {
		return err
	}
	defer p.asker.Close()
	work := func(inner context.Context) error {
		inner, cancel := context.WithCancel(inner)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return run.All(inner, p.admin.Run, p.store.Run, p.push.Run, p.serveAPI, p.probe, p.guard)
	}
	return run.All(context.WithoutCancel(ctx), p.raft.Run, work)
}

// open takes the data folder and the ports.
func (p *parts) open(ctx context.Context) (err error) {
	if err := ensureFolder(p.Data); err != nil {
		return err
	}
	if err := p.openAccess(); err != nil {
		return err
	}
	p.store.Limit(registry.Limits{Instances: p.Limit.Instances, Services: p.Limit.Services})
	if p.raft, err = raftlog.Open(raftlog.Config{Folder: p.Data, Log: p.log}, p.store); err != nil {
		return err
	}
	p.store.UseLog(p.raft)
	p.store.OnOddPeriod(p.sayOdd)
	if err := p.joinProber(); err != nil {
		return errors.Join(err, p.raft.Close())
	}
	if err := p.bind(ctx); err != nil {
		return errors.Join(err, p.raft.Close())
	}
	return nil
}

// joinProber puts the prober on the store.
func (p *parts) joinProber() (err error) {
	p.asker = check.NewAsker(p.Probing.Policy(p.own))
	if !p.Probe {
		return nil
	}
	if p.prober, err = prober.New(prober.Config{Probe: p.Probing}, p.store, p.asker, p.log); err != nil {
		return err
	}
	p.prober.Changed = p.store.Watch
	p.prober.Paused = func() bool { return !p.store.Switches().HealthCheckEnabled }
	return nil
}

// own tells whether a port is the registry's own: nobody may have the prober
// go there by registering it.
func (p *parts) own(target netip.AddrPort) bool {
	return netpolicy.Listens(p.api.Addr().String(), target) || netpolicy.Listens(p.admin.Bound(), target)
}

// bind takes the ports before anything is served, so that one in use is found
// at once.
func (p *parts) bind(ctx context.Context) (err error) {
	if p.api, err = run.Listen(ctx, p.Listen); err != nil {
		return err
	}
	own, err := p.TLS(p.log)
	if err != nil {
		return errors.Join(err, p.api.Close())
	}
	if err := p.joinPush(); err != nil {
		return errors.Join(err, p.api.Close())
	}
	p.http = p.server.HTTP()
	p.api = p.server.Bound(p.api, own == nil)
	if own != nil {
		p.api = tls.NewListener(p.api, own)
	}
	p.admin = p.newAdmin(own)
	if p.Admin != admin.Off {
		if err := p.admin.Listen(ctx); err != nil {
			return errors.Join(err, p.api.Close(), p.push.Close())
		}
	}
	if at, ok := p.api.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && p.access == nil {
		p.log.WithField("address", at.String()).Warn("the registry is reachable from other machines and auth is off: anybody who reaches it may change it; set SIDEBEAT_USERS_FILE")
	}
	return nil
}

// joinPush makes the server, with pushes by UDP from the address that the API
// listens on and any port.
func (p *parts) joinPush() error {
	p.server = &nacos.Server{Store: p.store, Log: p.log, ProberInside: p.Probe, Version: version, Writable: p.raft.Writable, Access: p.access, Limits: p.Limit}
	var at net.UDPAddr
	if api, ok := p.api.Addr().(*net.TCPAddr); ok {
		at.IP, at.Zone = api.IP, api.Zone
	}
	conn, err := net.ListenUDP("udp", &at)
	if err != nil {
		return fmt.Errorf("cannot push by UDP from SIDEBEAT_LISTEN=%q: %w", p.Listen, err)
	}
	p.push = p.server.PushOver(conn, p.PushAnyAddress)
	return nil
}

// serveAPI answers the Nacos API as soon as everything durable is there again.
func (p *parts) serveAPI(ctx context.Context) error {
	if err := p.raft.WaitReady(ctx); err != nil {
		return errors.Join(err, p.api.Close())
	}
	p.log.WithField("address", p.addresses()).WithField("count", p.store.Counts().Persistent).Info("the registry serves")
	return run.Serve(ctx, p.api, p.http)
}

// probe runs the prober inside, if there is one.
func (p *parts) probe(ctx context.Context) error {
	if err := p.raft.WaitReady(ctx); err != nil || p.prober == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.prober.Run(ctx)
}

// ensureFolder makes the data folder, for nobody but us to read.
func ensureFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder SIDEBEAT_DATA=%q: %w; give one that this user may write to", folder, err)
	}
	probe, err := os.CreateTemp(folder, ".writable-*")
	if err != nil {
		return fmt.Errorf("cannot write to the data folder SIDEBEAT_DATA=%q: %w; give one that this user may write to", folder, err)
	}
	return errors.Join(probe.Close(), os.Remove(filepath.Clean(probe.Name())))
}
