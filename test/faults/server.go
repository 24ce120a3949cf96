package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is one registry that was started.
type server struct {
	*exec.Cmd
	said  lines
	ended chan struct{} // closed when it has ended
}

// begin starts the registry on the scene's folder and does not wait for it.
// wrap is a program that ends by executing its arguments.
func (s *scene) begin(wrap ...string) (*server, error) {
	args := append(slices.Clone(wrap), s.registry)
	p := &server{Cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "SIDEBEAT_LISTEN=" + s.address, "SIDEBEAT_DATA=" + s.data,
		"SIDEBEAT_ADMIN=off", "SIDEBEAT_PROBE=false"}, s.env...)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.Stdout, p.Stderr = io.Discard, &p.said
	if err := p.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the registry: %w", err)
	}
	go func() {
		defer close(p.ended)
		p.Cmd.Wait()
	}()
	s.servers = append(s.servers, p)
	return p, nil
}

// start begins the registry and waits until it serves.
func (s *scene) start(ctx context.Context, wrap ...string) (*server, error) {
	p, err := s.begin(wrap...)
	if err != nil {
		return nil, err
	}
	return p, s.serves(ctx, p)
}

// serves waits until the registry answers.
func (s *scene) serves(ctx context.Context, p *server) error {
	err := s.until(ctx, 20*time.Second, "the registry serves", func() bool { return p.over() || s.client.ready() })
	if err == nil && p.over() {
		err = fmt.Errorf("the registry did not start: %s", p.lastWords())
	}
	return err
}

// over tells whether the process has ended.
func (p *server) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// awaitEnd waits until the process has ended by itself.
func (p *server) awaitEnd(longest time.Duration) error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(longest):
		return fmt.Errorf("the registry does not end within %v", longest)
	}
}

func (p *server) kill() {
	p.Process.Signal(syscall.SIGCONT)
	p.Process.Kill()
	<-p.ended
}

// stop ends the registry in order.
func (p *server) stop() error {
	p.Process.Signal(syscall.SIGTERM)
	if err := p.awaitEnd(20 * time.Second); err != nil {
		return err
	}
	if code := p.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the registry ended with %d: %s", code, p.lastWords())
	}
	return nil
}

// end says how the process ended: its exit code, or the signal, and what it
// said last.
func (p *server) end() string {
	status, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	how := fmt.Sprintf("exit %d", p.ProcessState.ExitCode())
	if status.Signaled() {
		how = status.Signal().String()
	}
	return how + ", last line: " + p.lastWords()
}

// trouble gives the first line that no registry may ever write.
func (p *server) trouble() string {
	for _, line := range p.said.all() {
		for _, word := range []string{"panic:", "fatal error:", "DATA RACE", "SIGBUS", `"level":"panic"`, `"level":"fatal"`} {
			if strings.Contains(line, word) {
				return line
			}
		}
	}
	return ""
}

// lastWords gives the last line in short: of a line of the log its words.
func (p *server) lastWords() string {
	said := p.said.all()
	if len(said) == 0 {
		return "(no word)"
	}
	return words(said[len(said)-1])
}

func words(line string) string {
	var entry struct{ Level, Msg, Cause, State string }
	if json.Unmarshal([]byte(line), &entry) != nil {
		return line
	}
	return strings.TrimRight(fmt.Sprintf("%s (%s)", entry.Msg, strings.Trim(entry.Cause+", "+entry.State, ", ")), " ()")
}

func (p *server) tail(n int) string {
	said := p.said.all()
	return strings.Join(said[max(len(said)-n, 0):], "\n")
}

// says tells whether a line holds the text.
func (p *server) says(text string) bool {
	return slices.ContainsFunc(p.said.all(), func(line string) bool { return strings.Contains(line, text) })
}

// lines keeps what a process writes.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() > 16<<20 {
		return 0, errors.New("it says too much")
	}
	return l.text.Write(b)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.FieldsFunc(l.text.String(), func(r rune) bool { return r == '\n' })
}
