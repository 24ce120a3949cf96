package nacos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// setCluster configures a cluster of a service that exists.
func setCluster(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.need(paramCluster, paramService, paramCheckPort, paramUseInstance, paramChecker); err != nil {
		return nil, err
	}
	checker, err := readChecker(c.form.text(paramChecker))
	if err != nil {
		return nil, badRequest(err.Error())
	}
	port, err := strconv.ParseUint(c.form.text(paramCheckPort), 10, 16)
	if err != nil {
		return nil, unreadable(c.form.text(paramCheckPort))
	}
	checker.Port, checker.UseInstancePort = uint16(port), c.truth(false, paramUseInstance)
	if err := s.durable(); err != nil {
		return nil, err
	}
	cluster := registry.Cluster{Service: c.service, Name: c.form.text(paramCluster)}
	err = s.Store.SetCluster(ctx, registry.ClusterConfig{Cluster: cluster, Checker: checker, Metadata: c.metadata})
	if errors.Is(err, registry.ErrNotFound) {
		err = badRequest("service not found:" + c.service.Grouped())
	}
	return done{}, err
}

// checkerBody is a checker as it is shown
// (com.alibaba.nacos.api.naming.pojo.healthcheck.AbstractHealthChecker).
type checkerBody struct {
	Type string `json:"type"`
	*httpChecker
	*mysqlChecker
}

type httpChecker struct {
	Path     string `json:"path"`
	Headers  string `json:"headers"`
	Expected uint32 `json:"expectedResponseCode"` // Nacos stores it and never looks
}

// toChecker shows a checker.
func toChecker(k registry.Checker) checkerBody {
	body := checkerBody{Type: k.Type}
	switch k.Type {
	case checkHTTP:
		body.httpChecker = &httpChecker{k.Path, k.Headers, cmp.Or(k.ExpectedStatus, http.StatusOK)}
	case checkMySQL:
		body.mysqlChecker = &mysqlChecker{pointer(k.User), pointer(k.Password), pointer(k.Command)}
	}
	return body
}

// pointer gives nil for nothing.
func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

const (
	checkTCP   = "TCP"
	checkHTTP  = "HTTP"
	checkMySQL = "MYSQL"
	checkNone  = "NONE"
)

// readChecker reads the JSON of a health checker. A type that is missing,
// unknown or in small letters means NONE, as in Nacos; text that is no JSON
// object is an error, where 2.5.1 answers status 101.
func readChecker(text string) (registry.Checker, error) {
	raw := map[string]json.RawMessage{}
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&raw); err != nil {
		return registry.Checker{}, errors.New("cannot read healthChecker: " + err.Error())
	}
	kind, err := word(raw, "type")
	if err != nil {
		return registry.Checker{}, err
	}
	switch kind {
	case checkTCP:
		return registry.Checker{Type: kind}, nil
	case checkMySQL:
		k := registry.Checker{Type: kind}
		return k, words(raw, map[string]*string{"user": &k.User, "pwd": &k.Password, "cmd": &k.Command})
	case checkHTTP:
		return readHTTPChecker(raw)
	}
	return registry.Checker{Type: checkNone}, nil
}

func readHTTPChecker(raw map[string]json.RawMessage) (registry.Checker, error) {
	k, expected := registry.Checker{Type: checkHTTP}, ""
	err := words(raw, map[string]*string{"path": &k.Path, "headers": &k.Headers, "expectedResponseCode": &expected})
	if err != nil || expected == "" {
		return k, err
	}
	status, err := strconv.ParseUint(expected, 10, 32)
	if err != nil {
		return k, fmt.Errorf("cannot read expectedResponseCode of healthChecker: %w", err)
	}
	k.ExpectedStatus = uint32(status)
	return k, nil
}

// words reads the scalars under these keys.
func words(raw map[string]json.RawMessage, to map[string]*string) error {
	for key, value := range to {
		var err error
		if *value, err = word(raw, key); err != nil {
			return err
		}
	}
	return nil
}

// word gives the scalar under key, "" when there is none.
func word(raw map[string]json.RawMessage, key string) (string, error) {
	v, ok := raw[key]
	if !ok {
		return "", nil
	}
	s, _, err := scalar(v)
	if err != nil {
		return "", errors.New("cannot read " + key + " of healthChecker: " + err.Error())
	}
	return s, nil
}

// setHealth changes the health of one instance.
//
// With If-Match it is conditional, Sidebeat's own addition for whoever checks
// from outside: 412 when the instance changed since that revision, 404 when it
// is gone; "*" asks only that it is there. Without, it is Nacos' call: refused
// unless the checker of the cluster is NONE, and no matter for an address that
// is unknown. Unlike 2.5.1 it works for persistent instances.
func setHealth(ctx context.Context, s *Server, c *call) (any, error) {
	if c.form.text(paramHealthy, paramHealthyAlias) == "" {
		return nil, required(paramHealthy)
	}
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	match := string(c.ctx.Request.Header.Peek("If-Match"))
	if match == "" && !s.checkedByHand(c.service, key.Cluster) {
		return nil, badRequest("health check is still working, service: " + key.Grouped() + ", cluster: " + key.Cluster)
	}
	seen, err := s.found(ctx, c)
	if err != nil {
		if f := asFault(err); match == "" && f.status == http.StatusNotFound {
			return done{}, nil
		}
		return nil, err
	}
	if seen.Revision, err = revision(match); err != nil {
		return nil, err
	}
	if err := s.durableFor(seen.Key); err != nil {
		return nil, err
	}
	err = s.Store.SetHealth(ctx, seen, c.truth(false, paramHealthy, paramHealthyAlias))
	if errors.Is(err, registry.ErrNotFound) {
		err = notFound(noMatchedIP)
	}
	return done{}, err
}

// checkedByHand reports whether the checker of the cluster was set to NONE.
func (s *Server) checkedByHand(service registry.Service, cluster string) bool {
	config, set := s.Store.Cluster(registry.Cluster{Service: service, Name: cluster})
	return set && config.Checker.Type == checkNone
}

// revision reads If-Match; 0 asks for nothing.
func revision(match string) (uint64, error) {
	if match == "" || match == "*" {
		return 0, nil
	}
	n, err := strconv.ParseUint(strings.Trim(match, `"`), 10, 64)
	if err != nil {
		return 0, badRequest("cannot read If-Match " + strconv.Quote(match) + `: it should be a revision such as "42"`)
	}
	return n, nil
}

// durableFor is durable, which only the kinds that are kept need.
func (s *Server) durableFor(k registry.Key) error {
	if k.Ephemeral {
		return nil
	}
	return s.durable()
}
