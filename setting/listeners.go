package setting

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"
)

// Listeners is how a program guards what it listens on; embed it in its
// settings. Without the files it speaks plain HTTP.
type Listeners struct {
	TLSCertFile     string `split_words:"true" desc:"certificate in PEM, the chain behind it: all that this program listens on speaks TLS 1.2 or later; read again when it changes; unset: plain HTTP"`
	TLSKeyFile      string `split_words:"true" desc:"key in PEM of SIDEBEAT_TLS_CERT_FILE; read again when it changes"`
	TLSClientCAFile string `split_words:"true" desc:"authorities in PEM that certificates of clients must come from; read again when it changes; unset: clients are asked for none"`
	TLSClientAuth   string `split_words:"true" default:"required" desc:"required or optional: what holds for certificates of clients when SIDEBEAT_TLS_CLIENT_CA_FILE is set; a wrong one is refused either way"`

	AdminToken Secret `split_words:"true" desc:"what a POST to the own HTTP has to bear, as Authorization: Bearer; without it POST is refused when that listens elsewhere than on loopback"`
	AdminPprof bool   `split_words:"true" default:"false" desc:"profiles under /debug/pprof/ of the own HTTP: on loopback, or for who bears SIDEBEAT_ADMIN_TOKEN"`
}

// Values of SIDEBEAT_TLS_CLIENT_AUTH.
const (
	clientRequired = "required"
	clientOptional = "optional"
)

func (l Listeners) files() pemFiles {
	return pemFiles{
		cert: pemFile{"SIDEBEAT_TLS_CERT_FILE", l.TLSCertFile}, key: pemFile{"SIDEBEAT_TLS_KEY_FILE", l.TLSKeyFile},
		authorities: pemFile{"SIDEBEAT_TLS_CLIENT_CA_FILE", l.TLSClientCAFile},
	}
}

// Validate refuses files that cannot be used.
func (l Listeners) Validate() error {
	var faults []error
	if l.TLSClientAuth != clientRequired && l.TLSClientAuth != clientOptional {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_TLS_CLIENT_AUTH=%q: give required or optional", shorten(l.TLSClientAuth)))
	}
	if l.TLSClientCAFile != "" && l.TLSCertFile == "" {
		faults = append(faults, errors.New("cannot use SIDEBEAT_TLS_CLIENT_CA_FILE: SIDEBEAT_TLS_CERT_FILE is missing"))
	}
	_, err := l.files().read()
	return errors.Join(append(faults, err)...)
}

// TLS gives what the listeners of the program speak, nil for plain HTTP. The
// files are looked at once a second at most, when somebody connects; what
// cannot be used is said once and what was before holds. Connections that
// stand are left alone.
func (l Listeners) TLS(log *logrus.Logger) (*tls.Config, error) {
	if l.TLSCertFile == "" {
		return nil, nil
	}
	k, err := keep(l.files(), log, l.server)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.now(), nil },
	}, nil
}

// server gives the configuration for one reading of the files.
func (l Listeners) server(p pemPair) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*p.certificate}, NextProtos: []string{"http/1.1"}}
	if p.authorities == nil {
		return c
	}
	c.ClientCAs = p.authorities // named to the client
	c.ClientAuth = tls.RequireAnyClientCert
	if l.TLSClientAuth == clientOptional {
		c.ClientAuth = tls.RequestClientCert
	}
	own := p.certificate.Certificate[0]
	c.VerifyConnection = func(s tls.ConnectionState) error { return verifyClient(s, p.authorities, own) }
	return c
}

// verifyClient takes certificates of the authorities, and the program's own:
// whoever has its key, as the program asking itself, is no stranger.
func verifyClient(s tls.ConnectionState, authorities *x509.CertPool, own []byte) error {
	if len(s.PeerCertificates) == 0 || bytes.Equal(s.PeerCertificates[0].Raw, own) {
		return nil
	}
	options := x509.VerifyOptions{
		Roots: authorities, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, between := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(between)
	}
	_, err := s.PeerCertificates[0].Verify(options)
	return err
}

// Itself gives how the program's own commands reach its HTTP, nil for plain
// HTTP: they take no other certificate than its own, and show it.
func (l Listeners) Itself() (*tls.Config, error) {
	if l.TLSCertFile == "" {
		return nil, nil
	}
	p, err := l.files().read()
	if err != nil {
		return nil, err
	}
	own := p.certificate.Certificate[0]
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Whatever authorities are named: see verifyClient.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.certificate, nil },
		InsecureSkipVerify:   true, // the next line looks closer
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, own) {
				return &tls.CertificateVerificationError{Err: errors.New("it shows another certificate than SIDEBEAT_TLS_CERT_FILE")}
			}
			return nil
		},
	}, nil
}

// RegistryTLS is how a program looks at the certificate of its registry, and
// shows its own; embed it in its settings.
type RegistryTLS struct {
	NacosCAFile     string `split_words:"true" desc:"authorities in PEM that the certificate of an https registry must come from; read again when it changes; unset: those of the system"`
	NacosCertFile   string `split_words:"true" desc:"certificate in PEM, the chain behind it, that is shown to the registry; read again when it changes"`
	NacosKeyFile    string `split_words:"true" desc:"key in PEM of SIDEBEAT_NACOS_CERT_FILE; read again when it changes"`
	NacosServerName string `split_words:"true" desc:"name in the certificate of the registry; unset: the host in SIDEBEAT_NACOS"`
}

func (r RegistryTLS) files() pemFiles {
	return pemFiles{
		cert: pemFile{"SIDEBEAT_NACOS_CERT_FILE", r.NacosCertFile}, key: pemFile{"SIDEBEAT_NACOS_KEY_FILE", r.NacosKeyFile},
		authorities: pemFile{"SIDEBEAT_NACOS_CA_FILE", r.NacosCAFile},
	}
}

// Validate refuses files that cannot be used.
func (r RegistryTLS) Validate() error {
	_, err := r.files().read()
	return err
}

// TLS gives a function to be asked before each connection to the registry. The
// files are looked at as those of Listeners are.
func (r RegistryTLS) TLS(log *logrus.Logger) (func() *tls.Config, error) {
	k, err := keep(r.files(), log, func(p pemPair) *tls.Config {
		c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.NacosServerName, RootCAs: p.authorities}
		if p.certificate != nil {
			c.Certificates = []tls.Certificate{*p.certificate}
		}
		return c
	})
	if err != nil {
		return nil, err
	}
	return k.now, nil
}
