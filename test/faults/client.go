package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	patience      = 3 * time.Second  // for beats and reads, as clients have it
	writePatience = 15 * time.Second // for durable writes
)

// client speaks to one registry and notes what it is answered.
type client struct {
	base  string
	seen  *seen
	http  fasthttp.Client
	token *atomic.Pointer[string] // of a login; nil in it: auth is off
}

func newClient(address string, s *seen) *client {
	return &client{base: "http://" + address + "/nacos", seen: s, token: new(atomic.Pointer[string]), http: fasthttp.Client{
		MaxConnsPerHost: 4096, MaxIdemponentCallAttempts: 1, ReadTimeout: 2 * writePatience, MaxIdleConnDuration: time.Minute,
	}}
}

// another is a client with a connection of its own, as each agent has one, and
// the same token.
func (c *client) another() *client {
	return &client{base: c.base, seen: c.seen, token: c.token, http: fasthttp.Client{
		MaxConnsPerHost: 2, MaxIdemponentCallAttempts: 1, ReadTimeout: patience, MaxIdleConnDuration: time.Minute,
	}}
}

// ask sends one request, never twice. status is that of the answer, or a word.
func (c *client) ask(method, path string, values url.Values, patience time.Duration) (status string, body []byte) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	if token := c.token.Load(); token != nil {
		request.Header.Set("accessToken", *token)
	}
	request.Header.SetMethod(method)
	request.SetRequestURI(c.base + path + "?" + values.Encode())
	if err := c.http.DoTimeout(request, response, patience); err != nil {
		return wordFor(err), nil
	}
	return strconv.Itoa(response.StatusCode()), append([]byte(nil), response.Body()...)
}

func wordFor(err error) string {
	switch {
	case errors.Is(err, fasthttp.ErrTimeout), errors.Is(err, fasthttp.ErrDialTimeout):
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	}
	return "cut off"
}

// ready tells whether the registry answers at all.
func (c *client) ready() bool {
	status, _ := c.ask("GET", "/v1/console/health/readiness", nil, time.Second)
	return status == "200"
}

// write makes a durable write and tells whether it was acknowledged.
func (c *client) write(method, path string, values url.Values, yes string) (acknowledged bool) {
	status, body := c.ask(method, path, values, writePatience)
	acknowledged = status == "200" && string(body) == yes
	if status == "200" && !acknowledged {
		status = "200 without consent"
	}
	c.seen.refused(status, body)
	c.seen.answered(write, status, acknowledged)
	return acknowledged
}

// listed is an instance as a list shows it.
type listed struct {
	IP      string
	Port    int
	Weight  float64
	Healthy bool
}

type list struct {
	Hosts       []listed
	LastRefTime int64
}

func (c *client) list(service string, patience time.Duration) (l list, status string) {
	status, body := c.ask("GET", "/v1/ns/instance/list", url.Values{"serviceName": {service}}, patience)
	if status == "200" && json.Unmarshal(body, &l) != nil {
		status = "200 without a list"
	}
	return l, status
}

// everything reads all that writers may have written.
func (c *client) everything(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for w := range instanceWriters {
		l, status := c.list(keptService(w), writePatience)
		if status != "200" {
			return nil, fmt.Errorf("a list was answered %s", status)
		}
		for _, h := range l.Hosts {
			found[instanceName(w, h.Port)] = fmt.Sprintf("weight %g", h.Weight)
		}
	}
	return found, errors.Join(c.readService(found), c.readSwitch(found), c.readNamespaces(found), ctx.Err())
}

func (c *client) readJSON(path string, values url.Values, into any) error {
	status, body := c.ask("GET", path, values, writePatience)
	if status != "200" {
		return fmt.Errorf("%s was answered %s %.200s", path, status, body)
	}
	return json.Unmarshal(body, into)
}

func (c *client) readService(found map[string]string) error {
	status, body := c.ask("GET", "/v1/ns/service", url.Values{"serviceName": {serviceName}}, writePatience)
	if status != "200" {
		if strings.Contains(string(body), "not found") { // nothing was written yet
			return nil
		}
		return fmt.Errorf("a service was answered %s %.200s", status, body)
	}
	var service struct{ Metadata map[string]string }
	if err := json.Unmarshal(body, &service); err != nil {
		return err
	}
	found[serviceName] = service.Metadata["n"]
	return nil
}

func (c *client) readSwitch(found map[string]string) error {
	var switches map[string]any
	if err := c.readJSON("/v1/ns/operator/switches", nil, &switches); err != nil {
		return err
	}
	found[switchName] = fmt.Sprint(switches[switchName])
	return nil
}

func (c *client) readNamespaces(found map[string]string) error {
	var all struct {
		Data []struct{ Namespace, NamespaceShowName string }
	}
	if err := c.readJSON("/v1/console/namespaces", nil, &all); err != nil {
		return err
	}
	for _, n := range all.Data {
		found[namespaceName(n.Namespace)] = n.NamespaceShowName
	}
	return nil
}

// login takes a token for what follows.
func (c *client) login(user, password string) error {
	c.token.Store(nil)
	status, body := c.ask("POST", "/v1/auth/login", url.Values{"username": {user}, "password": {password}}, writePatience)
	var answer struct{ AccessToken string }
	if status != "200" || json.Unmarshal(body, &answer) != nil || answer.AccessToken == "" {
		return fmt.Errorf("a login was answered %s %.100s", status, body)
	}
	c.token.Store(&answer.AccessToken)
	return nil
}
