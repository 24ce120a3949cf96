//go:build ignore

// Loads Compose files as docker compose does: against the schema of the Compose
// specification, with references to services, volumes, networks and configs.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	code := 0
	for _, file := range os.Args[1:] {
		if err := load(file); err != nil {
			fmt.Fprintf(os.Stderr, "cannot load %s: %v\n", file, err)
			code = 1
		}
	}
	os.Exit(code)
}

func load(file string) error {
	options, err := cli.NewProjectOptions([]string{file})
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d services\n", file, len(project.Services))
	return nil
}
