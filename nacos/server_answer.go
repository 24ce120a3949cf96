package nacos

import (
	"context"
	"errors"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/registry"
)

const (
	typeText     = "text/plain;charset=UTF-8"
	typeHTML     = "text/html;charset=UTF-8"
	typeJSON     = "application/json"
	typeActuator = "application/vnd.spring-boot.actuator.v3+json"
)

// fault is an error with the status and the words of the wire.
type fault struct {
	status int
	text   string
	form   faultForm
	limit  limit // that was reached
}

// faultForm is how v1 writes a fault.
type faultForm int

const (
	asPlain faultForm = iota // the bare text
	asCheck                  // the text and CRLF, no content type: the parameter check
	asBoot                   // the error JSON of Spring Boot: filters and unknown paths
)

func (f *fault) Error() string { return f.text }

func boot(status int, text string) *fault { return &fault{status: status, text: text, form: asBoot} }

func badRequest(text string) error { return &fault{status: http.StatusBadRequest, text: text} }

func notFound(text string) error { return &fault{status: http.StatusNotFound, text: text} }

func required(name string) error { return badRequest("Param '" + name + "' is required.") }

// missing is what Spring says of a parameter, where required is Nacos itself.
func missing(name string) error { return badRequest("Parameter '" + name + "' is missing") }

// unreadable is what Nacos says of a number that is none.
func unreadable(value string) error { return badRequest(`For input string: "` + value + `"`) }

func checkFault(param, text string) error {
	return &fault{status: http.StatusBadRequest, text: "Param '" + param + "' is illegal, " + text, form: asCheck}
}

// metadataFault: the parameter check of 2.5.1 trips over bad metadata, hence 500.
func metadataFault(err error) error {
	text := "Server failed, caused: ErrCode:400, ErrMsg:" + err.Error() + ";caused: " + err.Error() + ";"
	return boot(http.StatusInternalServerError, text)
}

// beatFault: and over a beat that is no JSON.
func beatFault(err error) error {
	text := "Server failed, caused: errCode: 101, errMsg: Nacos deserialize for class " +
		"[com.alibaba.nacos.naming.healthcheck.RsInfo] failed, cause error[" + err.Error() + "].  ;caused: " + err.Error() + ";"
	return boot(http.StatusInternalServerError, text)
}

// asFault gives the words of the wire for what the store answers.
func asFault(err error) *fault {
	var f *fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, registry.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return &fault{status: http.StatusServiceUnavailable, text: err.Error()}
	case errors.Is(err, registry.ErrRefused):
		return &fault{status: http.StatusBadRequest, text: refusal(err), limit: limitOf(err)}
	case errors.Is(err, registry.ErrStale):
		return &fault{status: http.StatusPreconditionFailed, text: err.Error()}
	case errors.Is(err, registry.ErrNotFound):
		return &fault{status: http.StatusNotFound, text: err.Error()}
	default:
		return &fault{status: http.StatusInternalServerError, text: "caused: " + err.Error() + ";"}
	}
}

// refusal dresses the one refusal that is a NacosRuntimeException in 2.5.1:
// the other kind of service.
func refusal(err error) string {
	var r *registry.Refusal
	if errors.As(err, &r) && r.Reason == registry.KindConflict {
		return "errCode: 400, errMsg: " + err.Error() + " "
	}
	return err.Error()
}

// done is the outcome of a write: its body is ok.
type done struct{}

// tagged is an outcome with the revision it was read at.
type tagged struct {
	body     any
	revision uint64
}

// written is an outcome that is already text.
type written struct{ contentType, text string }

// writeV1 answers as Nacos v1 does: the bare outcome, or the bare words of the
// error.
func (r *call) writeV1(outcome any, err error) {
	if err != nil {
		r.writeFault(asFault(err))
		return
	}
	switch o := outcome.(type) {
	case done:
		r.write(http.StatusOK, typeText, bodyOK)
	case written:
		r.write(http.StatusOK, o.contentType, o.text)
	case shownList:
		r.writeList("", o, "")
	case tagged:
		r.ctx.Response.Header.Set("ETag", `"`+strconv.FormatUint(o.revision, 10)+`"`)
		r.writeJSON(http.StatusOK, o.body)
	default:
		r.writeJSON(http.StatusOK, o)
	}
}

