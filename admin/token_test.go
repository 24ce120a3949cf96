package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const canaryToken = "canary7Zq4-admin-token"

func drained(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("drained") }

// elsewhere gives an address that is not of loopback only.
func elsewhere(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	ln.Close()
	return "0.0.0.0:0"
}

// What changes something needs the token where there is one, and elsewhere
// than on loopback there has to be one. Reads are open.
func TestToken(t *testing.T) {
	fixed := func(token string, err error) func() (string, error) {
		return func() (string, error) { return token, err }
	}
	f := func(address string, token func() (string, error), want string, headers ...string) {
		t.Helper()
		s := &Server{Address: address, Token: token, Routes: map[string]fasthttp.RequestHandler{"POST /drain": drained}}
		t.Run(address, func(t *testing.T) {
			lines := serve(t, s)
			_, port, _ := net.SplitHostPort(s.Bound())
			s.bound.Store("127.0.0.1:" + port)
			if got, header := ask(t, s, "POST", "/drain", "", headers...); !strings.HasPrefix(got, want) ||
				strings.HasPrefix(got, "401") != (header.Get("WWW-Authenticate") == "Bearer") {
				t.Errorf("got %q, want %q", got, want)
			}
			if got, _ := ask(t, s, "GET", "/healthz", ""); got != "200 ok\n" {
				t.Errorf("GET: %q", got)
			}
			for _, e := range lines.AllEntries() {
				if text, _ := e.String(); strings.Contains(text, canaryToken) {
					t.Error("the token stands in the log")
				}
			}
		})
	}
	good := []string{"Authorization", "Bearer " + canaryToken}
	here, there := "127.0.0.1:0", elsewhere(t)
	f(here, nil, "200 drained")
	f(here, fixed("", nil), "200 drained")
	f(here, fixed(canaryToken, nil), "401 give SIDEBEAT_ADMIN_TOKEN")
	f(here, fixed(canaryToken, nil), "200 drained", good...)
	f(there, nil, "403 refused: this is open to other machines and SIDEBEAT_ADMIN_TOKEN is not set")
	f(there, nil, "403 ", good...)
	f(there, fixed(canaryToken, nil), "401 ")
	f(there, fixed(canaryToken, nil), "401 ", "Authorization", "Bearer ")
	f(there, fixed(canaryToken, nil), "401 ", "Authorization", "Bearer x")
	f(there, fixed(canaryToken, nil), "200 drained", good...)
	f(there, fixed("", errors.New("no such file")), "503 the token cannot be read", good...)
}

func TestWarningEndsWithAToken(t *testing.T) {
	s := &Server{Address: elsewhere(t), Token: func() (string, error) { return canaryToken, nil }}
	if lines := serve(t, s); len(lines.AllEntries()) != 0 {
		t.Errorf("got %v", lines.LastEntry().Message)
	}
}

func TestPprof(t *testing.T) {
	token := ""
	s := &Server{Token: func() (string, error) { return token, nil }}
	serve(t, s)
	f := func(path, want string, headers ...string) {
		t.Helper()
		if got, _ := ask(t, s, "GET", path, "", headers...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %.60q, want %q", path, got, want)
		}
	}
	f("/debug/pprof/heap", "404 not found")
	s.Pprof = true
	f("/debug/pprof/heap", "200 \x1f\x8b")
	f("/debug/pprof/goroutine?debug=1", "200 goroutine profile")
	f("/debug/pprof/nonsense", "404 no such profile")
	f("/debug/pprof/profile?seconds=1", "200 \x1f\x8b")
	token = canaryToken
	f("/debug/pprof/heap", "401 ")
	f("/debug/pprof/heap", "200 ", "Authorization", "Bearer "+canaryToken)
	token, s.local = "", false
	f("/debug/pprof/heap", "403 refused")
}

func TestClientOverTLS(t *testing.T) {
	// Only for its certificate.
	ca := httptest.NewTLSServer(http.NotFoundHandler())
	defer ca.Close()
	s := &Server{
		TLS: &tls.Config{Certificates: ca.TLS.Certificates}, Token: func() (string, error) { return canaryToken, nil },
		Routes: map[string]fasthttp.RequestHandler{"POST /drain": drained},
	}
	serve(t, s)
	trusting := &tls.Config{RootCAs: ca.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
	c := Client{Address: s.Bound(), TLS: trusting, Token: s.Token}
	if status, body, err := c.Get(t.Context(), "/healthz"); status != 200 || err != nil {
		t.Errorf("%d %s %v", status, body, err)
	}
	if status, body, err := c.Post(t.Context(), "/drain"); status != 200 || string(body) != "drained" || err != nil {
		t.Errorf("%d %s %v", status, body, err)
	}
	c.Token = func() (string, error) { return "x", nil }
	if status, _, _ := c.Post(t.Context(), "/drain"); status != 401 {
		t.Errorf("%d", status)
	}
	c.Token = func() (string, error) { return "", errors.New("no such file") }
	if _, _, err := c.Post(t.Context(), "/drain"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	c.TLS = &tls.Config{ServerName: "example.com"}
	if _, _, err := c.Get(t.Context(), "/healthz"); err == nil {
		t.Error("a stranger's certificate was taken")
	}
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.Bound())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if text, _ := io.ReadAll(conn); strings.Contains(string(text), "200 OK") {
		t.Errorf("plain HTTP is served where TLS is set: %.80q", text)
	}
}
