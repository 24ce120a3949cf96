package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/registry"
)

// status is GET /status.
type status struct {
	Version     string `json:"version"`
	Address     string `json:"address"` // of the Nacos API
	Data        string `json:"data"`    // folder
	Writable    string `json:"writable"`
	Auth        string `json:"auth"` // off, or on with how many users
	Services    int    `json:"services"`
	Ephemeral   int    `json:"ephemeral"`  // instances
	Persistent  int    `json:"persistent"` // instances
	Unhealthy   int    `json:"unhealthy"`  // instances of both kinds
	Beats       uint64 `json:"beats"`
	Expiries    uint64 `json:"expiries"`
	Subscribers int    `json:"subscribers"` // by UDP
	Prober      any    `json:"prober,omitempty"`
}

// newAdmin joins the parts to the registry's own HTTP.
func (p *parts) newAdmin(own *tls.Config) *admin.Server {
	s := &admin.Server{
		Address: p.Admin, TLS: own, Token: p.AdminToken.Value, Pprof: p.AdminPprof, Log: p.log, Version: version, LogLost: p.outlet.Lost,
		Healthy: p.healthy, Ready: p.ready, Status: p.status, Metrics: p.metrics,
	}
	if p.prober != nil {
		s.Routes = map[string]fasthttp.RequestHandler{"GET /targets": p.prober.ServeTargets}
	}
	return s
}

// healthy tells whether the process works; a new one would help if not.
func (p *parts) healthy() error {
	if p.prober == nil {
		return p.store.Damaged()
	}
	return errors.Join(p.store.Damaged(), p.prober.Healthy())
}

// ready tells whether the API is served. A nearly full disk keeps writes out,
// not reads and beats, so it is said in the status only.
func (p *parts) ready() error {
	if !p.raft.Ready() {
		return errors.New("the log has no leader yet")
	}
	return nil
}

func (p *parts) status() any {
	n := p.store.Counts()
	s := status{
		Version: version, Address: p.api.Addr().String(), Data: p.Data, Writable: "yes",
		Services: n.Services, Ephemeral: n.Ephemeral, Persistent: n.Persistent, Unhealthy: n.Unhealthy, Beats: n.Beats, Expiries: n.Expiries,
		Subscribers: p.store.CountSubscribers(),
	}
	if s.Auth = "off"; p.access != nil {
		s.Auth = fmt.Sprintf("on, %d users", p.access.Counts().Users)
	}
	if err := p.raft.Writable(); err != nil {
		s.Writable = err.Error()
	}
	if p.prober != nil {
		s.Prober = p.prober.Status()
	}
	return s
}

// metrics writes those of the store, then those of the prober.
func (p *parts) metrics(w io.Writer) {
	n := p.store.Counts()
	gauge := func(name string, value int) { metrics.WriteGaugeUint64(w, name, uint64(value)) }
	gauge(`sidebeat_registry_subscribers`, p.store.CountSubscribers())
	gauge(`sidebeat_registry_services`, n.Services)
	gauge(`sidebeat_registry_instances{kind="ephemeral"}`, n.Ephemeral)
	gauge(`sidebeat_registry_instances{kind="persistent"}`, n.Persistent)
	gauge(`sidebeat_registry_unhealthy_instances`, n.Unhealthy)
	metrics.WriteCounterUint64(w, `sidebeat_registry_beats_total`, n.Beats)
	metrics.WriteCounterUint64(w, `sidebeat_registry_expired_instances_total`, n.Expiries)
	writable := 0
	if p.raft.Writable() == nil {
		writable = 1
	}
	gauge(`sidebeat_registry_writable`, writable)
	writePushes(w, p.push.Counts())
	connections, requests := p.server.Load()
	gauge(`sidebeat_registry_connections`, connections)
	gauge(`sidebeat_registry_requests`, requests)
	metrics.WriteCounterUint64(w, `sidebeat_registry_held_answers_total`, p.server.Held())
	refused := p.server.Refused()
	for _, limit := range slices.Sorted(maps.Keys(refused)) {
		metrics.WriteCounterUint64(w, `sidebeat_registry_refused_total{limit="`+limit+`"}`, refused[limit])
	}
	if p.access != nil {
		accessMetrics(w, p.access.Counts())
	}
	if p.prober != nil {
		p.prober.Metrics(w)
	}
}

func writePushes(w io.Writer, n nacos.PushCounts) {
	fates := map[string]uint64{
		"sent": n.Sent, "acked": n.Acked, "resent": n.Resent, "given_up": n.GivenUp, "failed": n.Failed, "too_large": n.TooLarge,
		"left_out": n.LeftOut,
	}
	for _, fate := range slices.Sorted(maps.Keys(fates)) {
		metrics.WriteCounterUint64(w, `sidebeat_registry_pushes_total{fate="`+fate+`"}`, fates[fate])
	}
	metrics.WriteCounterUint64(w, `sidebeat_registry_unasked_acks_total`, n.Unasked)
	metrics.WriteCounterUint64(w, `sidebeat_registry_refused_subscriptions_total`, n.Refused)
}

// addresses gives where the registry can be reached, for one line of the log.
func (p *parts) addresses() string {
	if p.Admin == admin.Off {
		return p.api.Addr().String()
	}
	return fmt.Sprintf("%s, admin %s", p.api.Addr(), p.admin.Bound())
}

func (p *parts) sayOdd(k registry.Key, name, value string) {
	p.log.WithField("service", k.Service.String()).WithField("instance", k.Address()).
		WithField("cause", fmt.Sprintf("%s=%q is no number of milliseconds", name, value)).Warn("a period is not understood, the default holds")
}

func accessMetrics(w io.Writer, n access.Counts) {
	for _, one := range []struct {
		result string
		value  uint64
	}{{"ok", n.LoggedIn}, {"refused", n.Refused}, {"limited", n.Limited}, {"busy", n.Busy}} {
		metrics.WriteCounterUint64(w, `sidebeat_registry_logins_total{result="`+one.result+`"}`, one.value)
	}
	metrics.WriteCounterUint64(w, `sidebeat_registry_denied_requests_total`, n.Denied)
}