func (r *call) writeFault(f *fault) {
	r.bounds.refuse(f.limit)
	switch f.form {
	case asCheck:
		r.write(f.status, "", f.text+"\r\n")
	case asBoot:
		if r.wantsPage() {
			r.write(f.status, typeHTML, errorPage(f))
			return
		}
		r.writeJSON(f.status, r.bootError(f))
	default:
		r.write(f.status, typeText, f.text)
	}
}

// bootBody is the error JSON of Spring Boot.
type bootBody struct {
	Timestamp string `json:"timestamp"`
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Message   string `json:"message"`
	Path      string `json:"path"`
}

func (r *call) bootError(f *fault) bootBody {
	stamp := time.Now().UTC().Format("2006-01-02T15:04:05.000") + "+00:00"
	return bootBody{stamp, f.status, http.StatusText(f.status), f.text, string(r.path)}
}

// wantsPage tells whether a browser asks, or a Java client that sends what
// java.net.HttpURLConnection does: whoever takes HTML first.
func (r *call) wantsPage() bool {
	first, _, _ := strings.Cut(string(r.ctx.Request.Header.Peek("Accept")), ",")
	return strings.HasPrefix(strings.TrimSpace(first), "text/html")
}

// errorPage is the page that Spring Boot shows in place of its error JSON; its
// line about a missing mapping is left as it is, because some look for it.
func errorPage(f *fault) string {
	return "<html><body><h1>Whitelabel Error Page</h1>" +
		"<p>This application has no explicit mapping for /error, so you are seeing this as a fallback.</p>" +
		"<div id='created'>" + time.Now().UTC().Format("Mon Jan 02 15:04:05 MST 2006") + "</div>" +
		"<div>There was an unexpected error (type=" + http.StatusText(f.status) + ", status=" + strconv.Itoa(f.status) + ").</div>" +
		"<div>" + html.EscapeString(f.text) + "</div></body></html>"
}

func (r *call) writeJSON(status int, body any) {
	b, err := encode(body)
	if err != nil {
		r.write(http.StatusInternalServerError, typeText, "caused: "+err.Error()+";")
		return
	}
	r.write(status, typeJSON, string(b))
}

// writeList answers a list, with what stands around it.
func (r *call) writeList(before string, l shownList, after string) {
	if len(l.head) > keptAnswer {
		r.writeLargeList(before, l, after)
		return
	}
	answer := &r.ctx.Response
	answer.SetStatusCode(http.StatusOK)
	answer.Header.SetContentType(typeJSON)
	const moment = 20 // bytes at most
	b := slices.Grow(answer.SwapBody(nil)[:0], len(before)+len(l.head)+moment+len(l.tail)+len(after))
	b = append(append(b, before...), l.head...)
	b = strconv.AppendInt(b, l.moment, 10)
	answer.SwapBody(append(append(b, l.tail...), after...))
}

// writeLargeList has all who ask for a large list read the same bytes.
func (r *call) writeLargeList(before string, l shownList, after string) {
	held := &r.bounds.answers
	if !held.holdList(r.guest(), l.rendered) {
		r.writeFault(tooMuch())
		return
	}
	r.ctx.SetStatusCode(http.StatusOK)
	r.ctx.Response.Header.SetContentType(typeJSON)
	tail := append(strconv.AppendInt(nil, l.moment, 10), l.tail...)
	sendLarge(&r.ctx.Response, func() { held.dropList(l.rendered) }, []byte(before), l.head, append(tail, after...))
}

func (r *call) write(status int, contentType, body string) {
	writeBody(r.ctx, status, contentType, body)
}

func writeBody(ctx *fasthttp.RequestCtx, status int, contentType, body string) {
	ctx.SetStatusCode(status)
	if contentType != "" {
		ctx.Response.Header.SetContentType(contentType)
	}
	ctx.Response.SetBodyString(body)
}
