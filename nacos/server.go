package nacos

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/registry"
)

// Server answers the naming API of Nacos over HTTP from a store. Set the
// fields before the first request and leave them.
type Server struct {
	Store *registry.Store
	Log   *logrus.Logger
	// ContextPath is where the API begins: "" means DefaultContext, "/" means
	// that there is none.
	ContextPath string
	// ProberInside is told in the server state, so that another prober
	// observes only.
	ProberInside bool
	// Version of Sidebeat, told in the server state.
	Version string
	// Writable is asked before each durable write: an error that wraps
	// registry.ErrUnavailable refuses it with 503. Nil: always writable.
	Writable func() error
	// Access decides who may do what. Nil: auth is off, everybody may.
	Access *access.Guard
	// Limits bound what clients can take; those of the store are its own.
	Limits Limits

	bounds bounds
	lists  lists
	push   *Push // nil: nobody is told of changes
}

// idleTimeout is how long a connection may be silent between two requests:
// Nacos clients keep one for 60 s at most.
const idleTimeout = 75 * time.Second

// HTTP gives a server with limits and timeouts set, ready for run.Serve.
func (s *Server) HTTP() *fasthttp.Server {
	handler := s.Handler()
	return &fasthttp.Server{
		Handler:               handler,
		ReadTimeout:           s.bounds.ReadTime,
		WriteTimeout:          s.bounds.WriteTime,
		IdleTimeout:           idleTimeout,
		MaxRequestBodySize:    s.bounds.Body,
		ReadBufferSize:        s.bounds.Header,
		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true, // a query may hold a password
		Logger:                connectionLog{s.Log},
		ErrorHandler:          s.bounds.refuseRequest,
		HeaderReceived:        s.bounds.limitBody,

		DisablePreParseMultipartForm: true,
	}
}

// connectionLog takes what fasthttp has to say of broken connections: news for
// who debugs, not for who operates.
type connectionLog struct{ log *logrus.Logger }

func (l connectionLog) Printf(format string, args ...any) {
	if !l.log.IsLevelEnabled(logrus.DebugLevel) {
		return
	}
	l.log.WithField("cause", fmt.Sprintf(format, args...)).Debug("connection failed")
}

// call is one request on its way through the server. It is used again
// after the answer: nothing may keep it or its bytes.
type call struct {
	ctx      *fasthttp.RequestCtx
	bounds   *bounds
	path     []byte // with the context path
	form     form
	service  registry.Service  // as check left it
	metadata map[string]string // as check left it
	scratch  []byte
	// ephemeral is the kind of instances that do not say theirs
	// (switch defaultInstanceEphemeral).
	ephemeral  bool
	lightBeats bool // switch lightBeatEnabled
}

var calls = sync.Pool{New: func() any { return &call{bounds: noBounds} }}

// handler answers one request.
type handler func(s *Server, r *call)

// route is what a path answers to, by method.
type route map[string]handler

// Handler gives the handler of all paths.
func (s *Server) Handler() fasthttp.RequestHandler {
	s.bounds.Limits, s.bounds.places = s.Limits.orDefault(), newPlaces()
	s.lists.places = s.bounds.places
	table := s.routes()
	return func(ctx *fasthttp.RequestCtx) {
		defer s.recovered(ctx)
		r := calls.Get().(*call)
		r.ctx, r.bounds = ctx, &s.bounds
		s.serve(table, r)
		r.ctx, r.path, r.metadata = nil, nil, nil
		calls.Put(r)
		s.bounds.release(ctx)
		if ctx.Response.StatusCode() >= http.StatusBadRequest {
			s.bounds.atone(ctx)
		}
	}
}

// recovered turns a panic into one line of the log and an answer, so that one
// bad request never ends the process.
func (s *Server) recovered(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	s.Log.WithField("cause", fmt.Sprintf("%v: %s", p, debug.Stack())).Error("request handler panicked")
	ctx.Response.Reset()
	writeBody(ctx, http.StatusInternalServerError, typeText, "caused: the server failed, its log says why;")
}

func (s *Server) serve(table map[string]route, r *call) {
	path, query, _ := bytes.Cut(r.ctx.RequestURI(), []byte("?"))
	there, ok := table[string(path)]
	if !ok { // not plain, perhaps: look again when fasthttp has decoded and cleaned it
		path = r.ctx.Path()
		there, ok = table[string(path)]
	}
	r.path = path
	if s.revised(r) {
		return
	}
	if !ok {
		s.unknown(r)
		return
	}
	method := r.ctx.Method()
	h, ok := there[string(method)]
	if !ok {
		s.otherMethod(r, there)
		return
	}
	r.form.read(query, formBody(r.ctx))
	if f := r.checkValues(); f != nil {
		r.writeFault(f)
		return
	}
	w := s.Store.Switches()
	r.ephemeral, r.lightBeats = w.EphemeralByDefault, w.LightBeatEnabled
	h(s, r)
}

// formBody gives the body when it is a form, whatever the method.
func formBody(ctx *fasthttp.RequestCtx) []byte {
	body := ctx.Request.Body()
	if len(body) == 0 {
		return nil
	}
	kind := ctx.Request.Header.ContentType()
	if len(kind) == 0 || bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")) {
		return body
	}
	return nil
}

func (s *Server) context() string {
	if s.ContextPath == "" {
		return DefaultContext
	}
	return strings.TrimRight(s.ContextPath, "/")
}

// unknown answers a path nobody has: 501 below the naming API, 404 elsewhere,
// as 2.5.1 does.
func (s *Server) unknown(r *call) {
	if naming := s.context() + "/v1/ns"; string(r.path) == naming || bytes.HasPrefix(r.path, []byte(naming+"/")) {
		r.writeFault(r.noSuchAPI())
		return
	}
	text := "No message available"
	if r.inV3(s) {
		text = "No endpoint " + string(r.ctx.Method()) + " " + string(r.path) + "."
	}
	r.writeFault(boot(http.StatusNotFound, text))
}

func (r *call) noSuchAPI() *fault {
	text := "no such api:" + string(r.ctx.Method()) + ":" + string(r.path)
	return boot(http.StatusNotImplemented, text)
}

// otherMethod answers a known path asked by another method. HEAD is GET
// without the body, OPTIONS says what there is.
func (s *Server) otherMethod(r *call, there route) {
	allowed := make([]string, 0, len(there))
	for m := range there {
		allowed = append(allowed, m)
	}
	slices.Sort(allowed)
	switch {
	case r.ctx.IsOptions():
		r.ctx.Response.Header.Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		r.ctx.SetStatusCode(http.StatusOK)
	case bytes.HasPrefix(r.path, []byte(s.context()+"/v1/ns/")):
		r.writeFault(r.noSuchAPI())
	default:
		r.ctx.Response.Header.Set("Allow", strings.Join(allowed, ", "))
		text := "Request method '" + string(r.ctx.Method()) + "' not supported"
		if r.inV3(s) {
			text = "Method '" + string(r.ctx.Method()) + "' is not supported."
		}
		r.writeFault(boot(http.StatusMethodNotAllowed, text))
	}
}

// durable refuses a write that must survive while none can.
func (s *Server) durable() error {
	if s.Writable == nil {
		return nil
	}
	return s.Writable()
}
