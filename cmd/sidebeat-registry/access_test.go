package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/run"
)

// What stands in for secrets: nothing that is printed may hold it.
const canaryPassword = "canary7Zq4-password"

// insecure asks whoever shows what certificate.
var insecure = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 5 * time.Second,
}

// users FILE NAME=ROLES...: writes a users file; all have the same password.
func users(ts *testscript.TestScript, _ bool, args []string) {
	var text strings.Builder
	for _, word := range args[1:] {
		name, roles, _ := strings.Cut(word, "=")
		line, err := access.Line(name, canaryPassword, roles)
		ts.Check(err)
		text.WriteString(line + "\n")
	}
	ts.Check(writeWhole(ts.MkAbs(args[0]), text.String()))
}

// tokens keeps what the last login got, by script.
type tokens struct{ last string }

func logIn(ts *testscript.TestScript, name string) int {
	answer, err := insecure.PostForm("http://"+ts.Getenv("API")+"/nacos/v1/auth/login", url.Values{"username": {name}, "password": {canaryPassword}})
	ts.Check(err)
	defer answer.Body.Close()
	var body struct{ AccessToken string }
	if answer.StatusCode == http.StatusOK {
		ts.Check(json.NewDecoder(answer.Body).Decode(&body))
		ts.Value("tokens").(*tokens).last = body.AccessToken
	}
	return answer.StatusCode
}

// login NAME STATUS: logs in and keeps the token.
func login(ts *testscript.TestScript, _ bool, args []string) {
	if got := logIn(ts, args[0]); strconv.Itoa(got) != args[1] {
		ts.Fatalf("login of %s: %d, want %s", args[0], got, args[1])
	}
}

// waitlogin NAME: logs in as soon as that works, within 10 s.
func waitLogin(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(10 * time.Second); logIn(ts, args[0]) != http.StatusOK; {
		if time.Now().After(end) {
			ts.Fatalf("no login of %s within 10 s", args[0])
		}
		_ = run.Wait(context.Background(), 300*time.Millisecond)
	}
}

// tokened METHOD URL STATUS REGEXP: asks once, with the token kept last.
func tokened(ts *testscript.TestScript, _ bool, args []string) {
	request, err := http.NewRequest(args[0], args[1], nil)
	ts.Check(err)
	request.Header.Set("Authorization", "Bearer "+ts.Value("tokens").(*tokens).last)
	answer, err := insecure.Do(request)
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if strconv.Itoa(answer.StatusCode) != args[2] || !regexp.MustCompile(args[3]).Match(body) {
		ts.Fatalf("%s %s: %d %s, want %s %s", args[0], args[1], answer.StatusCode, body, args[2], args[3])
	}
}

// nosecrets NAME: the list of processes shows no secret of the one in the
// background.
func noSecrets(ts *testscript.TestScript, _ bool, _ []string) {
	all := ts.BackgroundCmds()
	line, err := os.ReadFile("/proc/" + strconv.Itoa(all[len(all)-1].Process.Pid) + "/cmdline")
	ts.Check(err)
	if strings.Contains(string(line), "canary7Zq4") || !strings.Contains(string(line), "sidebeat-registry") {
		ts.Fatalf("the list of processes shows %q", line)
	}
}

// certificates: writes ca.crt, server.crt and server.key.
func certificates(ts *testscript.TestScript, _ bool, _ []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, wanted, &key.PublicKey, key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	ts.Check(writeWhole(ts.MkAbs("server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))))
	ts.Check(writeWhole(ts.MkAbs("server.crt"), text))
	ts.Check(writeWhole(ts.MkAbs("ca.crt"), text))
}

// awaithealth: asks the program's own health until it is well, for 10 s.
func awaitHealth(ts *testscript.TestScript, _ bool, _ []string) {
	for end := time.Now().Add(10 * time.Second); ts.Exec("sidebeat-registry", "health") != nil; {
		if time.Now().After(end) {
			ts.Fatalf("not well within 10 s")
		}
		_ = run.Wait(context.Background(), 100*time.Millisecond)
	}
}

// refused URL: the connection does not come about.
func refused(ts *testscript.TestScript, _ bool, args []string) {
	if answer, err := insecure.Get(args[0]); err == nil {
		answer.Body.Close()
		ts.Fatalf("%s was answered", args[0])
	} else if !strings.Contains(err.Error(), "certificate required") {
		ts.Fatalf("%v", err)
	}
}
