package nacos

import (
	"bytes"
	"context"
	"net/http"
	"slices"

	"github.com/sidebeat/sidebeat/registry"
)

// switchesBody is the answer of operator/switches
// (com.alibaba.nacos.naming.misc.SwitchDomain); what is always empty is empty.
type switchesBody struct {
	Masters             []string       `json:"masters"`
	Weights             struct{}       `json:"adWeightMap"`
	PushCacheMillis     int64          `json:"defaultPushCacheMillis"`
	ClientBeatInterval  int64          `json:"clientBeatInterval"`
	CacheMillis         int64          `json:"defaultCacheMillis"`
	DistroThreshold     decimal        `json:"distroThreshold"`
	HealthCheckEnabled  bool           `json:"healthCheckEnabled"`
	AutoChangeHealth    bool           `json:"autoChangeHealthCheckEnabled"`
	DistroEnabled       bool           `json:"distroEnabled"`
	EnableStandalone    bool           `json:"enableStandalone"`
	PushEnabled         bool           `json:"pushEnabled"`
	CheckTimes          int            `json:"checkTimes"`
	HTTPHealth          paramsBody     `json:"httpHealthParams"`
	TCPHealth           paramsBody     `json:"tcpHealthParams"`
	MySQLHealth         paramsBody     `json:"mysqlHealthParams"`
	Incremental         []string       `json:"incrementalList"`
	ServerStatusMillis  int64          `json:"serverStatusSynchronizationPeriodMillis"`
	ServiceStatusMillis int64          `json:"serviceStatusSynchronizationPeriodMillis"`
	DisableAddIP        bool           `json:"disableAddIP"`
	SendBeatOnly        bool           `json:"sendBeatOnly"`
	LightBeatEnabled    bool           `json:"lightBeatEnabled"`
	LimitedURLs         map[string]int `json:"limitedUrlMap"`
	DistroExpiredMillis int64          `json:"distroServerExpiredMillis"`
	PushGo              string         `json:"pushGoVersion"`
	PushJava            string         `json:"pushJavaVersion"`
	PushPython          string         `json:"pushPythonVersion"`
	PushC               string         `json:"pushCVersion"`
	PushCSharp          string         `json:"pushCSharpVersion"`
	Authentication      bool           `json:"enableAuthentication"`
	OverriddenStatus    *string        `json:"overriddenServerStatus"`
	EphemeralByDefault  bool           `json:"defaultInstanceEphemeral"`
	WhiteList           []string       `json:"healthCheckWhiteList"`
	Name                string         `json:"name"`
	Checksum            *string        `json:"checksum"`
}

type paramsBody struct {
	Max    int32   `json:"max"` // ms
	Min    int32   `json:"min"` // ms
	Factor decimal `json:"factor"`
}

// switchesName is what Nacos stored its switches under.
const switchesName = "00-00---000-NACOS_SWITCH_DOMAIN-000---00-00"

func toSwitches(w registry.Switches) switchesBody {
	limited := w.LimitedURLs
	if limited == nil {
		limited = map[string]int{}
	}
	return switchesBody{
		Masters: w.Masters, PushCacheMillis: w.PushCacheMillis, ClientBeatInterval: w.ClientBeatInterval,
		CacheMillis: w.CacheMillis, DistroThreshold: asDecimal(w.DistroThreshold),
		HealthCheckEnabled: w.HealthCheckEnabled, AutoChangeHealth: w.AutoChangeHealth,
		DistroEnabled: w.DistroEnabled, EnableStandalone: w.EnableStandalone, PushEnabled: w.PushEnabled,
		CheckTimes: w.CheckTimes, HTTPHealth: toParams(w.HTTPHealth), TCPHealth: toParams(w.TCPHealth),
		MySQLHealth: toParams(w.MySQLHealth), Incremental: []string{},
		ServerStatusMillis: w.ServerStatusMillis, ServiceStatusMillis: w.ServiceStatusMillis,
		DisableAddIP: w.DisableAddIP, SendBeatOnly: w.SendBeatOnly, LightBeatEnabled: w.LightBeatEnabled,
		LimitedURLs: limited, DistroExpiredMillis: w.DistroExpiredMillis,
		PushGo: w.PushVersions.Go, PushJava: w.PushVersions.Java, PushPython: w.PushVersions.Python,
		PushC: w.PushVersions.C, PushCSharp: w.PushVersions.CSharp,
		OverriddenStatus: w.OverriddenStatus, EphemeralByDefault: w.EphemeralByDefault,
		WhiteList: []string{}, Name: switchesName,
	}
}

func toParams(p registry.HealthParams) paramsBody {
	return paramsBody{p.Max, p.Min, asDecimal(p.Factor)}
}

// asDecimal gives a float as it is written.
func asDecimal(f float32) decimal { return decimal(shortest(float64(f))) }

func switches(_ context.Context, s *Server, _ *call) (any, error) {
	return toSwitches(s.Store.Switches()), nil
}

// setSwitch sets one switch; with debug only until the process ends.
func setSwitch(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramEntry, paramValue); err != nil {
		return nil, err
	}
	entry, value := c.form.text(paramEntry), c.form.text(paramValue)
	if c.truth(false, paramDebug) {
		return done{}, s.Store.TrySwitch(entry, value)
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.SetSwitch(ctx, entry, value)
}

// States that operators can put the server in by the switch
// overriddenServerStatus (com.alibaba.nacos.naming.cluster.ServerStatus).
const (
	up        = "UP"
	readOnly  = "READ_ONLY"
	writeOnly = "WRITE_ONLY"
)

var states = []string{up, "DOWN", "STARTING", "PAUSED", readOnly, writeOnly}

// status tells the state of the server: up, unless an operator said otherwise.
func (s *Server) status() string { return statusOf(s.Store.Switches()) }

func statusOf(w registry.Switches) string {
	if w.OverriddenStatus != nil && slices.Contains(states, *w.OverriddenStatus) {
		return *w.OverriddenStatus
	}
	return up
}

// revised does what the first filter of the naming API does
// (com.alibaba.nacos.naming.web.TrafficReviseFilter): it answers what operators
// limited or switched off, and tells whether it did. The switches themselves
// always answer, so that one can be set back.
func (s *Server) revised(r *call) bool {
	w := s.Store.Switches()
	if len(w.LimitedURLs) == 0 && w.OverriddenStatus == nil {
		return false
	}
	base := s.context()
	if !bytes.HasPrefix(r.path, []byte(base+"/v1/ns/")) || string(r.path) == base+pathOperator+"/switches" || string(r.path) == base+pathOps+"/switches" {
		return false
	}
	for limited, status := range w.LimitedURLs {
		if bytes.HasPrefix(r.path, []byte(limited)) {
			r.ctx.SetStatusCode(status)
			return true
		}
	}
	status, reads := statusOf(w), r.ctx.IsGet()
	if status == up || status == readOnly && reads || status == writeOnly && !reads {
		return false
	}
	r.write(http.StatusServiceUnavailable, "", "server is "+status+"now, please try again later!")
	return true
}
