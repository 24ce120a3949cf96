package nacos

import (
	"cmp"
	"context"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// Push tells the subscribers of the 1.x protocol by UDP when a service they
// listed has changed (com.alibaba.nacos.naming.push.v1). Server.PushOver makes
// one; its Run has to run beside the server.
type Push struct {
	store      *registry.Store
	lists      *lists
	conn       Datagrams
	anyAddress bool

	mu    sync.Mutex
	fresh map[listKey][]subscriber
	said  map[registry.Service]struct{} // in the log: too large
	bell  run.Bell
	log   *logrus.Logger

	pending pending
	counts  pushCounts
	costs   pushCosts
}

// Datagrams is what a Push needs of its socket, which is a *net.UDPConn.
type Datagrams interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	Close() error
}

// subscriber is where a datagram goes, and how large it may be.
type subscriber struct {
	netip.AddrPort
	most int
}

// Times and bounds of UDP push.
const (
	// subscribed is how long a subscription holds after the last poll
	// (EphemeralIpPortClientManager: clients without publications).
	subscribed = 30 * time.Second
	// pushPeriod is the least time between two pushes of the same kind. Nacos
	// waits 500 ms before the first one as well.
	pushPeriod = 100 * time.Millisecond
	// mostWords bounds what is kept of a subscriber's own words, in bytes.
	mostWords = 1024
)

// PushOver lets the server push over a socket. Datagrams go to the address that
// a request came from; with anyAddress to the clientIP that it names, which
// makes the server send to whomever a stranger names. Call it before Handler
// answers.
func (s *Server) PushOver(conn Datagrams, anyAddress bool) *Push {
	s.push = &Push{
		store: s.Store, lists: &s.lists, conn: conn, anyAddress: anyAddress,
		fresh: map[listKey][]subscriber{}, said: map[registry.Service]struct{}{}, bell: run.NewBell(),
		log: s.Log, pending: newPending(),
	}
	return s.push
}

// Close is for a Push that never ran.
func (p *Push) Close() error { return p.conn.Close() }

// Run pushes until the context ends, and closes the socket.
func (p *Push) Run(ctx context.Context) error {
	watch := func(ctx context.Context) error { return p.store.Watch(ctx, p.tell) }
	again := func(ctx context.Context) error {
		return run.Every(ctx, resendTick, resendTick, func(context.Context) { p.resend(time.Now()) })
	}
	return run.All(ctx, watch, again, p.greet, p.hear)
}

// tell pushes the lists of services that changed to whoever subscribed to them.
func (p *Push) tell(changed []registry.Service) {
	if p.store.CountSubscribers() == 0 || !p.store.Switches().PushEnabled {
		return
	}
	for _, service := range changed {
		for key, all := range p.wanted(service) {
			p.send(key, all, true)
		}
	}
}

// greet pushes once to each new subscriber, for what changed between its poll
// and its subscription.
func (p *Push) greet(ctx context.Context) error {
	for {
		if _, err := run.WaitOr(ctx, time.Hour, p.bell); err != nil {
			return err
		}
		for key, all := range p.takeFresh() {
			p.send(key, all, false)
		}
		if err := run.Wait(ctx, pushPeriod); err != nil {
			return err
		}
	}
}

func (p *Push) takeFresh() map[listKey][]subscriber {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := p.fresh
	p.fresh = map[listKey][]subscriber{}
	return fresh
}

// subscribe notes who asks for a list in a way that means: and tell me.
func (p *Push) subscribe(c *call, clusters, ip, udpPort string) error {
	port, err := strconv.ParseInt(cmp.Or(udpPort, "0"), 10, 32)
	if err != nil {
		return unreadable(udpPort)
	}
	if p != nil && port > 0 && port <= math.MaxUint16 {
		p.take(c, clusters, ip, uint16(port))
	}
	return nil
}

func (p *Push) take(c *call, clusters, ip string, port uint16) {
	agent, app := c.agent(), c.form.or(paramApp, "unknown")
	if w := p.store.Switches(); !w.PushEnabled || !takesPushes(agent, w.PushVersions) {
		return
	}
	address, ok := p.address(c, ip)
	if !ok || len(agent)+len(app)+len(clusters) > mostWords {
		p.counts.refused.Add(1)
		return
	}
	at, healthyOnly := netip.AddrPortFrom(address, port), c.truth(false, paramHealthyOnly)
	fresh, taken := p.store.Subscribe(registry.Subscriber{
		Service: c.service, Address: at, Clusters: clusters, Agent: agent, App: app, HealthyOnly: healthyOnly,
	}, subscribed)
	switch {
	case !taken:
		p.counts.refused.Add(1)
	case fresh:
		p.welcome(listKey{c.service, clusters, healthyOnly}, subscriber{at, mostBytes(agent)})
	}
}

// welcome has a new subscriber greeted. The store bounds how many there are.
func (p *Push) welcome(key listKey, s subscriber) {
	p.mu.Lock()
	p.fresh[key] = append(p.fresh[key], s)
	p.mu.Unlock()
	p.bell.Ring()
}

// address is where pushes for a request go.
func (p *Push) address(c *call, named string) (netip.Addr, bool) {
	if p.anyAddress && named != "" {
		address, err := netip.ParseAddr(named)
		return address.Unmap(), err == nil && address.IsValid() && !address.IsUnspecified() && !address.IsMulticast()
	}
	tcp, ok := c.ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return tcp.AddrPort().Addr().Unmap(), true
}

// agent is what the client calls itself (com.alibaba.nacos.core.utils.WebUtils).
func (c *call) agent() string {
	if agent := c.ctx.Request.Header.UserAgent(); len(agent) > 0 {
		return string(agent)
	}
	return string(c.ctx.Request.Header.Peek("Client-Version"))
}

// takesPushes tells whether a client of this name understands pushes
// (com.alibaba.nacos.naming.push.v1.ClientInfo, UdpPushService.canEnablePush).
func takesPushes(agent string, least registry.PushVersions) bool {
	for _, known := range []struct{ prefix, least string }{
		{agentJava, least.Java}, {agentGo, least.Go}, {"Nacos-DNS:v", least.Python},
		{"Nacos-C-Client:v", least.C}, {"vip-client4cpp:v", least.C}, {"Nacos-CSharp-Client:v", least.CSharp},
	} {
		if version, ok := strings.CutPrefix(agent, known.prefix); ok {
			return atLeast(version, known.least)
		}
	}
	return false
}

const (
	agentJava = "Nacos-Java-Client:v"
	agentGo   = "Nacos-Go-Client:v"
)

// atLeast compares the first three numbers of versions; a version that has none
// is older than all.
func atLeast(version, least string) bool {
	got, ok := numbers(version)
	want, _ := numbers(least)
	if !ok {
		return false
	}
	for n := range got {
		if got[n] != want[n] {
			return got[n] > want[n]
		}
	}
	return true
}

func numbers(version string) (n [3]uint64, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return n, false
	}
	for i, part := range parts {
		if end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 && i == 2 {
			part = part[:end] // 1.4.8-SNAPSHOT
		}
		var err error
		if n[i], err = strconv.ParseUint(part, 10, 32); err != nil {
			return n, false
		}
	}
	return n, true
}
