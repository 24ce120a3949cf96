package nacos

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

func nacosHandler(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, pathBeat) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(saidOK))
		return
	}
	_, _ = w.Write([]byte("ok"))
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(nacosHandler))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	f := func(address string, config *tls.Config, says string) {
		t.Helper()
		now := func() *tls.Config { return config }
		if config == nil {
			now = nil
		}
		c := opened(t, ClientConfig{Servers: []string{address}, TLS: now, Budget: time.Second})
		_, err := c.Beat(t.Context(), orders())
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: got %v, want %q", address, err, says)
		}
	}
	f(server.URL, &tls.Config{RootCAs: roots}, "")
	f(server.URL, &tls.Config{RootCAs: roots, ServerName: "example.com"}, "")
	f(server.URL, &tls.Config{RootCAs: roots, ServerName: "other.example"}, "other.example")
	f(server.URL, nil, "certificate")
	f(server.URL, &tls.Config{}, "certificate")
	f(strings.Replace(server.URL, "https", "http", 1), nil, "HTTP request to an HTTPS server")
	plain := httptest.NewServer(http.HandlerFunc(nacosHandler))
	defer plain.Close()
	f(strings.Replace(plain.URL, "http", "https", 1), nil, "HTTP response to HTTPS client")
	f(strings.Replace(plain.URL, "http", "https", 1), &tls.Config{}, "HTTP response to HTTPS client")
}

func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6 loopback:", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(nacosHandler))
	server.Listener = ln
	server.Start()
	defer server.Close()
	c := opened(t, ClientConfig{Servers: []string{ln.Addr().String()}})
	i := orders()
	i.IP = "2001:db8::7"
	if _, err := c.Beat(t.Context(), i); err != nil {
		t.Error(err)
	}
}

// A port that nobody listens on: said with the address, within the budget.
func TestRefusedPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	c := opened(t, ClientConfig{Servers: []string{ln.Addr().String()}, Budget: 300 * time.Millisecond})
	_, err = c.Beat(t.Context(), orders())
	if !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v", err)
	}
}
