package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/nacos"
	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
	"github.com/sidebeat/sidebeat/setting"
)

// What stands in for secrets: nothing that is printed may hold it.
const (
	canaryPassword = "canary7Zq4-password"
	canarySecret   = "canary7Zq4-secret-of-more-than-32-bytes"
)

// upGuarded starts an empty registry that wants a login, with tokens of a few
// seconds, over TLS with client certificates when there are files for it.
func (s *site) upGuarded(ts *testscript.TestScript) error {
	ln, err := net.Listen("tcp", s.api)
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	guard, err := access.Open(access.Config{
		UsersFile: ts.MkAbs("users"), Secret: func() (string, error) { return canarySecret + s.secret, nil }, TokenLife: 3 * time.Second, Log: log,
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(ts.MkAbs("server.crt")); err == nil {
		config, err := setting.Listeners{
			TLSCertFile: ts.MkAbs("server.crt"), TLSKeyFile: ts.MkAbs("server.key"), TLSClientCAFile: ts.MkAbs("ca.crt"), TLSClientAuth: "required",
		}.TLS(log)
		if err != nil {
			return err
		}
		ln = tls.NewListener(ln, config)
	}
	s.store = registry.NewStore()
	server := &nacos.Server{Store: s.store, Log: log, Access: guard}
	s.down = background(s.store.Run, guard.Run, func(ctx context.Context) error { return run.Serve(ctx, ln, server.HTTP()) })
	return nil
}

// guarded SECRET: the registry comes back empty, with auth on and tokens signed
// by another secret.
func guarded(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if s.down != nil {
		s.down()
	}
	s.secret = args[0]
	ts.Check(s.upGuarded(ts))
}

// user NAME ROLES: writes a users file with this one.
func user(ts *testscript.TestScript, _ bool, args []string) {
	line, err := access.Line(args[0], canaryPassword, args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("users"), []byte(line+"\n"), 0o600))
}

// beaten N: waits until the registry took so many beats more.
func beatenMore(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseUint(args[0], 10, 32)
	ts.Check(err)
	s := of(ts)
	before := s.store.Counts().Beats
	until(ts, func() bool { return s.store.Counts().Beats >= before+n }, func() string { return "no beats" })
}

// clean: the list of processes and the environment's display show no secret of
// the agent in the background.
func clean(ts *testscript.TestScript, _ bool, _ []string) {
	all := ts.BackgroundCmds()
	line, err := os.ReadFile("/proc/" + strconv.Itoa(all[len(all)-1].Process.Pid) + "/cmdline")
	ts.Check(err)
	if strings.Contains(string(line), "canary7Zq4") {
		ts.Fatalf("the list of processes shows a secret")
	}
}

// certificates: writes ca.crt and, signed by it, server and agent .crt, .key.
func certificates(ts *testscript.TestScript, _ bool, _ []string) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	ca := template(1)
	ca.IsCA, ca.BasicConstraintsValid = true, true
	write := func(name, kind string, der []byte) {
		ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	ts.Check(err)
	write("ca.crt", "CERTIFICATE", der)
	for n, name := range []string{"server", "agent"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		der, err := x509.CreateCertificate(rand.Reader, template(int64(n+2)), ca, &key.PublicKey, caKey)
		ts.Check(err)
		private, err := x509.MarshalPKCS8PrivateKey(key)
		ts.Check(err)
		write(name+".crt", "CERTIFICATE", der)
		write(name+".key", "PRIVATE KEY", private)
	}
}

func template(serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// ! listed-soon SERVICE: the agent asks its app three times more, and the
// registry still does not list it.
func listedSoon(ts *testscript.TestScript, neg bool, args []string) {
	for range 3 {
		asked(ts, false, nil)
	}
	if got := state(of(ts).store, args[0]); (got == "-") != neg {
		ts.Fatalf("the registry lists %s as %s", args[0], got)
	}
}
