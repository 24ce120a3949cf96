package check

import (
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

// groupRoot is where control groups are mounted, of the second version or, a
// folder each for what is controlled, of the first.
const groupRoot = "/sys/fs/cgroup"

// group knows the files in which the control group of this process counts what
// it refused. Without any, as on other systems, nothing is ever counted.
type group struct {
	once     sync.Once
	counters []counter
}

// counter is a line "word number" of a file.
type counter struct{ file, word string }

// own is that of this process: a process has one.
var own group

// shortages counts how often a process of our control group could not be
// started because the group may have no more, or was killed because the group
// may have no more memory. When it grows while a program runs, the failure of
// that program says nothing about the app.
func (g *group) shortages() (total uint64) {
	g.once.Do(func() { g.counters = counters() })
	for _, c := range g.counters {
		n, _ := c.read()
		total += n
	}
	return total
}

// counters gives those of our group that can be read. Inside of a container the
// path of the group may be that of the machine, while its folder is the root.
func counters() (all []counter) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(part) != 3 {
			continue
		}
		for _, wanted := range wantedOf(part[1]) {
			for _, folder := range []string{part[2], ""} {
				c := counter{path.Join(groupRoot, part[1], folder, wanted.file), wanted.word}
				if _, ok := c.read(); ok {
					all = append(all, c)
					break
				}
			}
		}
	}
	return all
}

// wantedOf gives the files of a controller of the first version, or of "", the
// second (Linux, admin-guide/cgroup-v1/pids.rst, memory.rst, cgroup-v2.rst).
func wantedOf(controller string) []counter {
	switch controller {
	case "":
		return []counter{{"pids.events", "max"}, {"memory.events", "oom_kill"}}
	case "pids":
		return []counter{{"pids.events", "max"}}
	case "memory":
		return []counter{{"memory.oom_control", "oom_kill"}}
	}
	return nil
}

func (c counter) read() (n uint64, ok bool) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if number, found := strings.CutPrefix(line, c.word+" "); found {
			n, err = strconv.ParseUint(strings.TrimSpace(number), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
