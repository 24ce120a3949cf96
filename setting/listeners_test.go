package setting

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/valyala/fasthttp/fasthttputil"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func encoded(kind string, bytes []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
}

// certify makes a certificate and its key, both in PEM.
func certify(t testing.TB, name string, by *authority, usage x509.ExtKeyUsage) (cert, key string, parsed *x509.Certificate, private *ecdsa.PrivateKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	wanted := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	parent, signer := wanted, private
	if by != nil {
		parent, signer = by.cert, by.key
	} else {
		wanted.IsCA, wanted.BasicConstraintsValid, wanted.KeyUsage = true, true, x509.KeyUsageCertSign
		wanted.ExtKeyUsage = nil
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return encoded("CERTIFICATE", der), encoded("PRIVATE KEY", keyDER), parsed, private
}

func newAuthority(t testing.TB, folder, name string) *authority {
	t.Helper()
	cert, _, parsed, key := certify(t, name, nil, 0)
	a := &authority{parsed, key, filepath.Join(folder, name+".pem")}
	put(t, a.file, cert)
	return a
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pair writes NAME.crt and NAME.key.
func (a *authority) pair(t testing.TB, folder, name, host string, usage x509.ExtKeyUsage) (cert, key string) {
	t.Helper()
	c, k, _, _ := certify(t, host, a, usage)
	cert, key = filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	put(t, cert, c)
	put(t, key, k)
	return cert, key
}

// shake lets both ends speak over a connection in this process: what the
// server's end saw and said in the end, and the name the client was shown.
func shake(t testing.TB, server, client *tls.Config) (shown string, err error) {
	t.Helper()
	pipe := fasthttputil.NewPipeConns() // with room, where net.Pipe has none
	a, b := pipe.Conn1(), pipe.Conn2()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		_, err := io.WriteString(s, "x")
		if err == nil {
			_, err = s.Read(make([]byte, 1))
		}
		a.Close()
		done <- err
	}()
	c := tls.Client(b, client)
	_, err = c.Read(make([]byte, 1))
	if err == nil {
		shown = c.ConnectionState().PeerCertificates[0].Subject.CommonName
		_, err = io.WriteString(c, "y")
	}
	b.Close()
	if other := <-done; err == nil {
		err = other
	}
	return shown, err
}

func quiet() (*logrus.Logger, *test.Hook) { return test.NewNullLogger() }

func (l Listeners) mustTLS(t testing.TB) *tls.Config {
	t.Helper()
	log, _ := quiet()
	c, err := l.TLS(log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (r RegistryTLS) mustTLS(t testing.TB) func() *tls.Config {
	t.Helper()
	log, _ := quiet()
	c, err := r.TLS(log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantShake(t testing.TB, server, client *tls.Config, want string) {
	t.Helper()
	if shown, err := shake(t, server, client); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %q and %v, want %q", shown, err, want)
	}
}

func TestPlainHTTPUnlessAsked(t *testing.T) {
	log, _ := quiet()
	server, err := Listeners{}.TLS(log)
	itself, other := Listeners{}.Itself()
	if server != nil || itself != nil || err != nil || other != nil {
		t.Errorf("%v %v %v %v", server, itself, err, other)
	}
}

func TestTLSBothEnds(t *testing.T) {
	dir := t.TempDir()
	ours, strange := newAuthority(t, dir, "ours"), newAuthority(t, dir, "strange")
	cert, key := ours.pair(t, dir, "server", "registry.example", x509.ExtKeyUsageServerAuth)
	agentCert, agentKey := ours.pair(t, dir, "agent", "agent", x509.ExtKeyUsageClientAuth)
	badCert, badKey := strange.pair(t, dir, "bad", "bad", x509.ExtKeyUsageClientAuth)
	plain := Listeners{TLSCertFile: cert, TLSKeyFile: key}
	required, optional := plain, plain
	required.TLSClientCAFile, required.TLSClientAuth = ours.file, "required"
	optional.TLSClientCAFile, optional.TLSClientAuth = ours.file, "optional"
	f := func(l Listeners, r RegistryTLS, want string) {
		t.Helper()
		c := r.mustTLS(t)().Clone()
		if c.ServerName == "" {
			c.ServerName = "127.0.0.1" // as the host in SIDEBEAT_NACOS
		}
		wantShake(t, l.mustTLS(t), c, want)
	}
	f(plain, RegistryTLS{NacosCAFile: ours.file}, "")
	f(plain, RegistryTLS{NacosCAFile: ours.file, NacosServerName: "registry.example"}, "")
	f(plain, RegistryTLS{NacosCAFile: ours.file, NacosServerName: "other.example"}, "not other.example")
	f(plain, RegistryTLS{NacosCAFile: strange.file}, "unknown authority")
	f(plain, RegistryTLS{}, "certificate")
	f(required, RegistryTLS{NacosCAFile: ours.file, NacosCertFile: agentCert, NacosKeyFile: agentKey}, "")
	f(required, RegistryTLS{NacosCAFile: ours.file}, "certificate required")
	f(required, RegistryTLS{NacosCAFile: ours.file, NacosCertFile: badCert, NacosKeyFile: badKey}, "certificate")
	f(optional, RegistryTLS{NacosCAFile: ours.file, NacosCertFile: agentCert, NacosKeyFile: agentKey}, "")
	f(optional, RegistryTLS{NacosCAFile: ours.file}, "")
	// A client that heeds the authorities it is told shows none, another is refused.
	f(optional, RegistryTLS{NacosCAFile: ours.file, NacosCertFile: badCert, NacosKeyFile: badKey}, "")
	bad, err := tls.LoadX509KeyPair(badCert, badKey)
	if err != nil {
		t.Fatal(err)
	}
	wantShake(t, optional.mustTLS(t), &tls.Config{
		InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &bad, nil },
	}, "bad certificate")

	// What is no client is refused, though ours signed it: another server.
	otherCert, otherKey := ours.pair(t, dir, "other", "other", x509.ExtKeyUsageServerAuth)
	f(required, RegistryTLS{NacosCAFile: ours.file, NacosCertFile: otherCert, NacosKeyFile: otherKey}, "bad certificate")
	// TLS 1.1 is refused.
	old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	wantShake(t, plain.mustTLS(t), old, "protocol version")

	// The program's own commands.
	theirs := required
	theirs.TLSClientCAFile = strange.file
	for _, l := range []Listeners{plain, required, optional, theirs} {
		itself, err := l.Itself()
		if err != nil {
			t.Fatal(err)
		}
		wantShake(t, l.mustTLS(t), itself, "")
		stranger := Listeners{TLSCertFile: badCert, TLSKeyFile: badKey}
		wantShake(t, stranger.mustTLS(t), itself, "it shows another certificate")
	}
}

// Files are read again when they change; connections that stand go on. What is
// broken keeps what was, said once.
func TestTLSFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ours := newAuthority(t, dir, "ours")
		cert, key := ours.pair(t, dir, "server", "first", x509.ExtKeyUsageServerAuth)
		log, lines := quiet()
		l := Listeners{TLSCertFile: cert, TLSKeyFile: key}
		server, err := l.TLS(log)
		if err != nil {
			t.Fatal(err)
		}
		client := RegistryTLS{NacosCAFile: ours.file, NacosServerName: "127.0.0.1"}.mustTLS(t)
		f := func(name string, count int) {
			t.Helper()
			for range 3 {
				time.Sleep(lookAgain)
				if shown, err := shake(t, server, client()); shown != name || err != nil || len(lines.AllEntries()) != count {
					t.Errorf("shown %q, %v, %d lines; want %q and %d", shown, err, len(lines.AllEntries()), name, count)
				}
			}
		}
		f("first", 0)
		pipe := fasthttputil.NewPipeConns()
		a, b := pipe.Conn1(), pipe.Conn2()
		standing, peer := tls.Client(a, client()), tls.Server(b, server)
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(peer, peer)
			ended <- err
		}()
		talk := func() {
			t.Helper()
			echo := make([]byte, 2)
			if _, err := io.WriteString(standing, "hi"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(standing, echo); err != nil || string(echo) != "hi" {
				t.Errorf("%q %v", echo, err)
			}
		}
		talk()
		ours.pair(t, dir, "server", "second", x509.ExtKeyUsageServerAuth)
		f("second", 1)
		talk()
		whole, _ := os.ReadFile(cert)
		put(t, cert, string(whole[:len(whole)/2]))
		f("second", 2)
		if e := lines.LastEntry(); e.Level != logrus.ErrorLevel || !strings.Contains(fmt.Sprint(e.Data["cause"]), "SIDEBEAT_TLS_CERT_FILE="+cert) {
			t.Errorf("%v", e.Data)
		}
		os.Remove(key)
		f("second", 3)
		put(t, cert, string(whole)) // still no key
		f("second", 3)
		ours.pair(t, dir, "server", "third", x509.ExtKeyUsageServerAuth)
		f("third", 4)
		talk()
		// Another authority, at the client's end.
		strange := newAuthority(t, dir, "strange")
		text, _ := os.ReadFile(strange.file)
		put(t, ours.file, string(text))
		time.Sleep(lookAgain)
		wantShake(t, server, client(), "unknown authority")
		talk()
		standing.Close()
		<-ended
		b.Close()
		a.Close()
	})
}

