// Package deploy_test holds what can be asserted about the files of this
// folder without an engine, a cluster or a running systemd.
package deploy_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parse refuses unknown keys: the struct names all that we write.
func parse(t *testing.T, path string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(read(t, path)))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// manifests gives the documents of a file, of which the struct names only what
// is looked at.
func manifests(t *testing.T, path string) (all []object) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(read(t, path)))
	for {
		var one object
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, one)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return found
}

// settings gives the names of one program, or of all, from the example that is
// generated from their settings.
func settings(t *testing.T, program string) []string {
	t.Helper()
	var names []string
	section := ""
	for line := range strings.Lines(read(t, "../config.env.example")) {
		if m := regexp.MustCompile(`^## (sidebeat-\w+)`).FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if m := regexp.MustCompile(`^#?(SIDEBEAT_\w+)=`).FindStringSubmatch(line); m != nil && (program == "" || section == program) {
			names = append(names, m[1])
		}
	}
	if len(names) == 0 {
		t.Fatalf("config.env.example names no setting of %q", program)
	}
	return names
}

// Every setting that any file of this folder mentions exists.
func TestSettingsExist(t *testing.T) {
	known := settings(t, "")
	seen := 0
	for _, file := range append(files(t, "*/*.*"), "../Dockerfile") {
		if filepath.Ext(file) == ".go" {
			continue
		}
		for _, name := range regexp.MustCompile(`\bSIDEBEAT_[A-Z_]+[A-Z]\b`).FindAllString(read(t, file), -1) {
			seen++
			if !slices.Contains(known, name) {
				t.Errorf("%s: there is no setting %s", file, name)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d settings were seen", seen)
	}
}

// The Dockerfile's user is a number, as runAsNonRoot needs. The rest of it is
// read by BuildKit's parser and linter (.ci/oci.go).
func TestDockerfile(t *testing.T) {
	text := read(t, "../Dockerfile")
	targets := len(regexp.MustCompile(`(?m)^FROM base AS `).FindAllString(text, -1))
	users := len(regexp.MustCompile(`(?m)^FROM scratch AS base\n(?:.+\n)*USER 65532:65532$`).FindAllString(text, -1))
	entries := len(regexp.MustCompile(`(?m)^ENTRYPOINT \["/sidebeat-\w+"\]$`).FindAllString(text, -1))
	if targets != 3 || users != 1 || entries != 3 || strings.Contains(text, ":latest") {
		t.Errorf("got %d targets, %d users, %d entry points", targets, users, entries)
	}
}
