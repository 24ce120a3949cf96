// Command bench measures the product beside its peers, in one run, and prints
// ratios: machines differ and are noisy, ratios of interleaved rounds hold.
// Figures are CPU per operation of the process under test (user and system
// time as the kernel counts them), the median of the rounds.
//
// It builds nothing: run it by `make bench`, which builds the binaries first.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// bench is what every measurement needs.
type bench struct {
	bin    string // folder of the product's binaries
	temp   string // removed at the end
	rounds int
	agent  time.Duration // how long the agent runs before its footprint is read
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	var b bench
	flag.StringVar(&b.bin, "bin", "bin", "folder of the binaries")
	flag.IntVar(&b.rounds, "rounds", 7, "interleaved rounds of each comparison")
	flag.DurationVar(&b.agent, "agent", 5*time.Minute, "how long the agent runs before its footprint is read")
	only := flag.String("only", "", "one measurement: beats, lists, pushes, churn, catalog, garbage, memory, probes, start or agent")
	flag.Parse()
	ctx, stop := run.UntilSignal(context.Background())
	defer stop()
	if err := b.all(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) all(ctx context.Context, only string) (err error) {
	if b.temp, err = os.MkdirTemp("", "sidebeat-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.temp)
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return err
	}
	parts := []struct {
		name string
		do   func(context.Context) error
	}{
		{"beats", b.beats},
		{"lists", b.lists}, {"pushes", b.pushes}, {"churn", b.churn}, {"catalog", b.catalog},
		{"garbage", b.garbage}, {"memory", b.memory}, {"probes", b.probes}, {"start", b.start}, {"agent", b.footprint},
	}
	known := false
	for _, p := range parts {
		known = known || p.name == only
		if only != "" && only != p.name {
			continue
		}
		if err := p.do(ctx); err != nil {
			return fmt.Errorf("cannot measure %s: %w", p.name, err)
		}
	}
	if only != "" && !known {
		return fmt.Errorf("no measurement is called %q", only)
	}
	return nil
}

// report prints one figure: what, value, and the aim it is held against.
func report(what, value, aim string) {
	fmt.Printf("%-58s %22s   %s\n", what, value, aim)
}
