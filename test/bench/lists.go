package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	crowd    = 1000    // instances of the service that is listed
	services = 100_000 // in the catalog
)

// lasting keeps instances that nobody beats.
const lasting = `{"preserved.heart.beat.timeout":"3600000","preserved.ip.delete.timeout":"3600000"}`

const listPath = "/nacos/v1/ns/instance/list?serviceName=DEFAULT_GROUP%40%40crowd&namespaceId=public&clusters=&healthyOnly=false"

// lists holds the list of a service with 1000 instances against a bare handler.
func (b *bench) lists(ctx context.Context) error {
	registry, address, err := b.crowded(ctx, b.temp+"/lists")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	name := fmt.Sprintf("list of %d instances", crowd)
	whole := func(body []byte) bool { return strings.Count(string(body), `"ip"`) == crowd }
	return b.beside(ctx, registry, address, question{name, listPath, "aim 3.00 at most"}, whole)
}

// crowded starts a registry with one service of many instances.
func (b *bench) crowded(ctx context.Context, data string) (*process, string, error) {
	registry, address, _, err := b.startRegistry(ctx, data)
	if err != nil {
		return nil, "", err
	}
	return registry, address, each(crowd, func(i int) error { return post(address, crowdMember(i, 1)) })
}

func crowdMember(i int, weight float64) url.Values {
	return member("crowd", fmt.Sprintf("10.2.%d.%d", i/250, 1+i%250), weight)
}

func member(service, ip string, weight float64) url.Values {
	return url.Values{"serviceName": {service}, "ip": {ip}, "port": {"8080"}, "weight": {fmt.Sprint(weight)}, "metadata": {lasting}}
}

// each does n things, some at a time.
func each(n int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, connections)
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[w] == nil; i = next.Add(1) - 1 {
				errs[w] = do(int(i))
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// post registers an instance.
func post(address string, params url.Values) error {
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod("POST")
	req.SetRequestURI("http://" + address + "/nacos/v1/ns/instance?" + params.Encode())
	if err := poster.DoTimeout(&req, &resp, 10*time.Second); err != nil {
		return err
	}
	if string(resp.Body()) != "ok" {
		return fmt.Errorf("a registration was answered %d %q", resp.StatusCode(), resp.Body())
	}
	return nil
}

func get(path string) []byte { return []byte("GET " + path + " HTTP/1.1\r\n" + beatHeaders + "\r\n") }

// question is what is read from the registry.
type question struct{ name, path, aim string }

// beside holds the CPU of an answer against that of a bare handler which
// writes the same bytes.
func (b *bench) beside(ctx context.Context, registry *process, address string, q question, right func(body []byte) bool) error {
	status, body, err := fasthttp.Get(nil, "http://"+address+q.path)
	if err != nil || status != fasthttp.StatusOK || !right(body) {
		return fmt.Errorf("%s was answered %d %.100q: %w", q.path, status, body, err)
	}
	bare, bareAddress, err := b.bare(ctx, body)
	if err != nil {
		return err
	}
	defer bare.stop(9)
	requests := [][]byte{get(q.path)}
	same := func(got []byte) bool { return len(got) == len(body) }
	var ratios, ours []float64
	for range b.rounds + 1 { // the first one warms up
		theirs, err := perRequest(ctx, bare, bareAddress, requests, same)
		if err != nil {
			return err
		}
		own, err := perRequest(ctx, registry, address, requests, same)
		if err != nil {
			return err
		}
		ratios, ours = append(ratios, float64(own)/float64(theirs)), append(ours, float64(own))
	}
	report("CPU of a bare handler's, "+q.name, spread(ratios[1:]), q.aim)
	report(fmt.Sprintf("us of CPU, %s (%d bytes)", q.name, len(body)), fmt.Sprintf("%.0f", median(ours[1:])/1e3), "")
	return nil
}

// churn measures ephemeral instances that come and go.
func (b *bench) churn(ctx context.Context) error {
	registry, address, _, err := b.startRegistry(ctx, b.temp+"/churn")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	requests := make([][]byte, 2*beatInstances) // a multiple of the connections apart: each takes out what it brought
	for i := range beatInstances {
		service, ip := beatAddress(i)
		query := "serviceName=churn-" + service + "&ip=" + ip + "&port=8080&ephemeral=true HTTP/1.1\r\n" + beatHeaders + "Content-Length: 0\r\n\r\n"
		at := i/connections*2*connections + i%connections
		if at+connections >= len(requests) {
			requests = requests[:i/connections*2*connections]
			break
		}
		requests[at] = []byte("POST /nacos/v1/ns/instance?" + query)
		requests[at+connections] = []byte("DELETE /nacos/v1/ns/instance?" + query)
	}
	ok := func(body []byte) bool { return string(body) == "ok" }
	var costs []float64
	for range b.rounds + 1 {
		cost, err := perRequest(ctx, registry, address, requests, ok)
		if err != nil {
			return err
		}
		costs = append(costs, float64(cost))
	}
	report("registered and deregistered/CPU-s (ephemeral)", fmt.Sprintf("%.0f", 1e9/(2*median(costs[1:]))), "")
	return nil
}

// catalog measures pages of 100 000 services.
func (b *bench) catalog(ctx context.Context) error {
	registry, address, _, err := b.startRegistry(ctx, b.temp+"/catalog")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	fill := func(i int) error { return post(address, member(fmt.Sprintf("catalog-%06d", i), "10.3.0.1", 1)) }
	if err := each(services, fill); err != nil {
		return err
	}
	of := fmt.Sprintf("catalog of %d: ", services)
	const page = "/nacos/v1/ns/catalog/services?namespaceId=public&pageSize=20&pageNo="
	for _, q := range []question{
		{of + "first page", page + "1", ""},
		{of + "middle page", page + "2500", ""},
		{of + "hasIpCount", page + "2500&hasIpCount=true", ""},
		{of + "name with 9999", page + "1&serviceNameParam=9999", ""},
		{of + "v2", "/nacos/v2/ns/service/list?pageNo=2500&pageSize=20", ""},
		{of + "v3", "/nacos/v3/admin/ns/service/list?pageNo=2500&pageSize=20", ""},
	} {
		there := func(body []byte) bool { return strings.Contains(string(body), "catalog-") }
		if err := b.beside(ctx, registry, address, q, there); err != nil {
			return err
		}
	}
	return b.growingCatalog(ctx, registry, address, get(page+"2500"))
}

// growingCatalog measures pages while each finds a service more than the one
// before.
func (b *bench) growingCatalog(ctx context.Context, registry *process, address string, page []byte) error {
	requests := make([][]byte, 2*beatInstances)
	for i := range requests {
		requests[i] = page
		if i/connections%2 == 0 { // each connection does both in turn
			requests[i] = []byte("POST /nacos/v1/ns/instance?" + member(fmt.Sprintf("grown-%06d", i), "10.3.0.1", 1).Encode() +
				" HTTP/1.1\r\n" + beatHeaders + "Content-Length: 0\r\n\r\n")
		}
	}
	answered := func(body []byte) bool { return string(body) == "ok" || strings.Contains(string(body), "catalog-") }
	cost, err := perRequest(ctx, registry, address, requests, answered)
	if err != nil {
		return err
	}
	report(fmt.Sprintf("us of CPU, catalog of %d: a service comes, then a page", services), fmt.Sprintf("%.0f", 2*float64(cost)/1e3), "")
	return nil
}
