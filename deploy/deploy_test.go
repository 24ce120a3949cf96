// Package deploy_test holds what can be asserted about the files of this
// folder without an engine, a cluster or a running systemd.
package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// parse refuses unknown keys: each struct below names all that we write.
func parse(t *testing.T, path string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, path))))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
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
	files, err := filepath.Glob("*/*.*")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range append(files, "../Dockerfile") {
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

type pod struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Grace           int        `yaml:"terminationGracePeriodSeconds"`
		ServiceLinks    *bool      `yaml:"enableServiceLinks"`
		Token           *bool      `yaml:"automountServiceAccountToken"`
		SecurityContext security   `yaml:"securityContext"`
		InitContainers  containers `yaml:"initContainers"`
		Containers      containers
	}
}

type security struct {
	RunAsNonRoot             *bool             `yaml:"runAsNonRoot"`
	RunAsUser                *int64            `yaml:"runAsUser"`
	RunAsGroup               *int64            `yaml:"runAsGroup"`
	AllowPrivilegeEscalation *bool             `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   *bool             `yaml:"readOnlyRootFilesystem"`
	SeccompProfile           map[string]string `yaml:"seccompProfile"`
	Capabilities             struct{ Drop []string }
}

type action struct {
	Exec  struct{ Command []string }
	Sleep struct{ Seconds int }
}

type probe struct {
	action           `yaml:",inline"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type containers []struct {
	Name, Image   string
	RestartPolicy string `yaml:"restartPolicy"`
	Env           []struct {
		Name, Value string
		ValueFrom   struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe  *probe `yaml:"startupProbe"`
	LivenessProbe *probe `yaml:"livenessProbe"`
	Lifecycle     struct {
		PreStop action `yaml:"preStop"`
	}
	TerminationMessagePolicy string `yaml:"terminationMessagePolicy"`
	Resources                struct{ Requests, Limits map[string]string }
	SecurityContext          security `yaml:"securityContext"`
}

// What the Pod Security Standard "restricted" asks of a pod.
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted)
func TestPodIsRestricted(t *testing.T) {
	var p pod
	parse(t, "kubernetes/agent.yaml", &p)
	s := p.Spec.SecurityContext
	if s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile["type"] != "RuntimeDefault" {
		t.Errorf("the pod's securityContext is %+v", s)
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		s := c.SecurityContext
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) ||
			s.RunAsUser == nil || *s.RunAsUser == 0 {
			t.Errorf("%s: securityContext is %+v", c.Name, s)
		}
		if len(c.Resources.Requests) == 0 || strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
			t.Errorf("%s: requests %v, image %s", c.Name, c.Resources.Requests, c.Image)
		}
	}
	if p.Spec.ServiceLinks == nil || *p.Spec.ServiceLinks || p.Spec.Token == nil || *p.Spec.Token {
		t.Error("service links or the service account's token are not switched off")
	}
}

func TestAgentIsASidecarThatDrains(t *testing.T) {
	var p pod
	parse(t, "kubernetes/agent.yaml", &p)
	agent, app := p.Spec.InitContainers[0], p.Spec.Containers[0]
	if p.Kind != "Pod" || agent.RestartPolicy != "Always" || agent.SecurityContext.ReadOnlyRootFilesystem == nil || !*agent.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("got kind %s, restartPolicy %q", p.Kind, agent.RestartPolicy)
	}
	env := map[string]string{}
	for _, e := range agent.Env {
		env[e.Name] = e.Value + e.ValueFrom.FieldRef.FieldPath
	}
	if env["POD_IP"] != "status.podIP" {
		t.Errorf("POD_IP is %q", env["POD_IP"])
	}
	for _, p := range []*probe{agent.StartupProbe, agent.LivenessProbe} {
		if p == nil || !slices.Equal(p.Exec.Command, []string{"/sidebeat-agent", "health"}) {
			t.Errorf("probe is %+v", p)
		}
	}
	if !slices.Equal(agent.Lifecycle.PreStop.Exec.Command, []string{"/sidebeat-agent", "drain"}) {
		t.Errorf("agent's preStop is %+v", agent.Lifecycle.PreStop)
	}
	drain, err := time.ParseDuration(env["SIDEBEAT_DRAIN"])
	sleep := time.Duration(app.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	grace := time.Duration(p.Spec.Grace) * time.Second
	if err != nil || sleep < drain+3*time.Second || grace < sleep+20*time.Second {
		t.Errorf("drain %v (%v), sleep of the app %v, grace period %v", drain, err, sleep, grace)
	}
}

type service struct {
	Build struct{ Context, Target string }
	Image string

	Command, Ports, Volumes []string
	DependsOn               []string `yaml:"depends_on"`
	Environment             map[string]string
	Healthcheck             struct {
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

func TestCompose(t *testing.T) {
	var c struct {
		Name     string
		Services map[string]service
		Volumes  map[string]any
	}
	parse(t, "compose/compose.yaml", &c)
	agent := c.Services["agent"]
	drain, err1 := time.ParseDuration(agent.Environment["SIDEBEAT_DRAIN"])
	grace, err2 := time.ParseDuration(agent.StopGrace)
	if agent.NetworkMode != "service:app" || err1 != nil || err2 != nil || grace < drain+5*time.Second {
		t.Errorf("network %q, drain %v, grace %v", agent.NetworkMode, drain, grace)
	}
	if !slices.Equal(agent.DependsOn, []string{"registry", "app"}) {
		t.Errorf("the agent is not stopped before %v", agent.DependsOn)
	}
	targets := regexp.MustCompile(`(?m)^FROM base AS (\w+)$`).FindAllStringSubmatch(read(t, "../Dockerfile"), -1)
	for name, s := range c.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.SecurityOpt) == 0 {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		known := func(m []string) bool { return m[1] == s.Build.Target }
		if s.Image == "" && !slices.ContainsFunc(targets, known) {
			t.Errorf("%s: the Dockerfile has no target %q", name, s.Build.Target)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s offers %s to the network", name, port)
			}
		}
		for _, volume := range s.Volumes {
			if _, ok := c.Volumes[strings.Split(volume, ":")[0]]; !ok {
				t.Errorf("%s: no volume %s", name, volume)
			}
		}
	}
}

func TestUnits(t *testing.T) {
	for _, name := range []string{"sidebeat-agent", "sidebeat-registry"} {
		unit := read(t, "systemd/"+name+".service")
		for _, line := range []string{"ExecStart=/usr/local/bin/" + name, "DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict",
			"CapabilityBoundingSet=", "Restart=always", "RestartPreventExitStatus=2", "TimeoutStopSec=30"} {
			if !slices.Contains(strings.Split(unit, "\n"), line) {
				t.Errorf("%s: no line %s", name, line)
			}
		}
	}
}

// systemd itself reads the units; the program they start is put in its place.
func TestUnitsBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("this machine has no systemd-analyze")
	}
	for _, name := range []string{"sidebeat-agent", "sidebeat-registry"} {
		unit := strings.ReplaceAll(read(t, "systemd/"+name+".service"), "ExecStart=/usr/local/bin/"+name, "ExecStart=/bin/true")
		path := filepath.Join(t.TempDir(), name+".service")
		if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		help, _ := exec.Command(analyze, "security", "--help").CombinedOutput()
		if !bytes.Contains(help, []byte("--threshold")) {
			t.Logf("exposure of %s not asked: this systemd is too old", name)
			continue
		}
		out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", path).CombinedOutput()
		if err != nil {
			t.Errorf("%s is exposed more than 2.0: %s", name, out)
		}
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
