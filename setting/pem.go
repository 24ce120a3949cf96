package setting

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// pemMost bounds what is read of a file of certificates: all public
	// authorities together take 220 kB.
	pemMost = 1 << 20
	// lookAgain is how long what was read holds.
	lookAgain = time.Second
)

// pemFile is a file and the variable that names it; the path "" is none.
type pemFile struct{ name, path string }

// pemFiles are a certificate with its key, and authorities.
type pemFiles struct{ cert, key, authorities pemFile }

// pemPair is what stood in the files; nil is what there is none of.
type pemPair struct {
	certificate *tls.Certificate
	authorities *x509.CertPool
	text        [3][]byte
}

func (p pemPair) same(other pemPair) bool {
	for i := range p.text {
		if !bytes.Equal(p.text[i], other.text[i]) {
			return false
		}
	}
	return true
}

// read gives what stands in the files. Errors name the variable and never what
// is in a file.
func (f pemFiles) read() (pemPair, error) {
	switch {
	case f.cert.path != "" && f.key.path == "":
		return pemPair{}, fmt.Errorf("cannot use %s: %s is missing", f.cert.name, f.key.name)
	case f.cert.path == "" && f.key.path != "":
		return pemPair{}, fmt.Errorf("cannot use %s: %s is missing", f.key.name, f.cert.name)
	}
	var p pemPair
	var faults [3]error
	for i, file := range []pemFile{f.cert, f.key, f.authorities} {
		p.text[i], faults[i] = file.read()
	}
	if err := errors.Join(faults[:]...); err != nil {
		return pemPair{}, err
	}
	return p, errors.Join(p.setCertificate(f), p.setAuthorities(f))
}

func (p *pemPair) setCertificate(f pemFiles) error {
	if f.cert.path == "" {
		return nil
	}
	c, err := tls.X509KeyPair(p.text[0], p.text[1])
	if err != nil {
		return fmt.Errorf("cannot use %s=%s with %s=%s: %w", f.cert.name, f.cert.path, f.key.name, f.key.path, err)
	}
	p.certificate = &c
	return nil
}

// setAuthorities takes all that stand in the file, or none: one that is spoilt
// is not left out in silence.
func (p *pemPair) setAuthorities(f pemFiles) error {
	if f.authorities.path == "" {
		return nil
	}
	pool, n, rest := x509.NewCertPool(), 0, p.text[2]
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("cannot use %s=%s: block %d of it is no certificate", f.authorities.name, f.authorities.path, n+1)
		}
		pool.AddCert(c)
		n++
	}
	if n == 0 {
		return fmt.Errorf("cannot use %s=%s: it holds no certificate in PEM form", f.authorities.name, f.authorities.path)
	}
	p.authorities = pool
	return nil
}

func (f pemFile) read() ([]byte, error) {
	if f.path == "" {
		return nil, nil
	}
	text, err := readRegular(f.path, pemMost)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s=%s: %w", f.name, f.path, err)
	}
	return text, nil
}

// readRegular reads a file that is one, and not too long.
func readRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would hold us up
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	return text, nil
}

// keeper gives the configuration for what stands in files now.
type keeper struct {
	files pemFiles
	log   *logrus.Logger
	make  func(pemPair) *tls.Config

	current atomic.Pointer[tls.Config]

	looking sync.Mutex // held by who looks; nobody waits for it
	last    pemPair
	looked  time.Time
	said    string // why the files cannot be used, as it was said last
}

func keep(files pemFiles, log *logrus.Logger, make func(pemPair) *tls.Config) (*keeper, error) {
	p, err := files.read()
	if err != nil {
		return nil, err
	}
	k := &keeper{files: files, log: log, make: make, last: p, looked: time.Now()}
	k.current.Store(make(p))
	return k, nil
}

// now gives the configuration; somebody else may be looking at the files.
func (k *keeper) now() *tls.Config {
	if k.looking.TryLock() {
		k.look()
		k.looking.Unlock()
	}
	return k.current.Load()
}

func (k *keeper) look() {
	if time.Since(k.looked) < lookAgain {
		return
	}
	k.looked = time.Now()
	p, err := k.files.read()
	switch {
	case err != nil && err.Error() != k.said:
		k.said = err.Error()
		k.log.WithField("cause", err).Error("the TLS files cannot be used, those before hold")
	case err != nil:
	case p.same(k.last):
		k.said = ""
	default:
		k.said, k.last = "", p
		k.current.Store(k.make(p))
		k.log.Info("TLS files read anew")
	}
}