// Every fault names the variable and shows nothing of a key.
func TestTLSSettingsThatAreWrong(t *testing.T) {
	dir := t.TempDir()
	ours := newAuthority(t, dir, "ours")
	cert, key := ours.pair(t, dir, "a", "a", x509.ExtKeyUsageServerAuth)
	_, other := ours.pair(t, dir, "b", "b", x509.ExtKeyUsageServerAuth)
	empty, canary, pair := filepath.Join(dir, "empty"), filepath.Join(dir, "canary"), filepath.Join(dir, "pair")
	put(t, empty, "")
	put(t, canary, "canary7Zq4-no-key")
	text, _ := os.ReadFile(ours.file)
	put(t, pair, string(text)+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary7Zq4") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	l := func(cert, key, ca, auth string) error {
		return Listeners{cert, key, ca, auth, Secret{}, false}.Validate()
	}
	if err := l(cert, key, ours.file, "optional"); err != nil {
		t.Error(err)
	}
	f(l(cert, "", "", "required"), "cannot use SIDEBEAT_TLS_CERT_FILE: SIDEBEAT_TLS_KEY_FILE is missing")
	f(l("", key, "", "required"), "cannot use SIDEBEAT_TLS_KEY_FILE: SIDEBEAT_TLS_CERT_FILE is missing")
	f(l("", "", ours.file, "required"), "cannot use SIDEBEAT_TLS_CLIENT_CA_FILE: SIDEBEAT_TLS_CERT_FILE is missing")
	f(l("", "", "", "maybe"), `cannot use SIDEBEAT_TLS_CLIENT_AUTH="maybe": give required or optional`)
	f(l(cert, other, "", "required"), "does not match")
	f(l(dir+"/none", key, "", "required"), "cannot read SIDEBEAT_TLS_CERT_FILE=")
	f(l(dir, key, "", "required"), "it is no regular file")
	f(l(cert, empty, "", "required"), "cannot use SIDEBEAT_TLS_CERT_FILE=")
	f(l(cert, canary, "", "required"), "cannot use SIDEBEAT_TLS_CERT_FILE=")
	f(l(cert, key, empty, "required"), "it holds no certificate in PEM form")
	f(l(cert, key, key, "required"), "block 1 of it is no certificate")
	f(l(cert, key, pair, "required"), "block 2 of it is no certificate")
	f(RegistryTLS{NacosCAFile: canary}.Validate(), "cannot use SIDEBEAT_NACOS_CA_FILE=")
	f(RegistryTLS{NacosCertFile: cert}.Validate(), "SIDEBEAT_NACOS_KEY_FILE is missing")
	log, _ := quiet()
	_, err := Listeners{TLSCertFile: empty, TLSKeyFile: empty}.TLS(log)
	f(err, "SIDEBEAT_TLS_CERT_FILE")
	_, err = RegistryTLS{NacosCAFile: empty}.TLS(log)
	f(err, "SIDEBEAT_NACOS_CA_FILE")
	_, err = Listeners{TLSCertFile: empty, TLSKeyFile: empty}.Itself()
	f(err, "SIDEBEAT_TLS_CERT_FILE")
	put(t, pair, strings.Repeat("x", pemMost+1))
	f(l(cert, key, pair, "required"), "it is longer than 1048576 bytes")
}

// FuzzPEM: whatever stands in the files, they are used or refused with the
// variable's name.
func FuzzPEM(f *testing.F) {
	ours := newAuthority(f, f.TempDir(), "ours")
	cert, key, _, _ := certify(f, "a", ours, x509.ExtKeyUsageServerAuth)
	f.Add([]byte(cert), []byte(key), []byte(cert))
	f.Add([]byte(cert+cert), []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"), []byte{})
	f.Add([]byte("-----BEGIN"), []byte{0}, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, cert, key, authorities []byte) {
		p := pemPair{text: [3][]byte{cert, key, authorities}}
		files := pemFiles{pemFile{"CERT", "a"}, pemFile{"KEY", "b"}, pemFile{"CA", "c"}}
		if err := p.setCertificate(files); (err == nil) != (p.certificate != nil) || err != nil && !strings.HasPrefix(err.Error(), "cannot use CERT=a") {
			t.Fatal(err)
		}
		if err := p.setAuthorities(files); (err == nil) != (p.authorities != nil) || err != nil && !strings.HasPrefix(err.Error(), "cannot use CA=c") {
			t.Fatal(err)
		}
	})
}
