package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/run"
)

const (
	agents       = 1000
	agentBeat    = 5 * time.Second
	beatPatience = 3 * time.Second // an agent tries again after that
	garbageRound = 2 * agentBeat
	agentsHome   = "127.0.0.2"
)

// garbage measures what 1000 agents that beat every 5 s notice of one client
// that sends garbage on 1000 connections as fast as it can: how many beats
// fail, how many instances flip, and how much longer an answer takes than in
// rounds without it. That client is a process of the lowest priority, because
// all share two processors here; its address is first another one, then that
// of the agents.
func (b *bench) garbage(ctx context.Context) error {
	registry, address, admin, err := b.watchedRegistry(ctx)
	if err != nil {
		return err
	}
	defer registry.stop(15)
	all := make([]*beater, agents)
	for i := range all {
		all[i] = &beater{address: address, request: []byte(loopBeat(i))}
		if err := register(address, loopService(i), agentsHome, 10_000+i, true); err != nil {
			return err
		}
	}
	for _, from := range []string{"127.0.0.3", agentsHome} {
		if err := b.compareGarbage(ctx, all, address, admin, from); err != nil {
			return err
		}
	}
	return nil
}

func loopService(i int) string { return "loop-" + strconv.Itoa(i/10) }

func loopBeat(i int) string {
	return fmt.Sprintf("PUT /nacos/v1/ns/instance/beat?serviceName=DEFAULT_GROUP%%40%%40%s&ip=%s&port=%d HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n",
		loopService(i), agentsHome, 10_000+i, beatHeaders)
}

// watchedRegistry starts a registry with its metrics, and with as many
// processors as there are.
func (b *bench) watchedRegistry(ctx context.Context) (p *process, address, admin string, err error) {
	if address, err = freeAddress(); err != nil {
		return nil, "", "", err
	}
	if admin, err = freeAddress(); err != nil {
		return nil, "", "", err
	}
	p, err = spawn(ctx, b.bin+"/sidebeat-registry", nil, "GOMAXPROCS=",
		"SIDEBEAT_LISTEN="+address, "SIDEBEAT_DATA="+b.temp+"/garbage", "SIDEBEAT_PROBE=false", "SIDEBEAT_ADMIN="+admin, "SIDEBEAT_LOG_LEVEL=error")
	if err != nil {
		return nil, "", "", err
	}
	for ctx.Err() == nil {
		if status, _, err := fasthttp.GetTimeout(nil, "http://"+admin+"/readyz", time.Second); err == nil && status == 200 {
			return p, address, admin, nil
		}
		_ = run.Wait(ctx, 5*time.Millisecond) // the loop asks the context
	}
	return nil, "", "", ctx.Err()
}

func (b *bench) compareGarbage(ctx context.Context, all []*beater, address, admin, from string) error {
	var ratios, idle, busy []float64
	var failed, beats int
	before, err := gauge(admin, "sidebeat_registry_expired_instances_total")
	if err != nil {
		return err
	}
	sick := 0
	for range b.rounds {
		calm, err := beatAll(ctx, all, admin, &sick)
		if err != nil {
			return err
		}
		hostile, err := self(ctx, "hostile", address, from)
		if err != nil {
			return err
		}
		rough, err := beatAll(ctx, all, admin, &sick)
		hostile.stop(9)
		if err != nil {
			return err
		}
		failed, beats = failed+calm.failed+rough.failed, beats+len(calm.took)+len(rough.took)
		idle, busy = append(idle, float64(median(calm.took))), append(busy, float64(median(rough.took)))
		ratios = append(ratios, busy[len(busy)-1]/idle[len(idle)-1])
	}
	after, err := gauge(admin, "sidebeat_registry_expired_instances_total")
	if err != nil {
		return err
	}
	what := "garbage on 1000 connections from another address: "
	if from == agentsHome {
		what = "garbage on 1000 connections from the agents' address: "
	}
	report(what+"median beat, of idle", spread(ratios), "aim 3.00")
	report(what+"median beat, idle and under it", fmt.Sprintf("%.2f, %.2f ms", median(idle)/1e6, median(busy)/1e6), "")
	report(what+"beats failed, seen unhealthy, expired", fmt.Sprintf("%d of %d, %d, %d", failed, beats, sick, after-before), "aim 0, 0, 0")
	return nil
}

// beater is an agent with its connection.
type beater struct {
	address string
	request []byte
	conn    net.Conn
	in      *bufio.Reader
	buffer  []byte
}

// beatTimes is what the beaters saw.
type beatTimes struct {
	mu     sync.Mutex
	took   []time.Duration
	failed int
}

// beatAll has all beat for a round, each at its own moment of the period, and
// notes the most instances that were unhealthy at once.
func beatAll(ctx context.Context, all []*beater, admin string, sick *int) (*beatTimes, error) {
	var seen beatTimes
	var beating sync.WaitGroup
	began := time.Now()
	for i, one := range all {
		beating.Go(func() {
			for at := agentBeat * time.Duration(i) / time.Duration(len(all)); at < garbageRound; at += agentBeat {
				if run.Wait(ctx, time.Until(began.Add(at))) != nil {
					return
				}
				took, err := one.beat()
				seen.mu.Lock()
				seen.took = append(seen.took, took)
				if err != nil {
					seen.failed++
				}
				seen.mu.Unlock()
			}
		})
	}
	for time.Since(began) < garbageRound {
		now, err := gauge(admin, "sidebeat_registry_unhealthy_instances")
		if err == nil {
			*sick = max(*sick, now)
		}
		if err := run.Wait(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	beating.Wait()
	return &seen, nil
}

// beat sends one beat; a connection that the registry closed while it was
// silent is opened anew, as every client does.
func (b *beater) beat() (time.Duration, error) {
	began := time.Now()
	err := b.once()
	if err != nil {
		if b.conn != nil {
			b.conn.Close()
		}
		b.conn = nil
		if time.Since(began) < beatPatience {
			err = b.once()
		}
	}
	return time.Since(began), err
}

func (b *beater) once() (err error) {
	if b.conn == nil {
		dialer := net.Dialer{Timeout: beatPatience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(agentsHome)}}
		if b.conn, err = dialer.Dial("tcp", b.address); err != nil {
			return err
		}
		b.in = bufio.NewReader(b.conn)
	}
	b.conn.SetDeadline(time.Now().Add(beatPatience))
	if _, err := b.conn.Write(b.request); err != nil {
		return err
	}
	b.buffer, err = readAnswer(b.in, b.buffer, isBeatAnswer)
	return err
}

// gauge reads one whole figure of the metrics.
func gauge(admin, name string) (int, error) {
	_, body, err := fasthttp.GetTimeout(nil, "http://"+admin+"/metrics", 10*time.Second)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindSubmatch(body)
	if found == nil {
		return 0, errors.New("no metric " + name)
	}
	return strconv.Atoi(string(found[1]))
}
