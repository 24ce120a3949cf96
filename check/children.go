package check

import (
	"os/exec"
	"sync"
)

// children are the processes whose exit code a question waits for. There is one
// set because a process has one set of children.
var children = family{own: make(map[int]bool), left: make(chan struct{}, 1)}

type family struct {
	mu   sync.Mutex
	own  map[int]bool
	left chan struct{} // rung when one of own was waited for
}

// start starts the command and notes its pid under one lock, so that whoever
// holds the lock sees no child of ours that is not noted.
func (f *family) start(command *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := command.Start(); err != nil {
		return err
	}
	f.own[command.Process.Pid] = true
	return nil
}

func (f *family) done(pid int) {
	f.mu.Lock()
	delete(f.own, pid)
	f.mu.Unlock()
	select {
	case f.left <- struct{}{}:
	default:
	}
}
