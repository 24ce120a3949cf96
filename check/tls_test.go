package check

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// authority makes certificates.
type authority struct {
	t      testing.TB
	key    *ecdsa.PrivateKey
	root   *x509.Certificate
	serial atomic.Int64
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.root = a.sign(template, template, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate
}

// issue makes a certificate for these names, valid until then.
func (a *authority) issue(until time.Time, names ...string) tls.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(2 + a.serial.Add(1)), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	key := newKey(a.t)
	return tls.Certificate{Certificate: [][]byte{a.sign(template, a.root, key).Raw}, PrivateKey: key}
}

// file writes the root certificate and returns its path.
func (a *authority) file() string {
	path := filepath.Join(a.t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
	text = append(text, bytes.Repeat([]byte("\n"), 4096-len(text))...) // files of one size
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// secure serves answer over TLS and returns its port.
func secure(t testing.TB, config *tls.Config, talk func(net.Conn, string)) (port string) {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, ln, func(conn net.Conn) {
		if conn.(*tls.Conn).Handshake() == nil {
			talk(conn, readHead(conn))
		}
	})
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port
}

func answersOK(conn net.Conn, _ string) { conn.Write([]byte(ok)) }

func TestTLS(t *testing.T) {
	a, ca := newAsker(t), newAuthority(t)
	file := ca.file()
	nameServer(t, a, map[string]record{"a.test": {addrs: []string{"127.0.0.1"}}})
	hour := time.Now().Add(time.Hour)
	config := func(names ...string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{ca.issue(hour, names...)}}
	}
	f := func(config *tls.Config, host, options string, kind Kind, reason string) {
		t.Helper()
		expect(t, a, "https://"+host+":"+secure(t, config, answersOK)+"/#"+options, kind, reason)
	}
	f(config("a.test"), "a.test.", "ca="+file, Well, "200 OK")
	f(config("a.test"), "a.test.", "", Sick, "TLS failure: failed to verify certificate: certificate signed by unknown authority")
	f(config("a.test"), "a.test.", "insecure", Well, "200 OK")
	f(config("b.test"), "a.test.", "ca="+file, Sick, "TLS failure: failed to verify certificate: certificate is valid for b.test, not a.test")
	f(config("b.test"), "a.test.", "ca="+file+"&servername=b.test", Well, "200 OK")
	f(config("a.test"), "a.test.", "ca="+file+"&header=Host:legacy.example", Well, "200 OK")
	f(config("127.0.0.1"), "127.0.0.1", "ca="+file, Well, "200 OK")
	f(config("localhost"), "", "ca="+file, Well, "200 OK")
	f(config("other.test"), "", "ca="+file+"&servername=other.test", Well, "200 OK")
	expired := &tls.Config{Certificates: []tls.Certificate{ca.issue(time.Now().Add(-time.Hour), "a.test")}}
	f(expired, "a.test.", "ca="+file, Sick, "TLS failure: failed to verify certificate: certificate has expired")
	f(expired, "a.test.", "insecure", Well, "200 OK")
	old := config("a.test")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	f(old, "a.test.", "ca="+file, Sick, "TLS failure: server says protocol version not supported")
	f(old, "a.test.", "insecure", Well, "200 OK")
	mutual := config("a.test")
	mutual.ClientAuth = tls.RequireAnyClientCert
	f(mutual, "a.test.", "ca="+file, Sick, "TLS failure: server says certificate required")
	f(config("a.test"), "a.test.", "ca="+filepath.Join(t.TempDir(), "none.pem"), Unknown, "cannot read CA file")
	chooses := config("a.test")
	chooses.NextProtos = []string{"h2", "http/1.1"}
	f(chooses, "a.test.", "ca="+file, Well, "200 OK")
}

// valyala/fasthttp#1167: what is spoken instead is named.
func TestTLSAndPlainMixedUp(t *testing.T) {
	a := newAsker(t)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	expect(t, a, "http://"+server.Listener.Addr().String()+"/", Sick, "status 400 Bad Request: server speaks TLS")
	f := func(begin, reason string) {
		t.Helper()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serve(t, ln, func(conn net.Conn) { conn.Write([]byte(begin)); conn.(*net.TCPConn).CloseWrite(); hang(conn) })
		expect(t, a, "https://"+ln.Addr().String()+"/", Sick, reason)
	}
	f("HTTP/1.1 400 Bad Request\r\n\r\n", "TLS failure: server speaks plain HTTP")
	f("SSH-2.0-OpenSSH_9.2\r\n", `TLS failure: server does not speak TLS, it sent "SSH-2"`)
	f("\x00\xff\x00\x00\x00", `TLS failure: server does not speak TLS, it sent "\x00\xff`)
	f("", "TLS failure: closed during the handshake")
	f("\x16\x03\x01", "TLS failure: closed during the handshake")
}

