package nacos

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/registry"
)

// demand is what a route asks of a user; the zero value is open to everybody.
type demand struct {
	level access.Level
	where where
	// brief: open as long as only the status is asked for.
	brief bool
}

// where is the namespace in which the level is needed.
type where uint8

const (
	inNamespace    where = iota // namespaceId, or the public one
	inAllUnless                 // namespaceId, or all when there is none
	inKey                       // namespace##... in the parameter key
	inItsNamespace              // the one that is changed, by the parameter namespace
	anywhere                    // in any one
	everywhere                  // in all
)

// rule says what the paths ask that begin so. The first that fits holds, and
// what none fits asks for an administrator.
type rule struct {
	methods string // "": all
	path    string // below the context path; exact unless it ends in "/"
	demand  demand
}

const (
	reads   = http.MethodGet + " " + http.MethodHead
	changes = http.MethodPost + " " + http.MethodPut + " " + http.MethodPatch + " " + http.MethodDelete
)

var (
	open2all  = demand{}
	figures   = demand{level: access.Read, where: anywhere, brief: true}
	readAny   = demand{level: access.Read, where: anywhere}
	readHere  = demand{level: access.Read}
	writeHere = demand{level: access.Write}
	adminAll  = demand{level: access.Admin, where: everywhere}
)

// rules stand beside the routes: what the API asks of whom.
var rules = []rule{
	{"", pathLogin, open2all}, {"", pathUsersLogin, open2all}, {"", "/v3/auth/user/login", open2all},
	{"", pathServerState, open2all}, {"", pathLiveness, open2all}, {"", pathReadiness, open2all},
	{"", pathActuator, open2all}, {reads, pathHello, open2all},
	{"", "/v2/console/health/liveness", open2all}, {"", "/v2/console/health/readiness", open2all},
	{"", "/v3/admin/core/state", open2all}, {"", "/v3/admin/core/state/liveness", open2all},
	{"", "/v3/admin/core/state/readiness", open2all},

	{reads, pathOperator + "/metrics", figures}, {reads, pathOps + "/metrics", figures},
	{reads, "/v2/ns/operator/metrics", figures}, {reads, "/v2/ns/ops/metrics", figures},
	{reads, "/v3/admin/ns/ops/metrics", figures},
	{"", pathOperator + "/", adminAll}, {"", pathOps + "/", adminAll}, {"", "/v2/ns/operator/", adminAll},
	{"", "/v2/ns/ops/", adminAll}, {"", "/v3/admin/ns/ops/", adminAll},
	{"", "/v2/ns/client/", adminAll}, {"", "/v3/admin/ns/client/", adminAll},

	{http.MethodPut, pathNamespaces, demand{level: access.Admin, where: inItsNamespace}},
	{http.MethodDelete, pathNamespaces, demand{level: access.Admin, where: inAllUnless}},

	{reads, pathSelectorTypes, readAny}, {reads, "/v3/admin/ns/service/selector/types", readAny},
	{reads, pathCheckers, readAny}, {reads, "/v3/admin/ns/health/checkers", readAny},
	{reads, pathStatuses, demand{level: access.Read, where: inKey}},
	{reads, pathServiceNames, demand{level: access.Read, where: inAllUnless}},
	{reads, pathSidebeatInstances, demand{level: access.Read, where: everywhere}},
	{reads, pathSidebeatInstance, readHere},

	{reads, "/v1/ns/", readHere}, {reads, "/v2/ns/", readHere}, {reads, "/v3/client/ns/", readHere},
	{reads, "/v3/admin/ns/", readHere},
	{changes, "/v1/ns/", writeHere}, {changes, "/v2/ns/", writeHere}, {changes, "/v3/client/ns/", writeHere},
	{changes, "/v3/admin/ns/", writeHere},
}

func (r rule) fits(method, path string) bool {
	if r.methods != "" && !strings.Contains(" "+r.methods+" ", " "+method+" ") {
		return false
	}
	return path == r.path || strings.HasSuffix(r.path, "/") && strings.HasPrefix(path, r.path)
}

// demandOf gives what a route asks; path is without the context path.
func demandOf(method, path string) demand {
	for _, r := range rules {
		if r.fits(method, path) {
			return r.demand
		}
	}
	return adminAll
}

// guarded puts a guard before each handler that asks for somebody. With auth
// off there is none.
func (s *Server) guarded(path string, there route) route {
	if s.Access == nil {
		return there
	}
	for method, h := range there {
		if d := demandOf(method, path); d != open2all {
			there[method] = d.guard(h)
		}
	}
	return there
}

func (d demand) guard(h handler) handler {
	return func(s *Server, c *call) {
		if d.brief && c.truth(true, paramOnlyStatus) {
			h(s, c)
			return
		}
		u, err := s.who(c)
		if err == nil && !d.met(u, c) {
			err = errForbidden
		}
		if err != nil {
			s.Access.Denied()
			c.writeFault(c.denial(s, err))
			return
		}
		h(s, c)
	}
}

