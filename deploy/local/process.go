package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

const (
	mostProcesses = 32
	stopWithin    = 10 * time.Second
	appTimeout    = 5 * time.Second
)

// family starts processes and waits for every one of them.
type family struct {
	folder  string // their output goes here
	waiting *run.Set
}

// process is a child. It dies with us, even when we are killed.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string        // path
	ended chan struct{} // closed when it has ended and was waited for
}

// start starts a program with the settings NAME=value, and none of ours.
func (f family) start(name string, settings []string, command ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(f.folder, name+".log"), ended: make(chan struct{})}
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(strangers(), settings...)
	p.cmd.Stdout, p.cmd.Stderr = output, output
	// A group of its own, so that Ctrl-C reaches us alone and we stop them in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	if !f.waiting.Go(func() { defer close(p.ended); _ = p.cmd.Wait() }) {
		_ = p.cmd.Process.Kill()
		return nil, fmt.Errorf("cannot start %s: there are %d processes already", name, mostProcesses)
	}
	return p, nil
}

// strangers gives the environment without what means Sidebeat.
func strangers() (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SIDEBEAT_") {
			env = append(env, e)
		}
	}
	return env
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// alive tells whether it still runs; nil does not.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends it as a crash would, and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks it to end, and waits for it; one that does not is killed.
func (p *process) stop() {
	if !p.alive() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.kill()
	}
}

// lastWords gives the end of its output, for a message.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}
