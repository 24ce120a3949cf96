package nacos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// mostText is how much of a server's text goes into an error, bytes.
const mostText = 200

// failure is why an attempt failed. It wraps the word of registry that says
// what follows from it, and the cause below it.
type failure struct {
	word  error  // registry.ErrNotFound, ...
	cause error  // of the network; nil when a server answered
	text  string // which server, what it said
	blame bool   // the server's fault: another may do better

	unasked bool // no server was asked: nothing is learned of any
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.word}
	}
	return []error{f.word, f.cause}
}

// answer is what a server said.
type answer struct {
	from   *server
	status int
	kind   string // media type, lower case, without parameters
	body   []byte
	secret []string // never to be repeated
}

// fault gives nil for status 200, else what follows from the status. Where an
// instance is asked for, a plain 404 says that it is unknown; everywhere else,
// and in the error page of the web server, it says that the path is.
func (a answer) fault(instance bool) error {
	switch {
	case a.status == http.StatusOK:
		return nil
	case a.status >= 500:
		return a.failed("")
	case a.status == http.StatusNotFound && instance && !a.noPath():
		return a.refused(registry.ErrNotFound)
	case a.status == http.StatusNotFound, a.status == http.StatusGone, a.status == http.StatusMethodNotAllowed:
		return a.failed("is the context path right?")
	case a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout:
		return a.failed("")
	case a.status == http.StatusPreconditionFailed:
		return a.refused(registry.ErrStale)
	case a.status >= 400:
		return a.refused(registry.ErrRefused)
	}
	return a.failed("this is no answer of Nacos")
}

// noPath tells the error page of the web server (Spring Boot's JSON) from the
// answer of a controller, which is plain text.
func (a answer) noPath() bool {
	var page struct {
		Path  string
		Error string
	}
	return json.Unmarshal(a.body, &page) == nil && page.Path != "" && page.Error != ""
}

// written gives nil when the answer says that a write was done: "ok", or an
// envelope of code 0 or 200.
func (a answer) written() error {
	if err := a.fault(false); err != nil {
		return err
	}
	return a.done()
}

func (a answer) done() error {
	body := bytes.TrimSpace(a.body)
	if string(body) == bodyOK && (a.kind == "" || a.kind == "application/json" || strings.HasPrefix(a.kind, "text/")) {
		return nil
	}
	var envelope struct{ Code *int }
	if !a.json() || json.Unmarshal(body, &envelope) != nil || envelope.Code == nil {
		return a.failed("a write that is done is answered ok")
	}
	switch *envelope.Code {
	case 0, http.StatusOK:
		return nil
	case codeNotFound, codeUnknownV3:
		return a.refused(registry.ErrNotFound)
	}
	return a.failed("")
}

// decode reads the JSON of a 200 into v.
func (a answer) decode(v any) error {
	if !a.json() {
		return a.failed("JSON was expected")
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return a.failed("JSON was expected")
	}
	return nil
}

// json tells whether the type allows JSON: several servers say text/plain or
// nothing.
func (a answer) json() bool {
	return a.kind == "" || a.kind == "application/json" || a.kind == "text/plain"
}

// page tells that a human was meant to read it: a proxy, a login, a captive
// portal. Nacos is asked for JSON or plain text and answers so.
func (a answer) page() bool {
	if a.kind != "text/html" && a.kind != "application/xhtml+xml" && a.kind != "" {
		return false
	}
	start := bytes.ToLower(bytes.TrimSpace(a.body[:min(len(a.body), 256)]))
	return bytes.HasPrefix(start, []byte("<!doctype")) || bytes.HasPrefix(start, []byte("<html")) ||
		a.kind != "" && bytes.HasPrefix(start, []byte("<"))
}

func (a answer) refused(word error) *failure { return &failure{word: word, text: a.describe("")} }

func (a answer) failed(hint string) *failure {
	return &failure{word: registry.ErrUnavailable, text: a.describe(hint), blame: true}
}

func (a answer) describe(hint string) string {
	text := fmt.Sprintf("%s answered %d %s", a.from.base, a.status, bounded(a.text(), a.secret))
	if hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// text gives the message of an error page or of an envelope, else the body.
func (a answer) text() string {
	var said struct {
		Message string
		Data    json.RawMessage
	}
	if json.Unmarshal(a.body, &said) != nil || said.Message == "" {
		return string(a.body)
	}
	if detail := strings.Trim(string(said.Data), `"`); detail != "" && detail != "null" {
		return said.Message + ": " + detail
	}
	return said.Message
}

// bounded gives at most mostText bytes of text, quoted so that no control
// character reaches a terminal, and without any secret it may echo.
func bounded(text string, secrets []string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(scrub(text, secrets)), "\uFFFD")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "..."
	}
	return strconv.Quote(text)
}

// mediaType gives the type without its parameters, in lower case.
func mediaType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}
