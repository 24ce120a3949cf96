package main

import (
	"fmt"
	"os"
	"syscall"
)

func sig(n int) syscall.Signal { return syscall.Signal(n) }

// child plays one of the roles of a measurement.
func child(role string, args []string) int {
	switch role {
	case "bare":
		return bareHandler(args)
	case "memory":
		return memoryChild(args)
	case "targets":
		return targets()
	case "app":
		return app()
	case "hostile":
		return hostile(args)
	}
	fmt.Fprintln(os.Stderr, "unknown role", role)
	return 2
}
