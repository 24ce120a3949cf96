package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-resty/resty/v2"
)

// client reads the registry as a script with curl would.
type client struct {
	address string // host:port
	http    *resty.Client
}

func newClient(address string) client {
	return client{address, resty.New().SetBaseURL("http://" + address + "/nacos/v1/ns").SetTimeout(2 * time.Second)}
}

// seen is one instance as the registry lists it.
type seen struct {
	Service string
	IP      string `json:"ip"`
	Port    uint16 `json:"port"`
	Healthy bool   `json:"healthy"`
}

func (s seen) name() string {
	return fmt.Sprintf("%s at %s:%d", strings.TrimPrefix(s.Service, "DEFAULT_GROUP@@"), s.IP, s.Port)
}

// serves tells whether the registry answers at all.
func (c client) serves(ctx context.Context) bool {
	r, err := c.http.R().SetContext(ctx).Get("/service/list?pageNo=1&pageSize=1")
	return err == nil && r.StatusCode() == 200
}

// list gives the instances of one service.
func (c client) list(ctx context.Context, service string) ([]seen, error) {
	var answer struct {
		Hosts []seen `json:"hosts"`
	}
	if err := c.get(ctx, "/instance/list?serviceName="+url.QueryEscape(service), &answer); err != nil {
		return nil, err
	}
	for i := range answer.Hosts {
		answer.Hosts[i].Service = service
	}
	return answer.Hosts, nil
}

// all gives the instances of all services.
func (c client) all(ctx context.Context) (all []seen, err error) {
	var answer struct {
		Services []string `json:"doms"`
	}
	if err := c.get(ctx, "/service/list?pageNo=1&pageSize=500", &answer); err != nil {
		return nil, err
	}
	slices.Sort(answer.Services)
	for _, service := range answer.Services {
		some, err := c.list(ctx, service)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (c client) get(ctx context.Context, path string, into any) error {
	r, err := c.http.R().SetContext(ctx).Get(path)
	if err != nil {
		return err
	}
	if r.StatusCode() != 200 {
		return fmt.Errorf("cannot read %s: %s", path, r.Status())
	}
	return json.Unmarshal(r.Body(), into)
}

// registerPersistent does what `curl -X POST` in the README does.
func (c client) registerPersistent(ctx context.Context, a app) error {
	r, err := c.http.R().SetContext(ctx).SetQueryParams(map[string]string{
		"serviceName": a.service, "ip": "127.0.0.1", "port": port(a.port), "ephemeral": "false",
	}).Post("/instance")
	if err == nil && r.String() != "ok" {
		err = fmt.Errorf("%s: %s", r.Status(), r)
	}
	if err != nil {
		return fmt.Errorf("cannot register %s: %w", a.service, err)
	}
	return nil
}
