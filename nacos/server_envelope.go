package nacos

import (
	"errors"
	"net/http"

	"github.com/sidebeat/sidebeat/registry"
)

// Codes in the envelope of v2 and v3 (com.alibaba.nacos.api.model.v2.ErrorCode).
const (
	codeMissing         = 10000
	codeInvalid         = 20002
	codeNoResource      = 20004
	codeWeight          = 21001
	codeMetadata        = 21002
	codeNoInstance      = 21003
	codeInstance        = 21004
	codeServiceMetadata = 21005
	codeSelector        = 21006
	codeServiceExists   = 21007
	codeNoService       = 21008
	codeServiceInUse    = 21009
	codeNamespace       = 22000
	codeNoNamespace     = 22001
	codeNamespaceExists = 22002
	codeServer          = 30000
)

// codeWords are the words that go with a code.
var codeWords = map[int]string{
	0:                   "success",
	codeMissing:         "parameter missing",
	codeInvalid:         "parameter validate error",
	codeNoResource:      "resource not found",
	codeWeight:          "weight error",
	codeMetadata:        "instance metadata error",
	codeNoInstance:      "instance not found",
	codeInstance:        "instance error",
	codeServiceMetadata: "service metadata error",
	codeSelector:        "selector error",
	codeServiceExists:   "service already exist",
	codeNoService:       "service not exist",
	codeServiceInUse:    "service delete failure",
	codeNamespace:       "illegal namespace",
	codeNoNamespace:     "namespace not exist",
	codeNamespaceExists: "namespace already exist",
	codeServer:          "server error",
}

// envelope is every answer of v2 and v3
// (com.alibaba.nacos.api.model.v2.Result).
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// coded is an error with its code in the envelope.
type coded struct {
	status, code int
	text         string // "" is null
}

func (e *coded) Error() string { return e.text }

func invalid(code int, text string) error { return &coded{http.StatusBadRequest, code, text} }

// writeEnvelope answers as v2 and v3 do.
func (r *call) writeEnvelope(outcome any, err error) {
	if err != nil {
		r.writeCoded(err)
		return
	}
	switch o := outcome.(type) {
	case done:
		outcome = bodyOK
	case restBody:
		outcome = o.Data
	case shownList:
		r.writeList(`{"code":0,"message":"success","data":`, o, "}")
		return
	case written: // PATCH of v2, by an oversight
		r.write(http.StatusOK, o.contentType, o.text)
		return
	}
	r.writeJSON(http.StatusOK, envelope{0, codeWords[0], outcome})
}

// writeCoded answers an error. What filters refuse never wears the envelope.
func (r *call) writeCoded(err error) {
	var f *fault
	if errors.As(err, &f) && f.form != asPlain {
		r.writeFault(f)
		return
	}
	c := asCoded(err)
	r.bounds.refuse(limitOf(err))
	body := envelope{Code: c.code, Message: codeWords[c.code]}
	if c.text != "" {
		body.Data = c.text
	}
	r.writeJSON(c.status, body)
}

// refusalCodes are the codes of what the store refuses.
var refusalCodes = map[registry.Reason]int{
	registry.BadWeight:       codeWeight,
	registry.BadPeriods:      codeInstance,
	registry.BadCluster:      codeInstance,
	registry.Incomplete:      codeInstance,
	registry.ServiceExists:   codeServiceExists,
	registry.ServiceUnknown:  codeNoService,
	registry.ServiceInUse:    codeServiceInUse,
	registry.InstanceUnknown: codeNoResource,
	registry.BadNamespace:    codeNamespace,
	registry.NamespaceExists: codeNamespaceExists,
}

// asCoded gives the code for what the store or an operation answers.
func asCoded(err error) *coded {
	var c *coded
	if errors.As(err, &c) {
		return c
	}
	f := asFault(err)
	c = &coded{f.status, codeServer, f.text}
	var refused *registry.Refusal
	switch {
	case errors.As(err, &refused) && refusalCodes[refused.Reason] != 0:
		c.code = refusalCodes[refused.Reason]
	case f.status == http.StatusNotFound:
		c.code = codeNoResource
	}
	return c
}