func TestTLSHandshakeHangsEndInTime(t *testing.T) {
	a := newAsker(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, ln, hang)
	answer := expect(t, a, "https://"+ln.Addr().String()+"/#timeout=150ms", Sick, "timeout after 150ms in the TLS handshake")
	if answer.Took > time.Second {
		t.Errorf("took %v", answer.Took)
	}
}

// prometheus/blackbox_exporter#237: each hop has its own name; no name given
// for the first host is used for another.
func TestTLSNameOfEachHop(t *testing.T) {
	a, ca := newAsker(t), newAuthority(t)
	nameServer(t, a, map[string]record{"a.test": {addrs: []string{"127.0.0.1"}}, "b.test": {addrs: []string{"127.0.0.1"}}})
	names := make(chan string, 4)
	config := func(name string) *tls.Config {
		certificate := ca.issue(time.Now().Add(time.Hour), name)
		return &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			names <- hello.ServerName
			return &certificate, nil
		}}
	}
	end := secure(t, config("b.test"), answersOK)
	begin := func(name string) string {
		return secure(t, config(name), func(conn net.Conn, _ string) {
			fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nLocation: https://b.test.:%s/ok\r\n\r\n", end)
		})
	}
	expect(t, a, "https://a.test.:"+begin("a.test")+"/#redirects=1&ca="+ca.file(), Well, "200 OK")
	expect(t, a, "https://a.test.:"+begin("c.test")+"/#redirects=1&servername=c.test&ca="+ca.file(), Well, "200 OK")
	for _, want := range []string{"a.test", "b.test", "c.test", "b.test"} {
		if got := <-names; got != want {
			t.Errorf("got name %q, want %q", got, want)
		}
	}
}

// sourcegraph/checkup#124: options of one check never reach another's.
func TestTLSInParallel(t *testing.T) {
	a, right, wrong := newAsker(t), newAuthority(t), newAuthority(t)
	port := secure(t, &tls.Config{Certificates: []tls.Certificate{right.issue(time.Now().Add(time.Hour), "localhost")}}, answersOK)
	files := []string{right.file(), wrong.file()}
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			for range 20 {
				switch i % 4 {
				case 0:
					expect(t, a, "https://:"+port+"/#insecure", Well, "200 OK")
				case 1:
					expect(t, a, "https://:"+port+"/#ca="+files[1], Sick, "TLS failure: failed to verify")
				case 2:
					expect(t, a, "https://:"+port+"/#ca="+files[0], Well, "200 OK")
				default:
					expect(t, a, "https://:"+port+"/", Sick, "TLS failure: failed to verify")
				}
			}
		})
	}
	asking.Wait()
}

// Headers do not go from an encrypted hop to a plain one, on the same host
// either.
func TestRedirectToPlainDropsHeaders(t *testing.T) {
	a, ca := newAsker(t), newAuthority(t)
	got := make(chan string, 1)
	end := stub(t, "127.0.0.1:0", func(conn net.Conn, head string) { got <- head; conn.Write([]byte(ok)) })
	config := &tls.Config{Certificates: []tls.Certificate{ca.issue(time.Now().Add(time.Hour), "127.0.0.1")}}
	begin := secure(t, config, func(conn net.Conn, _ string) {
		fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nLocation: http://%s/\r\n\r\n", end)
	})
	expect(t, a, "https://127.0.0.1:"+begin+"/#redirects=1&insecure&header=X-Token:secret", Well, "200 OK")
	if head := <-got; strings.Contains(head, "secret") {
		t.Errorf("got %s", head)
	}
}

// Without certificates of the system, as in an empty image, nothing can be said
// of the target.
func TestNoSystemRootsIsUnknown(t *testing.T) {
	err := &tls.CertificateVerificationError{Err: x509.SystemRootsError{}}
	if got := tlsFault(t.Context(), time.Now(), err); got.Kind != Unknown || !strings.HasPrefix(got.Reason, "cannot verify") {
		t.Errorf("got %+v", got)
	}
}

func TestCAFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ca.pem")
	s := must(t, "https://:1/#ca="+path)
	f := func(content, want string) {
		t.Helper()
		if content != "none" {
			os.WriteFile(path, []byte(content), 0o600)
		}
		if err := s.CheckFiles(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v, want %q and the path", content, err, want)
		}
	}
	f("none", "cannot read CA file")
	f("", "holds no certificate")
	f("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate")
	if err := must(t, "https://:1/").CheckFiles(); err != nil {
		t.Error(err)
	}
}

// A CA that is rotated is read again.
func TestCAFileRotates(t *testing.T) {
	a, first, second := newAsker(t), newAuthority(t), newAuthority(t)
	port := secure(t, &tls.Config{Certificates: []tls.Certificate{second.issue(time.Now().Add(time.Hour), "localhost")}}, answersOK)
	path := first.file()
	expect(t, a, "https://:"+port+"/#ca="+path, Sick, "TLS failure")
	text, err := os.ReadFile(second.file())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	expect(t, a, "https://:"+port+"/#ca="+path, Well, "200 OK")
}
