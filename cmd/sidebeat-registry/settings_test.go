package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/agent"
	"github.com/sidebeat/sidebeat/prober"
	"github.com/sidebeat/sidebeat/setting"
)

var update = flag.Bool("update", false, "write config.env.example and docs/settings.md anew")

// programs are the settings of all three, which only this package can see.
var programs = []struct {
	name     string
	settings []any
}{
	{"sidebeat-agent", []any{&agent.Config{}, &setting.Log{}}},
	{"sidebeat-prober", []any{&prober.Config{}, &setting.Log{}}},
	{"sidebeat-registry", []any{&Config{}}},
}

// same compares a generated file with what it should be, or writes it.
func same(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the settings say; if the change was wanted: make settings\n%s", path, diff)
	}
}

func TestSettingsExample(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# Every setting of every program with its default. Names such as SIDEBEAT_ADMIN come\n# again in each part: give each program a file with its own part. An empty value counts as unset;")
	fmt.Fprintln(&b, "# a duration needs a unit (500ms, 5s, 1m30s). Generated: make settings.")
	for _, p := range programs {
		fmt.Fprintf(&b, "\n## %s\n", p.name)
		for _, v := range setting.Variables(p.settings...) {
			fmt.Fprintf(&b, "\n# %s\n#%s=%s\n", v.Doc, v.Name, v.Default)
		}
	}
	same(t, "../../config.env.example", b.String())
}

func TestSettingsPage(t *testing.T) {
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace
	var b strings.Builder
	fmt.Fprintln(&b, "# Settings\n\nGenerated from the programs: `make settings`. All are environment variables; an empty value counts as unset. A duration needs a unit (`500ms`, `5s`, `1m30s`), a number is decimal, a truth value is `true` or `false`, a list is separated by commas. All that is wrong is said at once, and the program ends with 2. A set `SIDEBEAT_*` variable that is no setting is a warning.")
	for _, p := range programs {
		fmt.Fprintf(&b, "\n## %s\n\n| variable | meaning | default |\n|---|---|---|\n", p.name)
		for _, v := range setting.Variables(p.settings...) {
			standard := ""
			if v.Default != "" {
				standard = "`" + v.Default + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Name, cell(v.Doc), standard)
		}
	}
	same(t, "../../docs/settings.md", b.String())
}

// Kubernetes puts names like these into the pods of a namespace that has a
// Service named sidebeat: one of ours that looks so would be overwritten.
func TestSettingsAreNoServiceLinks(t *testing.T) {
	link := regexp.MustCompile(`_PORT($|_)|_SERVICE_(HOST|PORT)`)
	for _, p := range programs {
		for _, v := range setting.Variables(p.settings...) {
			if link.MatchString(v.Name) {
				t.Errorf("%s: %s looks like a service link", p.name, v.Name)
			}
		}
	}
}

func TestSettingsAreDescribed(t *testing.T) {
	for _, p := range programs {
		seen := map[string]bool{}
		for _, v := range setting.Variables(p.settings...) {
			if v.Doc == "" || strings.Contains(v.Doc, "\n") || seen[v.Name] {
				t.Errorf("%s: %s is described by %q, seen twice: %v", p.name, v.Name, v.Doc, seen[v.Name])
			}
			seen[v.Name] = true
		}
	}
}

// The names and defaults that scripts rely on.
func TestSettingsPromised(t *testing.T) {
	f := func(program, name, standard string) {
		t.Helper()
		for _, p := range programs {
			for _, v := range setting.Variables(p.settings...) {
				if p.name == program && v.Name == name {
					if v.Default != standard {
						t.Errorf("%s: the default of %s is %q, want %q", program, name, v.Default, standard)
					}
					return
				}
			}
		}
		t.Errorf("%s has no %s", program, name)
	}
	for _, program := range []string{"sidebeat-agent", "sidebeat-prober"} {
		f(program, "SIDEBEAT_NACOS", "http://127.0.0.1:8848")
		f(program, "SIDEBEAT_USERNAME", "")
		f(program, "SIDEBEAT_PASSWORD", "")
		f(program, "SIDEBEAT_PASSWORD_FILE", "")
	}
	for name, standard := range map[string]string{
		"NAMESPACE": "public", "GROUP": "DEFAULT_GROUP", "CLUSTER": "DEFAULT", "SERVICE": "", "ADDRESS": "", "EPHEMERAL": "true",
		"CHECK": "", "CHECK_MODE": "all", "CHECK_INTERVAL": "2s", "CHECK_TIMEOUT": "1s", "CHECK_RISE": "1", "CHECK_FALL": "3",
		"START_GRACE": "0s", "ON_DOWN": "unhealthy", "DRAIN": "12s", "WEIGHT": "1", "METADATA": "", "APPS": "",
		"ALLOW_LOOPBACK": "false", "ADMIN": "127.0.0.1:9180", "LOG_LEVEL": "info", "LOG_FORMAT": "",
	} {
		f("sidebeat-agent", "SIDEBEAT_"+name, standard)
	}
	for _, program := range []string{"sidebeat-prober", "sidebeat-registry"} {
		for name, standard := range map[string]string{
			"PROBE_INTERVAL": "20s", "PROBE_TIMEOUT": "3.2s", "PROBE_RISE": "2", "PROBE_FALL": "3", "PROBE_INCLUDE": "",
			"PROBE_EXCLUDE": "", "PROBE_ALLOW_LOOPBACK": "false", "LOG_LEVEL": "info", "LOG_FORMAT": "",
		} {
			f(program, "SIDEBEAT_"+name, standard)
		}
	}
	f("sidebeat-prober", "SIDEBEAT_ADMIN", "127.0.0.1:9181")
	f("sidebeat-registry", "SIDEBEAT_ADMIN", "127.0.0.1:9182")
	f("sidebeat-registry", "SIDEBEAT_LISTEN", "127.0.0.1:8848")
	f("sidebeat-registry", "SIDEBEAT_DATA", "./sidebeat-data")
	f("sidebeat-registry", "SIDEBEAT_PROBE", "true")
}
