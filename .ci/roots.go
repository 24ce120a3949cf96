//go:build ignore

// Prints the certificates of public authorities as PEM, from Mozilla's list as
// a Go module gives it, so that an image does not depend on the machine that
// built it. Those that are trusted under a condition are left out: a PEM file
// cannot hold one.
package main

import (
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			fmt.Fprintln(os.Stderr, "cannot print a certificate:", err)
			os.Exit(1)
		}
	}
}
