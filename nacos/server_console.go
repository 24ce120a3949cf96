package nacos

import (
	"context"
	"net"
	"strconv"

	"github.com/sidebeat/sidebeat/registry"
)

// spoken is the version of Nacos whose answers the server gives; clients
// choose their dialect by it.
const spoken = "2.5.1"

// stateBody is the answer of server/state: what there is no such thing of is
// left out. All values are text, as in Nacos.
type stateBody struct {
	AuthSystem  string  `json:"auth_system_type"`
	Auth        string  `json:"auth_enabled"`
	Console     string  `json:"console_ui_enabled"`
	AuthAdmin   string  `json:"auth_admin_request"`
	Mode        string  `json:"startup_mode"`
	Version     string  `json:"version"`
	Function    *string `json:"function_mode"`
	Port        string  `json:"server_port"`
	LoginPage   string  `json:"login_page_enabled"`
	Sidebeat    string  `json:"sidebeat_version"`
	ProberState string  `json:"sidebeat_prober"`
}

func serverState(_ context.Context, s *Server, c *call) (any, error) {
	body := stateBody{
		AuthSystem: "nacos", Auth: "false", Console: "false", AuthAdmin: "false", Mode: "standalone",
		Version: spoken, Port: port(c.ctx.LocalAddr()), LoginPage: "false",
		Sidebeat: s.Version, ProberState: stateProberNone,
	}
	if s.Access != nil {
		body.Auth = "true"
	}
	if s.ProberInside {
		body.ProberState = stateProberInside
	}
	return body, nil
}

// port gives the port of a network address, "" when it has none.
func port(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return strconv.Itoa(tcp.Port)
	}
	return ""
}

// alive answers liveness and readiness: whoever is asked here serves reads and
// beats, also while it cannot take durable writes.
func alive(context.Context, *Server, *call) (any, error) {
	return written{typeText, "OK"}, nil
}

func actuator(context.Context, *Server, *call) (any, error) {
	return written{typeActuator, `{"status":"UP"}`}, nil
}

// tokenTTL is how long a token is good for, s (nacos.core.auth.plugin.nacos.token.expire.seconds).
const tokenTTL = 18000

// noToken is the token of 2.3.2 and later while auth is off.
const noToken = "AUTH_DISABLED"

// logIn gives a token. While auth is off everybody gets one: a client that has
// a password in its settings must work all the same.
func logIn(ctx context.Context, s *Server, c *call) (any, error) {
	if s.Access != nil {
		return s.logInTo(ctx, c)
	}
	if err := c.needBySpring(paramUsername); err != nil {
		return nil, err
	}
	c.ctx.Response.Header.Set("Authorization", "Bearer "+noToken)
	return loginBody{Token: noToken, TTL: tokenTTL, GlobalAdmin: true, Username: c.form.text(paramUsername)}, nil
}

// statusBody is the short answer of operator/metrics.
type statusBody struct {
	Status string `json:"status"`
}

// metricsBody is the long one. A client is one ip:port that publishes, as in
// 2.x, so that the clients of each kind are its instances.
type metricsBody struct {
	Status                 string  `json:"status"`
	Services               int     `json:"serviceCount"`
	Instances              int     `json:"instanceCount"`
	Subscribers            int     `json:"subscribeCount"`
	ResponsibleInstances   *int    `json:"responsibleInstanceCount,omitempty"` // v2 leaves it out
	Clients                int     `json:"clientCount"`
	ConnectionClients      int     `json:"connectionBasedClientCount"`
	EphemeralClients       int     `json:"ephemeralIpPortClientCount"`
	PersistentClients      int     `json:"persistentIpPortClientCount"`
	ResponsibleClientCount int     `json:"responsibleClientCount"`
	CPU                    decimal `json:"cpu"`  // share of the machine used by the process since it started
	Load                   decimal `json:"load"` // of the machine, last minute
	Memory                 decimal `json:"mem"`  // share of the machine's memory in use
}

func metrics(_ context.Context, s *Server, c *call) (any, error) {
	if c.truth(true, paramOnlyStatus) {
		return statusBody{s.status()}, nil
	}
	return s.figures(s.Store.Counts()), nil
}

func (s *Server) figures(n registry.Counts) metricsBody {
	all := n.Ephemeral + n.Persistent
	ephemeral, persistent := s.Store.CountClients()
	m := measure()
	return metricsBody{
		Status: s.status(), Services: n.Services, Instances: all, ResponsibleInstances: &all, Clients: ephemeral + persistent,
		EphemeralClients: ephemeral, PersistentClients: persistent, ResponsibleClientCount: ephemeral + persistent,
		Subscribers: s.Store.CountSubscribers(),
		CPU:         decimal(m.cpu), Load: decimal(m.load), Memory: decimal(m.memory),
	}
}
