package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// CheckFiles tells whether the files a Spec names can be used: it is for the
// start of a program, where a bad CA file is a bad setting.
func (s Spec) CheckFiles() error {
	p, err := compile(s.options)
	if err != nil || p.authorities == "" {
		return err
	}
	_, err = new(roots).of(p.authorities)
	return err
}

// roots keeps CA files, read again when they change. The zero value is ready.
type roots struct {
	mu    sync.Mutex
	known map[string]rootFile
}

type rootFile struct {
	pool     *x509.CertPool
	modified time.Time
	size     int64
}

func (r *roots) of(path string) (*x509.CertPool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read CA file: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.known[path]; f.pool != nil && f.modified.Equal(info.ModTime()) && f.size == info.Size() {
		return f.pool, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot use CA file %s: it holds no certificate in PEM form", path)
	}
	if r.known == nil {
		r.known = make(map[string]rootFile)
	}
	r.known[path] = rootFile{pool, info.ModTime(), info.Size()}
	return pool, nil
}

// tlsConfig is made anew for every connection: nothing of one check's options
// can reach another's, and no session is resumed.
func (a *Asker) tlsConfig(p *plan, name string) (*tls.Config, error) {
	config := &tls.Config{ServerName: name, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	if p.insecure {
		// Whoever does not care who answers asks only whether somebody does,
		// so servers that know nothing newer are spoken to as well.
		config.InsecureSkipVerify, config.MinVersion = true, tls.VersionTLS10
		config.CipherSuites = everyCipher()
	}
	if p.authorities == "" {
		return config, nil
	}
	var err error
	config.RootCAs, err = a.roots.of(p.authorities)
	return config, err
}

func everyCipher() []uint16 {
	var ids []uint16
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		ids = append(ids, suite.ID)
	}
	return ids
}

// handshake makes a TLS connection of conn, which has its deadline set.
func (a *Asker) handshake(ctx context.Context, start time.Time, conn net.Conn, p *plan, name string) (*tls.Conn, Answer) {
	config, err := a.tlsConfig(p, name)
	if err != nil {
		return nil, Answer{Kind: Unknown, Reason: err.Error()}
	}
	secure := tls.Client(conn, config)
	if err := secure.Handshake(); err != nil {
		return nil, tlsFault(ctx, start, err)
	}
	return secure, Answer{}
}

// tlsFault judges an error of a TLS connection.
func tlsFault(ctx context.Context, start time.Time, err error) Answer {
	var header tls.RecordHeaderError
	var ours x509.SystemRootsError
	switch {
	case errors.As(err, &header) && string(header.RecordHeader[:]) == "HTTP/":
		return Answer{Kind: Sick, Reason: "TLS failure: server speaks plain HTTP"}
	case errors.As(err, &header):
		return Answer{Kind: Sick, Reason: fmt.Sprintf("TLS failure: server does not speak TLS, it sent %q", header.RecordHeader)}
	case errors.As(err, &ours):
		return Answer{Kind: Unknown, Reason: "cannot verify: " + err.Error()}
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return Answer{Kind: Sick, Reason: "TLS failure: closed during the handshake"}
	case isTLS(err):
		return Answer{Kind: Sick, Reason: "TLS failure: " + strings.NewReplacer("tls: ", "", "x509: ", "", "remote error: ", "server says ").Replace(err.Error())}
	}
	answer := fault(ctx, start, err)
	if answer.Kind == Sick {
		answer.Reason += " in the TLS handshake"
	}
	return answer
}

// isTLS tells an error of TLS itself from one of the connection below.
func isTLS(err error) bool {
	var below *net.OpError
	if !errors.As(err, &below) {
		return !timedOut(err) && !errors.Is(err, context.Canceled)
	}
	var alert tls.AlertError
	return below.Op == "remote error" || below.Op == "local error" || errors.As(err, &alert)
}
