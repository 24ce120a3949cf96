package compat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// client is a program that uses one of the real clients. It is told what to do
// by lines of words on its standard input:
//
//	register SERVICE IP PORT METADATA
//	deregister SERVICE IP PORT
//	subscribe SERVICE
//
// and says what happens by lines of JSON: ready, done or failed with the word,
// and hosts each time its client learns of a change.
type client struct {
	command *exec.Cmd
	in      io.WriteCloser
	errors  *tail

	mu      sync.Mutex
	changed *sync.Cond
	events  []event
	hosts   map[string][]host
	ended   bool
}

type event struct {
	Event, Word, Why, Service string
	Hosts                     []host
}

type host struct {
	IP       string
	Port     int
	Healthy  bool
	Metadata map[string]string
}

// kind is how a language's client is made ready and started.
type kind struct {
	name string
	// install makes ready what start needs, once for each version, in a folder
	// that the next run finds again.
	install func(t *testing.T, folder string)
	// start gives the program and its arguments but for those that all take:
	// server, namespace, user, password.
	start func(folder string) []string
	// made are the files that decide what install does.
	made []string
	// hears tells that the client listens for pushes.
	hears bool
	// healthyOnly tells that it shows its user no unhealthy instance.
	healthyOnly bool
	// login is the path by which it logs in; empty: it sends its user's name and
	// password with every request.
	login string
	// forgets tells that its subscriptions end at the first poll that fails.
	forgets bool
}

func (k kind) launch(t *testing.T, folder, server, namespace, password string) *client {
	t.Helper()
	words := append(k.start(folder), server, namespace, user, password)
	c := &client{command: exec.CommandContext(t.Context(), words[0], words[1:]...), hosts: map[string][]host{}, errors: &tail{}}
	c.changed = sync.NewCond(&c.mu)
	c.command.Stderr = c.errors
	c.command.Dir = t.TempDir() // clients keep files in their working folder
	c.command.Env = append(os.Environ(), "HOME="+c.command.Dir)
	in, err := c.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { defer close(read); c.read(out) }()
	t.Cleanup(func() {
		c.kill()
		<-read
		_ = c.command.Wait() // killed
		if t.Failed() {
			t.Logf("the client said at last: %s", c.errors)
		}
	})
	c.await(t, time.Minute, "ready", func() bool {
		return slices.ContainsFunc(c.events, func(e event) bool { return e.Event == "ready" })
	})
	return c
}

func (c *client) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(c.errors, lines.Text()) // a client that prints
			continue
		}
		c.mu.Lock()
		if c.events = append(c.events, e); e.Event == "hosts" {
			c.hosts[e.Service] = e.Hosts
		}
		c.mu.Unlock()
		c.changed.Broadcast()
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.changed.Broadcast()
}

// await waits until holds, which may look at what the client said.
func (c *client) await(t *testing.T, within time.Duration, what string, holds func() bool) (took time.Duration) {
	t.Helper()
	began := time.Now()
	deadline := time.AfterFunc(within, c.changed.Broadcast)
	defer deadline.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !holds() {
		if c.ended || time.Since(began) >= within {
			t.Fatalf("not seen in %v: %s; seen last: %+v", within, what, c.hosts)
		}
		c.changed.Wait()
	}
	return time.Since(began)
}

// do has the client carry out a line of words and waits until it did.
func (c *client) do(t *testing.T, words ...string) {
	t.Helper()
	c.mu.Lock()
	before := len(c.events)
	c.mu.Unlock()
	if _, err := fmt.Fprintln(c.in, strings.Join(words, " ")); err != nil {
		t.Fatal(err)
	}
	c.await(t, time.Minute, strings.Join(words, " "), func() bool {
		return slices.ContainsFunc(c.events[before:], func(e event) bool {
			if e.Event == "failed" {
				t.Errorf("%s: %s", words, e.Why)
			}
			return e.Word == words[0]
		})
	})
}

// sees waits until the client knows the service as wanted.
func (c *client) sees(t *testing.T, within time.Duration, service, what string, holds func([]host) bool) time.Duration {
	t.Helper()
	return c.await(t, within, what, func() bool { return holds(c.hosts[service]) })
}

// kill ends the client without a word to the registry.
func (c *client) kill() { _ = c.command.Process.Kill() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const mostTail = 4000

func (s *tail) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, b...)
	s.text = s.text[max(0, len(s.text)-mostTail):]
	return len(b), nil
}

func (s *tail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// clientsFolder is where the sources of the clients are.
func clientsFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("clients")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
