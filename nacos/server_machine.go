package nacos

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// machine holds the figures of operator/metrics that are not the store's.
// What the machine does not tell is 0.
type machine struct {
	cpu    float64 // 0 to 1
	load   float64
	memory float64 // 0 to 1
}

var began = time.Now()

func measure() machine {
	return machine{cpu: usedCPU(), load: readLoad(), memory: usedMemory()}
}

func usedCPU() float64 {
	var u syscall.Rusage
	elapsed := time.Since(began)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil || elapsed <= 0 {
		return 0
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return min(1, used.Seconds()/elapsed.Seconds()/float64(runtime.NumCPU()))
}

func readLoad() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64) // 0 when it is none
	return load
}

func usedMemory() float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	total, available := memoryLine(string(text), "MemTotal:"), memoryLine(string(text), "MemAvailable:")
	if total <= 0 {
		return 0
	}
	return 1 - available/total
}

// memoryLine gives the figure, in kB, on the line that starts with name.
func memoryLine(text, name string) float64 {
	_, rest, _ := strings.Cut(text, name)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(words[0], 64) // 0 when it is none
	return n
}
