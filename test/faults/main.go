// Command faults starts the real registry, brings faults about for real, and
// prints what was acknowledged, what was lost and what clients saw. It ends with
// 1 when a promise is broken. A fault that this machine does not allow is named
// with the reason.
//
// It builds nothing: run it by `make faults`, which builds the binaries first.
// Everything stands on loopback addresses, and on disks and in groups of its own.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidebeat/sidebeat/run"
)

// apart is set in the child that has a mount namespace of its own.
const apart = "FAULTS_APART"

// sideBySide is how many faults are brought about at the same time: most of
// them wait most of the time.
const sideBySide = 4

// house is what all faults share.
type house struct {
	registry string // the binary
	temp     string // removed at the end
	short    bool
	times    int // as many moments and seeds
}

// fault is one that can be brought about.
type fault struct {
	name string
	do   func(context.Context, *scene) error
}

// all in the order of the table; those that take longest begin first.
var all = []fault{
	{"kill -9", killed},
	{"stopped (SIGSTOP)", stopped},
	{"damaged files", damaged},
	{"power cut", powerCut},
	{"disk full", diskFull},
	{"disk slow", diskSlow},
	{"disk turns read-only", diskTurnsReadOnly},
	{"disk read-only from the start", diskReadOnly},
	{"I/O errors of the log", logErrors},
	{"I/O errors of a snapshot", snapshotErrors},
	{"wall clock", wallClock},
	{"open files exhausted", filesExhausted},
	{"memory too small", memoryTooSmall},
}

func main() {
	var h house
	bin := flag.String("bin", "bin", "folder of the binaries")
	flag.BoolVar(&h.short, "short", false, "fewer moments and seeds, in about a minute")
	flag.IntVar(&h.times, "times", 1, "so many times as many moments and seeds")
	only := flag.String("only", "", "faults whose name holds this")
	flag.Parse()
	if code, moved := moveApart(); moved {
		os.Exit(code)
	}
	ctx, stop := run.UntilSignal(context.Background())
	defer stop()
	code, err := h.bringAbout(ctx, *bin, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	os.Exit(code)
}

// moveApart runs this program again where its mounts are its own. Without root
// it stays, and what needs a disk says so.
func moveApart() (code int, moved bool) {
	if os.Getenv(apart) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fmt.Fprintln(os.Stderr, "faults: cannot keep mounts to ourselves:", err)
			os.Exit(1)
		}
		return 0, false
	}
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Env = append(os.Environ(), apart+"=1")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM, Setpgid: true}
	ctx, stop := run.UntilSignal(context.Background())
	defer stop()
	if err := child.Start(); err != nil {
		return 0, false
	}
	defer context.AfterFunc(ctx, func() { child.Process.Signal(syscall.SIGTERM) })()
	child.Wait()
	if code := child.ProcessState.ExitCode(); code >= 0 {
		return code, true
	}
	return 1, true
}

func boolCode(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

func (h *house) bringAbout(ctx context.Context, bin, only string) (code int, err error) {
	if h.registry, err = filepath.Abs(bin + "/sidebeat-registry"); err != nil {
		return 1, err
	}
	if h.temp, err = os.MkdirTemp("", "sidebeat-faults-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(h.temp)
	var scenes []*scene
	for i, f := range all {
		if strings.Contains(f.name, only) {
			scenes = append(scenes, newScene(h, f, i))
		}
	}
	began := time.Now()
	var mu sync.Mutex
	run.Each(ctx, len(scenes), sideBySide, func(ctx context.Context, i int) {
		scenes[i].play(ctx)
		if ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(os.Stderr, "%s: %s, after %.0f s\n", scenes[i].name, scenes[i].outcome(), time.Since(began).Seconds())
	})
	if ctx.Err() != nil {
		return 130, nil
	}
	printTable(scenes)
	broken := slices.ContainsFunc(scenes, func(s *scene) bool { return len(s.broken) > 0 })
	return boolCode(broken), nil
}

func printTable(scenes []*scene) {
	fmt.Println("| fault | how it was made | what was acknowledged | what was lost | what clients saw | how it ended |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, s := range scenes {
		cells := []string{s.name, s.made, s.acked(), s.lostText(), s.sawText(), s.ended}
		if s.cannot != "" {
			cells = []string{s.name, "not made here: " + s.cannot, "", "", "", ""}
		}
		for i := range cells {
			cells[i] = cell(s.plain(cells[i]))
		}
		fmt.Println("| " + strings.Join(cells, " | ") + " |")
	}
	for _, s := range scenes {
		for _, b := range s.broken {
			fmt.Printf("\nBROKEN, %s: %s\n", s.name, b)
		}
	}
}

// cell keeps a text within its cell.
func cell(text string) string {
	text = strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
	return cmp.Or(strings.TrimSpace(text), "-")
}
