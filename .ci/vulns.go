//go:build ignore

// Reads the JSON of govulncheck, prints one line for each vulnerability that
// our code reaches, and fails when one is in a module other than the standard
// library.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

type message struct {
	Finding *struct {
		OSV          string `json:"osv"`
		FixedVersion string `json:"fixed_version"`
		Trace        []struct {
			Module, Version, Package, Function string
		} `json:"trace"`
	} `json:"finding"`
	Config *struct {
		GoVersion string `json:"go_version"`
		DB        string `json:"db"`
	} `json:"config"`
}

func main() {
	if err := report(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(in io.Reader, out io.Writer) error {
	goes, modules, scanned := map[string]string{}, map[string]string{}, false
	decoder := json.NewDecoder(in)
	for {
		var m message
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("cannot read what govulncheck says: %w", err)
		}
		scanned = scanned || m.Config != nil
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" {
			continue // a module that is required or imported, but not reached
		}
		at := m.Finding.Trace[0]
		line := fmt.Sprintf("  %s in %s@%s: %s.%s, mended in %s", m.Finding.OSV, at.Module, at.Version, at.Package, at.Function, m.Finding.FixedVersion)
		if at.Module == "stdlib" {
			goes[m.Finding.OSV] = line
		} else {
			modules[m.Finding.OSV] = line
		}
	}
	if !scanned {
		return errors.New("govulncheck said nothing")
	}
	print(out, "in this machine's Go, not in releases, which are built with a newer one", goes)
	print(out, "in our modules", modules)
	if len(modules) > 0 {
		return fmt.Errorf("%d vulnerabilities in our modules", len(modules))
	}
	return nil
}

func print(out io.Writer, where string, lines map[string]string) {
	fmt.Fprintf(out, "%d reached %s\n", len(lines), where)
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintln(out, lines[id])
	}
}
