package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// composition is a Compose file; Compose's own loader reads it too
// (.ci/deploy.sh).
type composition struct {
	Name     string
	Services map[string]service
	Volumes  map[string]any
	Networks map[string]any
	Configs  map[string]struct{ Content string }
}

type service struct {
	Build struct{ Context, Target string }
	Image string

	Entrypoint, Command   []string
	Ports, Volumes, Tmpfs []string
	DependsOn             []string `yaml:"depends_on"`
	Environment           map[string]string
	Configs               []struct{ Source, Target string }
	Networks              any
	Healthcheck           struct {
		Test              []string
		Interval, Timeout string
	}
	NetworkMode string   `yaml:"network_mode"`
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	StopGrace   string   `yaml:"stop_grace_period"`
	WorkingDir  string   `yaml:"working_dir"`
	Restart     string
	User        string
	Init        bool
}

func compositions(t *testing.T) map[string]composition {
	t.Helper()
	all := map[string]composition{}
	for _, file := range append(files(t, "compose/*.yaml"), files(t, "samples/*.yaml")...) {
		var c composition
		parse(t, file, &c)
		all[file] = c
	}
	return all
}

func TestComposeIsConfined(t *testing.T) {
	targets := regexp.MustCompile(`(?m)^FROM base AS (\w+)$`).FindAllStringSubmatch(read(t, "../Dockerfile"), -1)
	for file, c := range compositions(t) {
		for name, s := range c.Services {
			known := func(m []string) bool { return m[1] == s.Build.Target }
			if s.Image == "" && !slices.ContainsFunc(targets, known) {
				t.Errorf("%s: %s: the Dockerfile has no target %q", file, name, s.Build.Target)
			}
			if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Image == "" && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"})) {
				t.Errorf("%s: %s is not confined: %+v", file, name, s)
			}
			if strings.HasSuffix(s.Image, ":latest") || s.Image != "" && !strings.Contains(s.Image, ":") {
				t.Errorf("%s: %s: image %s", file, name, s.Image)
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s: %s offers %s to the network", file, name, port)
				}
			}
		}
	}
}

// An agent shares the network of its app, is stopped before it, and has time to
// drain.
func TestComposeAgents(t *testing.T) {
	seen := 0
	for file, c := range compositions(t) {
		agent, ok := c.Services["agent"]
		if !ok {
			continue
		}
		seen++
		app, shared := strings.CutPrefix(agent.NetworkMode, "service:")
		grace, err := time.ParseDuration(agent.StopGrace)
		if !shared || err != nil || grace < 17*time.Second || !slices.Equal(agent.DependsOn, []string{"registry", app}) {
			t.Errorf("%s: network %q, grace %v, depends on %v", file, agent.NetworkMode, grace, agent.DependsOn)
		}
		if drain := agent.Environment["SIDEBEAT_DRAIN"]; drain != "" && drain != "12s" {
			t.Errorf("%s: drains %s, which the grace period was not made for", file, drain)
		}
	}
	if seen != 4 {
		t.Errorf("%d agents, want 4", seen)
	}
}
