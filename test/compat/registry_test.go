package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// registry is the real program on ports of its own.
type registry struct {
	program, address string
	settings         []string
	user, password   string // for the test's own requests
	command          *exec.Cmd
	log              *tail
}

// buildRegistry makes the program as a release does, but for its version.
func buildRegistry(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sidebeat-registry")
	runIn(t, "../..", "go", "build", "-o", program, "./cmd/sidebeat-registry")
	return program
}

func newRegistry(t *testing.T, program string, settings ...string) *registry {
	t.Helper()
	r := &registry{program: program, address: freeAddress(t), log: &tail{}}
	r.settings = append(settings, "SIDEBEAT_LISTEN="+r.address, "SIDEBEAT_ADMIN=off", "SIDEBEAT_DATA="+t.TempDir())
	r.start(t)
	t.Cleanup(func() {
		r.stop(t, syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the registry said at last: %s", r.log)
		}
	})
	return r
}

// freeAddress gives a port that no outgoing connection is given by the kernel,
// so that it is still free after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (r *registry) start(t *testing.T) {
	t.Helper()
	r.command = exec.Command(r.program) // outlives the test's context until Cleanup
	r.command.Env = append(os.Environ(), r.settings...)
	r.command.Stdout, r.command.Stderr = r.log, r.log
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, 20*time.Second, "the registry serves", func() bool {
		status, _ := r.try(t, http.MethodGet, "/v1/console/health/readiness", nil)
		return status == http.StatusOK
	})
}

func (r *registry) stop(t *testing.T, how syscall.Signal) {
	t.Helper()
	if err := r.command.Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	_ = r.command.Wait() // of SIGKILL it tells
}

// try sends one request as curl would; status 0: nobody answered.
func (r *registry) try(t *testing.T, method, path string, params url.Values) (status int, body string) {
	t.Helper()
	query := params.Encode()
	if r.user != "" {
		query += "&" + url.Values{"username": {r.user}, "password": {r.password}}.Encode()
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.address+"/nacos"+path+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(text)
}

func (r *registry) must(t *testing.T, method, path string, params url.Values) string {
	t.Helper()
	status, body := r.try(t, method, path, params)
	if status != http.StatusOK {
		t.Fatalf("%s %s %v: %d %s", method, path, params, status, body)
	}
	return body
}

// place is an instance as the tests name it.
type place struct{ namespace, service, ip, port string }

func (p place) params(more ...string) url.Values {
	v := url.Values{"namespaceId": {p.namespace}, "serviceName": {p.service}, "ip": {p.ip}, "port": {p.port}}
	for n := 0; n < len(more); n += 2 {
		v.Set(more[n], more[n+1])
	}
	return v
}

// lasting are the periods of an instance that nobody has to beat.
const lasting = `"preserved.heart.beat.timeout":"3600000","preserved.ip.delete.timeout":"3600000"`

// put registers an instance in a state; version is in its metadata.
func (r *registry) put(t *testing.T, p place, healthy bool, version string) {
	t.Helper()
	metadata := fmt.Sprintf(`{"version":%q,%s}`, version, lasting)
	r.must(t, http.MethodPost, "/v1/ns/instance", p.params("metadata", metadata, "healthy", fmt.Sprint(healthy)))
}

// edit changes an instance as an operator does in a console.
func (r *registry) edit(t *testing.T, p place, enabled bool, version string) {
	t.Helper()
	metadata := fmt.Sprintf(`{"version":%q,%s}`, version, lasting)
	r.must(t, http.MethodPut, "/v1/ns/instance", p.params("metadata", metadata, "enabled", fmt.Sprint(enabled), "weight", "2"))
}

func (r *registry) drop(t *testing.T, p place) {
	t.Helper()
	r.must(t, http.MethodDelete, "/v1/ns/instance", p.params())
}

// state tells how consumers see an instance: healthy, unhealthy or gone. It
// looks in all clusters, because the Python client registers in one named None.
func (r *registry) state(t *testing.T, p place) (state string, metadata map[string]string) {
	t.Helper()
	body := r.must(t, http.MethodGet, "/v1/ns/instance/list", url.Values{"namespaceId": {p.namespace}, "serviceName": {p.service}})
	var list struct{ Hosts []host }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, h := range list.Hosts {
		switch {
		case h.IP != p.ip:
		case h.Healthy:
			return "healthy", h.Metadata
		default:
			return "unhealthy", h.Metadata
		}
	}
	return "gone", nil
}

// becomes waits for a state and tells how long it took.
func (r *registry) becomes(t *testing.T, within time.Duration, p place, want string) time.Duration {
	t.Helper()
	return r.eventually(t, within, p.service+" "+want, func() bool {
		state, _ := r.state(t, p)
		return state == want
	})
}

// eventually asks the real world again and again.
func (r *registry) eventually(t *testing.T, within time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		if time.Since(began) > within {
			t.Fatalf("not so in %v: %s", within, what)
		}
		<-again.C
	}
	return time.Since(began)
}
