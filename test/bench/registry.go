package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

// freeAddress gives a loopback address that nobody listens on.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// registry starts the product's registry without a prober, waits until it
// serves and registers the instances of the beat benchmark.
func (b *bench) registry(ctx context.Context, data string) (*process, string, error) {
	p, address, _, err := b.startRegistry(ctx, data)
	if err != nil {
		return nil, "", err
	}
	for i := range beatInstances {
		service, ip := beatAddress(i)
		if err := register(address, service, ip, 8080, true); err != nil {
			return nil, "", err
		}
	}
	return p, address, nil
}

// startRegistry gives the time from exec to the first answer of a list.
func (b *bench) startRegistry(ctx context.Context, data string) (p *process, address string, took time.Duration, err error) {
	if address, err = freeAddress(); err != nil {
		return nil, "", 0, err
	}
	began := time.Now()
	p, err = spawn(ctx, b.bin+"/sidebeat-registry", nil,
		"SIDEBEAT_LISTEN="+address, "SIDEBEAT_DATA="+data, "SIDEBEAT_PROBE=false", "SIDEBEAT_ADMIN=off", "SIDEBEAT_LOG_LEVEL=error")
	if err != nil {
		return nil, "", 0, err
	}
	for {
		status, _, err := fasthttp.GetTimeout(nil, "http://"+address+"/nacos/v1/ns/instance/list?serviceName=persistent-7", time.Second)
		if err == nil && status == fasthttp.StatusOK {
			return p, address, time.Since(began), nil
		}
		if time.Since(began) > 30*time.Second {
			return nil, "", 0, fmt.Errorf("the registry does not serve after 30s: %v", err)
		}
		if err := run.Wait(ctx, 2*time.Millisecond); err != nil {
			return nil, "", 0, err
		}
	}
}

var poster = fasthttp.Client{MaxConnsPerHost: 1024}

func register(address, service, ip string, port int, ephemeral bool) error {
	q := url.Values{"serviceName": {service}, "ip": {ip}, "port": {fmt.Sprint(port)}, "ephemeral": {fmt.Sprint(ephemeral)}}
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod("POST")
	req.SetRequestURI("http://" + address + "/nacos/v1/ns/instance?" + q.Encode())
	if err := poster.DoTimeout(&req, &resp, 10*time.Second); err != nil {
		return err
	}
	if string(resp.Body()) != "ok" {
		return fmt.Errorf("a registration was answered %d %q", resp.StatusCode(), resp.Body())
	}
	return nil
}
