// Local shows the whole product on one machine: `run` keeps it going until
// Ctrl-C, `demo` plays the life of an app and of a persistent instance by
// itself. `make run` and `make demo` call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

func main() {
	// When make above us is killed we end too, and our children with us.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
	ctx, stop := run.UntilSignal(context.Background())
	defer stop()
	err := command(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "run":
		return onSite(ctx, pace{port: 8848, adminPort: 9182, agentPort: 9180, probe: "5s"}, runForever)
	case len(args) == 1 && args[0] == "demo":
		return onSite(ctx, pace{probe: "1s", metadata: quickDeath}, demo)
	case len(args) == 2 && args[0] == "app-http":
		return serveHTTP(ctx, args[1])
	case len(args) == 2 && args[0] == "app-tcp":
		return serveTCP(ctx, args[1])
	}
	return fmt.Errorf("cannot understand %q: give run or demo", strings.Join(args, " "))
}

// onSite builds the programs, makes a folder, has them played with, ends every
// child and removes the folder.
func onSite(ctx context.Context, p pace, play func(context.Context, *site) error) (err error) {
	bin, err := build(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sidebeat-local-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the data: %w", err)
	}
	s := &site{pace: p, bin: bin, folder: folder, family: family{folder, run.NewSet(mostProcesses)}}
	defer func() { err = errors.Join(err, s.leave()) }()
	if err := s.choosePorts(ctx); err != nil {
		return err
	}
	return play(ctx, s)
}

// build gives the folder with the three programs, built anew.
func build(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the project: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	fmt.Println("building the three programs into bin/ ...")
	c := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version=local", "-o", "bin/", "./cmd/...")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the programs: %w\n%s", err, out)
	}
	return filepath.Join(root, "bin"), nil
}
