//go:build ignore

// Compares an SBOM with what programs say they were built from: sbom.go SBOM
// PROGRAM... fails when either names a module that the other does not.
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	for _, program := range os.Args[2:] {
		if err := compare(os.Args[1], program); err != nil {
			fmt.Fprintln(os.Stderr, "cannot trust the SBOM:", err)
			os.Exit(1)
		}
	}
}

func compare(sbom, program string) error {
	listed, err := components(sbom)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	linked := []string{"std " + info.GoVersion}
	for _, m := range info.Deps {
		linked = append(linked, m.Path+" "+m.Version)
	}
	slices.Sort(linked)
	if !slices.Equal(listed, linked) {
		return fmt.Errorf("%s lists\n%s\n%s was built from\n%s", sbom, strings.Join(listed, "\n"), program, strings.Join(linked, "\n"))
	}
	fmt.Printf("%s: %d modules, as %s\n", filepath.Base(program), len(linked), filepath.Base(sbom))
	return nil
}

// components gives "path version" of each, sorted.
func components(sbom string) ([]string, error) {
	file, err := os.Open(sbom)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return nil, err
	}
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.Components == nil || bom.Metadata == nil || bom.Metadata.Component == nil {
		return nil, fmt.Errorf("%s is no CycloneDX 1.6 with components", sbom)
	}
	var all []string
	for _, c := range *bom.Components {
		all = append(all, c.Name+" "+c.Version)
	}
	slices.Sort(all)
	return all, nil
}
