package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// memory registers many ephemeral instances in a process of their own.
func (b *bench) memory(ctx context.Context) error {
	for _, n := range []int{100_000, 1_000_000} {
		p, err := self(ctx, "memory", strconv.Itoa(n))
		if err != nil {
			return err
		}
		line, err := p.line(ctx)
		if err != nil {
			return err
		}
		p.Wait()
		report(fmt.Sprintf("bytes per instance, %d instances: heap, resident", n), line, "aim 250 in all")
	}
	return nil
}

// memoryChild fills a store as a fleet would, ten instances a service with
// metadata that repeats, and prints what it cost.
func memoryChild(args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	store := registry.NewStore()
	heapBefore, residentBefore := used()
	for i := range n {
		err := store.Register(context.Background(), registry.Instance{
			Key: registry.Key{
				Service: registry.Service{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: "service-" + strconv.Itoa(i/10)},
				Cluster: registry.DefaultCluster,
				IP:      fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, 1+i%250), Port: 8080, Ephemeral: true,
			},
			Weight: 1, Enabled: true, Healthy: true,
			Metadata: map[string]string{"version": "1." + strconv.Itoa(i%20)},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	heap, resident := used()
	fmt.Printf("%.0f, %.0f\n", float64(heap-heapBefore)/float64(n), float64(resident-residentBefore)/float64(n))
	runtime.KeepAlive(store)
	return 0
}

// used gives the live heap and the resident memory after a collection.
func used() (heap, resident uint64) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	return m.HeapAlloc, pages * uint64(os.Getpagesize())
}