// met tells whether the user may. The namespace is looked at as it came: one
// that has to be repaired before it is a name is in no role.
func (d demand) met(u *access.User, c *call) bool {
	switch d.where {
	case everywhere:
		return u.May(d.level, nil)
	case anywhere:
		return u.Somewhere(d.level)
	case inKey:
		return u.May(d.level, keyNamespace(c.form.get(paramKey)))
	case inItsNamespace:
		return u.May(d.level, c.form.get(paramNamespaceID))
	case inAllUnless:
		return u.May(d.level, c.form.get(paramNamespace))
	}
	namespace := c.form.get(paramNamespace)
	if len(namespace) == 0 {
		namespace = defaultNamespace
	}
	return u.May(d.level, namespace)
}

// keyNamespace is the namespace in the key of instance/statuses.
func keyNamespace(key []byte) []byte {
	if namespace, _, found := bytes.Cut(key, []byte("##")); found {
		return namespace
	}
	return []byte(registry.DefaultNamespace)
}

var (
	errForbidden = errors.New("the user may not do this here")
	errNobody    = errors.New("there is neither a token nor a user")
)

var bearer = []byte("Bearer ")

// who finds the user of a call: by Authorization: Bearer, then by the parameter
// or the header accessToken, then by username and password in the parameters,
// which Node's client sends with every request.
func (s *Server) who(c *call) (*access.User, error) {
	header := &c.ctx.Request.Header
	if token, found := bytes.CutPrefix(header.Peek("Authorization"), bearer); found && len(token) > 0 {
		return s.Access.ByToken(token)
	}
	token := c.form.get(paramToken)
	if len(token) == 0 {
		token = header.Peek(paramToken)
	}
	if len(token) > 0 {
		return s.Access.ByToken(token)
	}
	name := c.form.text(paramUsername)
	if name == "" {
		return nil, errNobody
	}
	ctx, cancel := withinTime()
	defer cancel()
	return s.Access.ByPassword(ctx, c.from(), name, c.form.text(paramPassword))
}

// from is the address that the connection comes from.
func (c *call) from() netip.Addr {
	a, _ := netip.AddrFromSlice(c.ctx.RemoteIP())
	return a
}

// denial gives the words of Nacos for a request that is refused: of 2.5.1, or
// of 3.0.3 for v3. Its status is 403 for whatever is wrong.
func (c *call) denial(s *Server, err error) *fault {
	if f := held(err); f != nil {
		f.form = asBoot
		return f
	}
	text, number := "user not found!", "401"
	switch {
	case errors.Is(err, errForbidden):
		text, number = "authorization failed!", "403"
	case errors.Is(err, access.ErrBadToken):
		text = "token invalid!"
	case errors.Is(err, access.ErrSignature):
		text = "Invalid signature"
	case errors.Is(err, access.ErrExpired):
		text = "token expired!"
	case c.inV3(s):
		text = "User not found! Please check user exist or password is right!"
	}
	if c.inV3(s) {
		text = "Code: " + number + ", Message: " + text + "."
	}
	return boot(http.StatusForbidden, text)
}

// held is the answer to a login that was not looked at, nil when it was.
func held(err error) *fault {
	switch {
	case errors.Is(err, access.ErrTooMany):
		return &fault{status: http.StatusTooManyRequests, text: err.Error()}
	case errors.Is(err, access.ErrBusy):
		return &fault{status: http.StatusServiceUnavailable, text: err.Error()}
	}
	return nil
}

// logInTo gives a token for a name and a password. An unknown name and a wrong
// password are told with the same words, where 2.5.1 tells names apart.
func (s *Server) logInTo(ctx context.Context, c *call) (any, error) {
	for _, name := range []string{paramUsername, paramPassword} {
		if c.form.has(name) {
			continue
		}
		if c.inV3(s) {
			return nil, boot(http.StatusBadRequest, "Required parameter '"+name+"' is not present.")
		}
		text := "caused: Required request parameter &#39;" + name + "&#39; for method parameter type String is not present;"
		return nil, &fault{status: http.StatusInternalServerError, text: text}
	}
	name := c.form.text(paramUsername)
	token, err := s.Access.LogIn(ctx, c.from(), name, c.form.text(paramPassword))
	switch f := held(err); {
	case f != nil:
		return nil, f
	case errors.Is(err, access.ErrUnknown) && c.inV3(s):
		return nil, boot(http.StatusForbidden, "Access Denied")
	case errors.Is(err, access.ErrUnknown):
		return nil, &fault{status: http.StatusForbidden, text: "user not found!"}
	case err != nil:
		return nil, err
	}
	c.ctx.Response.Header.Set("Authorization", "Bearer "+token.Text)
	return loginBody{Token: token.Text, TTL: int64(token.Life.Seconds()), GlobalAdmin: token.Admin, Username: name}, nil
}
