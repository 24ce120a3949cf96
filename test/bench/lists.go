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

// lists measures reads: the list of a service with 1000 instances, a change
// among them pushed to 1000 subscribers, coming and going, and a page of a
// catalog of 100 000 services.
func (b *bench) lists(ctx context.Context) error {
	registry, address, _, err := b.startRegistry(ctx, b.temp+"/lists")
	if err != nil {
		return err
	}
	defer registry.stop(15)
	if err := each(crowd, func(i int) error { return post(address, crowdMember(i, 1)) }); err != nil {
		return err
	}
	for _, part := range []func(context.Context, *process, string) error{b.compareLists, b.pushes, b.churn, b.catalog} {
		if err := part(ctx, registry, address); err != nil {
			return err
		}
	}
	return nil
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

// compareLists holds the list against a bare handler of the same bytes.
func (b *bench) compareLists(ctx context.Context, registry *process, address string) error {
	status, body, err := fasthttp.Get(nil, "http://"+address+listPath)
	if err != nil || status != fasthttp.StatusOK || strings.Count(string(body), `"ip"`) != crowd {
		return fmt.Errorf("the list was answered %d %.100q: %w", status, body, err)
	}
	bare, bareAddress, err := b.bare(ctx, body)
	if err != nil {
		return err
	}
	defer bare.stop(9)
	requests := [][]byte{get(listPath)}
	whole := func(got []byte) bool { return len(got) == len(body) }
	var ratios, ours []float64
	for range b.rounds + 1 { // the first one warms up
		theirs, err := perRequest(ctx, bare, bareAddress, requests, whole)
		if err != nil {
			return err
		}
		own, err := perRequest(ctx, registry, address, requests, whole)
		if err != nil {
			return err
		}
		ratios, ours = append(ratios, float64(own)/float64(theirs)), append(ours, float64(own))
	}
	what := fmt.Sprintf("list of %d instances (%d kB)", crowd, len(body)/1000)
	report("CPU, "+what+", of a bare handler's", spread(ratios[1:]), "aim 3.00 at most")
	report("us of CPU, "+what, fmt.Sprintf("%.0f", median(ours[1:])/1e3), "")
	return nil
}

// churn measures ephemeral instances that come and go.
func (b *bench) churn(ctx context.Context, registry *process, address string) error {
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
func (b *bench) catalog(ctx context.Context, registry *process, address string) error {
	fill := func(i int) error { return post(address, member(fmt.Sprintf("catalog-%06d", i), "10.3.0.1", 1)) }
	if err := each(services, fill); err != nil {
		return err
	}
	const page = "/nacos/v1/ns/catalog/services?namespaceId=public&pageSize=20&pageNo="
	for _, kind := range []struct{ name, path string }{
		{"the first page", page + "1"},
		{"a page in the middle", page + "2500"},
		{"those with an instance", page + "2500&hasIpCount=true"},
		{"those whose name has 9999", page + "1&serviceNameParam=9999"},
		{"v2, a page in the middle", "/nacos/v2/ns/service/list?pageNo=2500&pageSize=20"},
	} {
		requests := [][]byte{get(kind.path)}
		there := func(body []byte) bool { return strings.Contains(string(body), "catalog-") }
		var costs []float64
		for range b.rounds + 1 {
			cost, err := perRequest(ctx, registry, address, requests, there)
			if err != nil {
				return err
			}
			costs = append(costs, float64(cost))
		}
		report(fmt.Sprintf("us of CPU, catalog of %d: %s", services, kind.name), fmt.Sprintf("%.0f", median(costs[1:])/1e3), "")
	}
	return nil
}
