package compat

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// relay stands between a client and the registry and notes what they say.
type relay struct {
	address string

	mu   sync.Mutex
	said []exchange
}

// exchange is a request and what was answered.
type exchange struct {
	method, path string
	params       string // query and body, as they came
	status       int
	answer       string
}

func newRelay(t *testing.T, r *registry) *relay {
	t.Helper()
	y := &relay{}
	to := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: r.address}) },
		ModifyResponse: y.note,
	}
	server := httptest.NewServer(keepingBody(to))
	t.Cleanup(server.Close)
	y.address = server.Listener.Addr().String()
	return y
}

// keepingBody puts the body of a request beside it for note.
func keepingBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Set("X-Said", url.PathEscape(r.URL.RawQuery+"&"+string(body)))
		next.ServeHTTP(w, r)
	})
}

func (y *relay) note(response *http.Response) error {
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	request := response.Request
	params, err := url.PathUnescape(request.Header.Get("X-Said"))
	if err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.said = append(y.said, exchange{
		request.Method, strings.TrimPrefix(request.URL.Path, "/nacos"), params, response.StatusCode, string(text),
	})
	return nil
}

// token is what everybody is given who logs in while the registry asks for no
// user.
const token = "AUTH_DISABLED"

// loggedIn looks for a login in what a client said, and for its fruit in the
// registration that came after. A kind that has no login sends the user's name
// with all it says.
func (y *relay) loggedIn(t *testing.T, k kind) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	bears := "username=nacos"
	if k.login != "" {
		bears = "accessToken=" + token
		if !slices.ContainsFunc(y.said, func(e exchange) bool {
			return e.method == http.MethodPost && e.path == k.login && e.status == http.StatusOK &&
				strings.Contains(e.answer, `"accessToken":"`+token+`","tokenTtl":18000`)
		}) {
			t.Errorf("no login by %s that was answered: %+v", k.login, y.said)
		}
	}
	if !slices.ContainsFunc(y.said, func(e exchange) bool {
		return e.method == http.MethodPost && e.path == "/v1/ns/instance" && e.status == http.StatusOK && strings.Contains(e.params, bears)
	}) {
		t.Errorf("no registration with %s: %+v", bears, y.said)
	}
}
