package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sidebeat/sidebeat/admin"
	"github.com/sidebeat/sidebeat/run"
)

const (
	startWithin = 20 * time.Second
	lookEvery   = 100 * time.Millisecond
)

// quickDeath are the periods of the demo, in ms: a beat each second, unhealthy
// after 3 s of silence, deleted after 5 s.
const quickDeath = "preserved.heart.beat.interval=1000,preserved.heart.beat.timeout=3000,preserved.ip.delete.timeout=5000"

// pace is how fast the site lives, and where.
type pace struct {
	// The ports that are taken if they are free; 0: any.
	port, adminPort, agentPort uint16

	probe    string // SIDEBEAT_PROBE_INTERVAL
	metadata string // SIDEBEAT_METADATA of the agent
}

// site is everything that runs on this machine.
type site struct {
	pace
	family
	bin, folder string
	client      client

	admin, agentAdmin uint16
	orders, ledger    app
	language          string

	registry, agent, ordersRuns, ledgerRuns *process // nil: never started
}

func (s *site) choosePorts(ctx context.Context) error {
	at, err := freePort(ctx, s.port)
	if err != nil {
		return err
	}
	if at != s.port && s.port != 0 {
		fmt.Printf("port %d is in use on this machine (a Nacos?), so the registry takes port %d\n", s.port, at)
	}
	s.client = newClient(net.JoinHostPort("127.0.0.1", port(at)))
	if s.admin, err = freePort(ctx, s.adminPort); err != nil {
		return err
	}
	if s.agentAdmin, err = freePort(ctx, s.agentPort); err != nil {
		return err
	}
	s.orders, s.ledger, s.language, err = newApps(ctx, s.folder)
	return err
}

// startRegistry starts the registry and waits until it serves.
func (s *site) startRegistry(ctx context.Context) (err error) {
	s.registry, err = s.start("registry", []string{
		"SIDEBEAT_LISTEN=" + s.client.address,
		"SIDEBEAT_ADMIN=127.0.0.1:" + port(s.admin),
		"SIDEBEAT_DATA=" + filepath.Join(s.folder, "data"),
		"SIDEBEAT_PROBE_INTERVAL=" + s.probe,
		"SIDEBEAT_PROBE_TIMEOUT=800ms",
		"SIDEBEAT_PROBE_ALLOW_LOOPBACK=true",
		"SIDEBEAT_LOG_FORMAT=text",
	}, filepath.Join(s.bin, "sidebeat-registry"))
	if err != nil {
		return err
	}
	return s.await(ctx, startWithin, "the registry serves", s.registry, func() bool { return s.serves(ctx) })
}

// serves tells whether our registry does, and not another one that was quicker
// to take the port.
func (s *site) serves(ctx context.Context) bool {
	status, body, err := admin.Get(ctx, "127.0.0.1:"+port(s.admin), "/status")
	return err == nil && status == 200 && bytes.Contains(body, []byte(s.folder)) && s.client.serves(ctx)
}

// startAgent starts the agent of the first app.
func (s *site) startAgent() (err error) {
	s.agent, err = s.start("agent", []string{
		"SIDEBEAT_NACOS=http://" + s.client.address,
		"SIDEBEAT_SERVICE=" + s.orders.service,
		"SIDEBEAT_ADDRESS=127.0.0.1:" + port(s.orders.port),
		"SIDEBEAT_ALLOW_LOOPBACK=true",
		"SIDEBEAT_CHECK=http://:" + port(s.orders.port) + "/health",
		"SIDEBEAT_CHECK_INTERVAL=1s",
		"SIDEBEAT_CHECK_TIMEOUT=500ms",
		"SIDEBEAT_METADATA=" + s.metadata,
		"SIDEBEAT_DRAIN=1s",
		"SIDEBEAT_ADMIN=127.0.0.1:" + port(s.agentAdmin),
		"SIDEBEAT_LOG_FORMAT=text",
	}, filepath.Join(s.bin, "sidebeat-agent"))
	return err
}

func (s *site) startOrders() (err error) {
	s.ordersRuns, err = s.start(s.orders.service, nil, s.orders.command...)
	return err
}

func (s *site) startLedger() (err error) {
	s.ledgerRuns, err = s.start(s.ledger.service, nil, s.ledger.command...)
	return err
}

// await waits until something is so; it gives up when the time is over, the
// context ends, or the process it depends on has ended.
func (s *site) await(ctx context.Context, most time.Duration, what string, needs *process, so func() bool) error {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for !so() {
		if !needs.alive() {
			return fmt.Errorf("cannot see that %s: the process %q has ended; its last words:\n%s", what, needs.name, needs.lastWords())
		}
		if err := run.Wait(limited, lookEvery); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("cannot see that %s within %v", what, most))
		}
	}
	return nil
}

// leave ends all children in order, the registry last, and removes the folder.
func (s *site) leave() error {
	for _, p := range []*process{s.agent, s.ordersRuns, s.ledgerRuns, s.registry} {
		p.stop()
	}
	s.waiting.Wait()
	return os.RemoveAll(s.folder)
}
