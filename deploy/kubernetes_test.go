package deploy_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// object is any of the kinds that we write. Whether Kubernetes knows the fields
// is asked of its own schemas (.ci/deploy.sh).
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		podSpec  `yaml:",inline"`
		Template struct{ Spec podSpec }
		Replicas int
		Strategy struct{ Type string }
	}
}

type podSpec struct {
	Grace           int         `yaml:"terminationGracePeriodSeconds"`
	ServiceLinks    *bool       `yaml:"enableServiceLinks"`
	Token           *bool       `yaml:"automountServiceAccountToken"`
	SecurityContext security    `yaml:"securityContext"`
	InitContainers  []container `yaml:"initContainers"`
	Containers      []container
}

func (p podSpec) all() []container { return slices.Concat(p.InitContainers, p.Containers) }

type security struct {
	RunAsNonRoot             bool              `yaml:"runAsNonRoot"`
	RunAsUser                int               `yaml:"runAsUser"`
	AllowPrivilegeEscalation *bool             `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool              `yaml:"readOnlyRootFilesystem"`
	SeccompProfile           map[string]string `yaml:"seccompProfile"`
	Capabilities             struct{ Drop []string }
}

type action struct {
	Exec    struct{ Command []string }
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	Sleep   struct{ Seconds int }
}

type probe struct {
	action           `yaml:",inline"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type container struct {
	Name, Image   string
	Command       []string
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
	StartupProbe   *probe `yaml:"startupProbe"`
	LivenessProbe  *probe `yaml:"livenessProbe"`
	ReadinessProbe *probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop action `yaml:"preStop"`
	}
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext security `yaml:"securityContext"`
}

// program is the program of ours that a container runs, "" for none.
func (c container) program() string {
	if name, ours := strings.CutSuffix(c.Image, ":0.1.0"); ours && strings.HasPrefix(name, "sidebeat-") {
		return "/" + name
	}
	if len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "/sidebeat/") {
		return c.Command[0]
	}
	return ""
}

// settings of a container; address is the pod's.
func (c container) settings(address string) (env []string) {
	for _, e := range c.Env {
		if e.ValueFrom.FieldRef.FieldPath == "status.podIP" {
			e.Value = address
		}
		env = append(env, e.Name+"="+e.Value)
	}
	return env
}

func (c container) setting(t *testing.T, name string) string {
	t.Helper()
	for _, e := range c.settings("the pod's address") {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	t.Errorf("%s has no %s", c.Name, name)
	return ""
}

// podsOf gives the pods and pod templates of a file.
func podsOf(t *testing.T, file string) (pods []podSpec) {
	t.Helper()
	for _, o := range manifests(t, file) {
		for _, p := range []podSpec{o.Spec.podSpec, o.Spec.Template.Spec} {
			if len(p.Containers) > 0 {
				pods = append(pods, p)
			}
		}
	}
	if len(pods) == 0 {
		t.Errorf("%s has no pod", file)
	}
	return pods
}

// What the Pod Security Standard "restricted" asks of a pod.
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted)
func TestPodsAreRestricted(t *testing.T) {
	for _, file := range files(t, "kubernetes/*.yaml") {
		for _, p := range podsOf(t, file) {
			s := p.SecurityContext
			if !s.RunAsNonRoot || s.SeccompProfile["type"] != "RuntimeDefault" {
				t.Errorf("%s: the pod's securityContext is %+v", file, s)
			}
			if p.ServiceLinks == nil || *p.ServiceLinks || p.Token == nil || *p.Token || p.Grace < 15 {
				t.Errorf("%s: service links or the service account's token are not switched off, or there is no grace period", file)
			}
			for _, c := range p.all() {
				isRestricted(t, file, c, max(s.RunAsUser, c.SecurityContext.RunAsUser))
			}
		}
	}
}

func isRestricted(t *testing.T, file string, c container, user int) {
	t.Helper()
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || user == 0 {
		t.Errorf("%s: %s: user %d, securityContext %+v", file, c.Name, user, s)
	}
	if len(c.Resources.Requests) != 2 || strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
		t.Errorf("%s: %s: requests %v, image %s", file, c.Name, c.Resources.Requests, c.Image)
	}
	if c.program() == "" {
		return
	}
	if !s.ReadOnlyRootFilesystem || c.Resources.Limits["memory"] == "" || c.Resources.Limits["cpu"] != "" {
		t.Errorf("%s: %s: root read-only: %v, limits %v", file, c.Name, s.ReadOnlyRootFilesystem, c.Resources.Limits)
	}
	for _, p := range []*probe{c.StartupProbe, c.LivenessProbe} {
		if p != nil && (!slices.Equal(p.Exec.Command, []string{c.program(), "health"}) || p.TimeoutSeconds < 3) {
			t.Errorf("%s: %s: probe is %+v", file, c.Name, p)
		}
	}
	if c.LivenessProbe == nil {
		t.Errorf("%s: %s has no liveness probe", file, c.Name)
	}
}

// The app answers for longer than the agent drains, and all of it fits into the
// grace period.
func TestAgentsAreSidecarsThatDrain(t *testing.T) {
	seen := 0
	for _, file := range files(t, "kubernetes/*.yaml") {
		for _, p := range podsOf(t, file) {
			at := slices.IndexFunc(p.all(), func(c container) bool { return strings.HasSuffix(c.program(), "sidebeat-agent") })
			if at < 0 {
				continue
			}
			seen++
			agent, app := p.all()[at], p.Containers[len(p.Containers)-1]
			if native := len(p.InitContainers) > 0; native && (agent.RestartPolicy != "Always" || agent.StartupProbe == nil) {
				t.Errorf("%s: restartPolicy %q, startup probe %v", file, agent.RestartPolicy, agent.StartupProbe)
			}
			if !slices.Equal(agent.Lifecycle.PreStop.Exec.Command, []string{agent.program(), "drain"}) {
				t.Errorf("%s: the agent's preStop is %+v", file, agent.Lifecycle.PreStop)
			}
			drain, err := time.ParseDuration(agent.setting(t, "SIDEBEAT_DRAIN"))
			sleep := time.Duration(app.Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if command := app.Lifecycle.PreStop.Exec.Command; len(command) == 2 && command[0] == "sleep" {
				sleep, _ = time.ParseDuration(command[1] + "s")
			}
			grace := time.Duration(p.Grace) * time.Second
			if err != nil || sleep < drain+3*time.Second || grace < sleep+20*time.Second {
				t.Errorf("%s: drain %v (%v), sleep of the app %v, grace period %v", file, drain, err, sleep, grace)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d pods with an agent, want 3", seen)
	}
}

// Whoever writes, or keeps data of its own, is one.
func TestOneWrites(t *testing.T) {
	for _, file := range []string{"kubernetes/prober.yaml", "kubernetes/registry.yaml"} {
		for _, o := range manifests(t, file) {
			switch {
			case o.Kind == "StatefulSet" && o.Spec.Replicas != 1, o.Kind == "Deployment" && (o.Spec.Replicas != 1 || o.Spec.Strategy.Type != "Recreate"):
				t.Errorf("%s: %d replicas, strategy %q", o.Metadata.Name, o.Spec.Replicas, o.Spec.Strategy.Type)
			}
		}
	}
}
