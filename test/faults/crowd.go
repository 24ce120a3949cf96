package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

const (
	instanceWriters = 4
	portsEach       = 400
	serviceName     = "kept-metadata"
	switchName      = "defaultCacheMillis"
	switchDefault   = "3000"
	beatingService  = "beating"
)

func keptService(w int) string        { return fmt.Sprintf("kept-%d", w) }
func instanceName(w, port int) string { return fmt.Sprintf("instance %s:%d", keptService(w), port) }
func namespaceName(id string) string  { return "namespace " + id }

// thereFromTheStart tells what a new registry has.
func thereFromTheStart(name string) bool {
	return name == switchName || name == serviceName || name == namespaceName("")
}

func loopback(host int) string { return fmt.Sprintf("127.0.1.%d", 1+host) }

// crowd is who speaks to the registry during a fault.
type crowd struct {
	beaters int           // ephemeral instances that beat
	period  time.Duration // of their beats
	pause   time.Duration // of each writer between two writes
	silent  bool          // nobody writes
	big     bool          // instances come and stay, each with 900 characters of metadata
}

// load lets the crowd speak until stop is called, which waits for their last
// answers.
func (s *scene) load(ctx context.Context, c crowd) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	parts := []run.Part{s.watch}
	for i := range c.beaters {
		parts = append(parts, s.beater(i, c.period))
	}
	if !c.silent {
		for w := range instanceWriters {
			parts = append(parts, s.writer(c.pause, s.instances(w, c.big)))
		}
		parts = append(parts, s.writer(c.pause, s.metadata()), s.writer(c.pause, s.setSwitch), s.writer(c.pause, s.namespaces))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run.All(ctx, parts...)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// writer makes one write after the other; step is the number of the write.
func (s *scene) writer(pause time.Duration, write func(step int) (acknowledged bool)) run.Part {
	return func(ctx context.Context) error {
		for step := 0; ctx.Err() == nil; step++ {
			s.gate.RLock()
			well := write(step)
			s.gate.RUnlock()
			wait := pause
			if !well {
				wait = max(wait, 5*time.Millisecond)
			}
			if wait > 0 {
				run.Wait(ctx, wait)
			}
		}
		return ctx.Err()
	}
}

// instances registers persistent instances, changes them and takes them out.
func (s *scene) instances(w int, big bool) func(step int) bool {
	return func(step int) bool {
		port := 1 + step%portsEach
		values := url.Values{"serviceName": {keptService(w)}, "ip": {loopback(w)}, "ephemeral": {"false"}}
		method, value := "POST", fmt.Sprintf("weight %d", 1+step%97)
		switch {
		case big:
			port = 1 + step
			values.Set("metadata", `{"padding":"`+strings.Repeat("x", 900)+`"}`)
		case step/portsEach%3 == 2:
			method, value = "DELETE", ""
		}
		values.Set("port", strconv.Itoa(port))
		values.Set("weight", strconv.Itoa(1+step%97))
		well := s.client.write(method, "/v1/ns/instance", values, "ok")
		s.tried("instances", instanceName(w, port), value, well)
		return well
	}
}

// metadata changes the metadata of a service, which holds an instance so that
// it is not cleaned up.
func (s *scene) metadata() func(step int) bool {
	there := false
	return func(int) bool {
		if !there {
			there = s.client.write("POST", "/v1/ns/instance", url.Values{"serviceName": {serviceName}, "ip": {loopback(9)}, "port": {"9"}, "ephemeral": {"false"}}, "ok")
			return there
		}
		value := s.unlike()
		well := s.client.write("PUT", "/v1/ns/service", url.Values{"serviceName": {serviceName}, "protectThreshold": {"0"}, "metadata": {"n=" + value}}, "ok")
		s.tried("metadata of a service", serviceName, value, well)
		return well
	}
}

func (s *scene) setSwitch(int) bool {
	value := s.unlike()
	well := s.client.write("PUT", "/v1/ns/operator/switches", url.Values{"entry": {switchName}, "value": {value}}, "ok")
	s.tried("switches", switchName, value, well)
	return well
}

// unlike gives a number that was not written before.
func (s *scene) unlike() string {
	return strconv.FormatUint(10000+s.written.Add(1), 10)
}

// namespaces makes some and takes them out.
func (s *scene) namespaces(step int) bool {
	id := fmt.Sprintf("ns-%d", step%20)
	if step/20%2 == 1 {
		well := s.client.write("DELETE", "/v1/console/namespaces", url.Values{"namespaceId": {id}}, "true")
		s.tried("namespaces", namespaceName(id), "", well)
		return well
	}
	value := fmt.Sprintf("n%s", s.unlike())
	well := s.client.write("POST", "/v1/console/namespaces", url.Values{"customNamespaceId": {id}, "namespaceName": {value}}, "true")
	s.tried("namespaces", namespaceName(id), value, well)
	return well
}

// beater beats for one ephemeral instance as clients of Nacos do, and registers
// it again when the registry does not know it.
func (s *scene) beater(i int, period time.Duration) run.Part {
	values := url.Values{"serviceName": {"DEFAULT_GROUP@@" + beatingService}, "ip": {loopback(50 + i)}, "port": {"80"}, "clusterName": {"DEFAULT"}}
	c := s.client.another()
	one := func(context.Context) {
		status, body := c.ask("PUT", "/v1/ns/instance/beat", values, patience)
		if status == "200" && strings.Contains(string(body), "20404") {
			s.answered(beat, "not known, registered again", true)
			status, _ = c.ask("POST", "/v1/ns/instance", values, patience)
		}
		s.answered(beat, status, status == "200")
	}
	return func(ctx context.Context) error {
		return run.Every(ctx, period*time.Duration(i%10)/10, period, one)
	}
}

// watch reads the list of those that beat and counts the healthy ones that are
// not healthy, or not there, in a later one.
func (s *scene) watch(ctx context.Context) error {
	c, before := s.client.another(), map[string]bool{}
	return run.Every(ctx, 0, 50*time.Millisecond, func(context.Context) {
		l, status := c.list(beatingService, patience)
		s.answered(read, status, status == "200")
		if status != "200" {
			return
		}
		now := map[string]bool{}
		for _, h := range l.Hosts {
			now[h.IP] = h.Healthy
		}
		s.compareHealth(before, now)
		before = now
	})
}

func (s *seen) compareHealth(before, now map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ip, healthy := range before {
		is, there := now[ip]
		if healthy && !there {
			s.missed++
		}
		if healthy && there && !is {
			s.flips++
		}
	}
}

// allBeating waits until so many instances are listed as healthy.
func (s *scene) allBeating(ctx context.Context, n int) error {
	healthy := 0
	err := s.until(ctx, 20*time.Second, "all who beat are healthy", func() bool {
		l, _ := s.client.list(beatingService, patience)
		healthy = 0
		for _, h := range l.Hosts {
			if h.Healthy {
				healthy++
			}
		}
		return healthy == n
	})
	if err != nil {
		return fmt.Errorf("%d of %d: %w", healthy, n, err)
	}
	return nil
}
