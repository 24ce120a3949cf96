package deploy_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listen is a stand-in for an app that this machine does not have: it accepts
// on the address for real, and answers HTTP with the body if there is one.
func (s *stage) listen(address, path, body string) (stop func()) {
	s.Helper()
	ln, err := net.Listen("tcp", address)
	s.must(err)
	if path == "" {
		go func() {
			for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
				conn.Close()
			}
		}()
		return func() { ln.Close() }
	}
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
	server := &http.Server{Handler: mux}
	go server.Serve(ln)
	return func() { server.Close() }
}

// registry is where everybody on a stage finds the registry.
const registryURL = "http://127.0.0.1:8848"

// serveRegistry starts a registry that is none of a file's.
func (s *stage) serveRegistry(env ...string) *process {
	s.Helper()
	s.folder("/data", imageUser)
	p := s.start("registry", imageUser, append(env, "SIDEBEAT_LISTEN=0.0.0.0:8848", "SIDEBEAT_DATA=/data"), "/sidebeat-registry")
	s.serves()
	return p
}

func (s *stage) serves() {
	s.Helper()
	s.until("the registry serves", func() bool {
		status, _ := s.get(registryURL + "/nacos/v1/console/health/readiness")
		return status == 200
	})
}

// A pod with an agent: started, alive by its own probes, registered under the
// pod's address, and drained by its preStop hook while the app still answers.
func playPod(t *testing.T, file, service string, drains bool) {
	onStage(t, func(s *stage) {
		pod := podsOf(t, file)[0]
		s.host("sidebeat-registry", "")
		address := s.host("pod", "")
		s.serveRegistry()
		s.write("/opt/billing/alive.sh", "#!/bin/sh\ntest \"$1\" = --deep && test -e /tmp/works\n", 0o755)
		s.copyFile("/sidebeat-agent", "/sidebeat/sidebeat-agent", 0o755)
		for _, c := range pod.all() {
			if c.program() == "" {
				continue
			}
			command, env := append(c.Command, c.program())[:1], c.settings(address)
			user := max(pod.SecurityContext.RunAsUser, c.SecurityContext.RunAsUser)
			agent := s.start(c.Name, user, env, command...)
			for _, p := range []*probe{c.StartupProbe, c.LivenessProbe} {
				if p != nil {
					s.until("its probe is well", func() bool { _, code := s.run("probe", user, env, p.Exec.Command...); return code == 0 })
				}
			}
			if got := s.listed(registryURL, service); len(got) != 0 {
				t.Errorf("listed before the app answers: %v", got)
			}
			s.write("/tmp/works", "", 0o644)
			defer s.listen(":8080", "/healthz", "ok")()
			s.seen(registryURL, service, listed{address, 8080, true, true})
			if !drains {
				continue
			}
			hook := s.start("preStop", user, env, c.Lifecycle.PreStop.Exec.Command...)
			s.seen(registryURL, service) // disabled: no consumer is told of it any more
			select {
			case <-hook.ended:
				t.Error("the hook did not wait until consumers have let go")
			default:
			}
			<-hook.ended
			if code := hook.ProcessState.ExitCode(); code != 0 {
				t.Errorf("drain ended with %d", code)
			}
			if code := s.stop(agent); code != 0 {
				t.Errorf("the agent ended with %d", code)
			}
		}
	})
}

func TestPlayNativeSidecar(t *testing.T) { playPod(t, "kubernetes/agent.yaml", "orders", true) }
func TestPlayClassicSidecar(t *testing.T) {
	playPod(t, "kubernetes/agent-classic.yaml", "orders", true)
}

// The sidecar runs the app's image, so its check is a script of the app's.
func TestPlayExecChecks(t *testing.T) { playPod(t, "kubernetes/exec-checks.yaml", "billing", false) }

// Registry and prober as Kubernetes starts them; what is durable survives the pod.
func TestPlayRegistryAndProber(t *testing.T) {
	needs(t, "curl")
	onStage(t, func(s *stage) {
		at := s.host("sidebeat-registry", "")
		s.folder("/data", imageUser)
		var running []*process
		play := func(file string) {
			pod := podsOf(t, file)[0]
			for _, c := range pod.Containers {
				p := s.start(c.Name, pod.SecurityContext.RunAsUser, c.settings(at), c.program())
				running = append(running, p)
				for _, probe := range []*probe{c.StartupProbe, c.LivenessProbe} {
					s.until("its probe is well", func() bool { _, code := s.run("probe", imageUser, nil, probe.Exec.Command...); return code == 0 })
				}
				if c.ReadinessProbe != nil {
					url := fmt.Sprintf("http://%s:%d%s", at, c.Ports[0].ContainerPort, c.ReadinessProbe.HTTPGet.Path)
					s.until("it is ready", func() bool { status, _ := s.get(url); return status == 200 })
				}
			}
		}
		play("kubernetes/registry.yaml")
		said, code := s.run("curl", 0, nil, "curl", "-fsS", "-X", "POST",
			"http://sidebeat-registry:8848/nacos/v1/ns/instance?serviceName=db&ip="+at+"&port=3306&ephemeral=false")
		if code != 0 {
			t.Fatal(said)
		}
		if code := s.stop(running[0]); code != 0 {
			t.Errorf("the registry ended with %d", code)
		}
		play("kubernetes/registry.yaml")
		s.until("db is still listed", func() bool { return len(s.listed(registryURL, "db")) == 1 })
		play("kubernetes/prober.yaml")
		s.until("the prober observes, since one is inside the registry", func() bool {
			_, text := s.get("http://127.0.0.1:9181/metrics")
			return strings.Contains(text, "sidebeat_prober_observing 1")
		})
		for _, p := range running[1:] {
			if code := s.stop(p); code != 0 {
				t.Errorf("%s ended with %d", p.name, code)
			}
		}
	})
}

// What a unit's head says is typed, then what the unit says is started.
func TestPlayUnits(t *testing.T) {
	onStage(t, func(s *stage) {
		address := s.host("app", "")
		var running []*process
		for _, name := range []string{"registry", "prober", "agent"} {
			file := "systemd/sidebeat-" + name + ".service"
			s.typed(file)
			lines := unit(t, file)
			env := slices.Concat(lines["Environment"], s.environmentFile(lines["EnvironmentFile"]))
			if state := lines["StateDirectory"]; len(state) > 0 {
				s.folder("/var/lib/"+state[0], imageUser)
			}
			if name == "agent" {
				env = append(env, "POD_IP="+address) // else: of the default route, which a stage has not
			}
			running = append(running, s.start(name, imageUser, env, strings.Fields(lines["ExecStart"][0])...))
			if name == "registry" {
				s.serves()
			}
		}
		defer s.listen(address+":8080", "", "")()
		s.seen(registryURL, "orders", listed{address, 8080, true, true})
		for _, p := range slices.Backward(running) {
			if code := s.stop(p); code != 0 {
				t.Errorf("%s ended with %d", p.name, code)
			}
		}
	})
}

// typed types the commands in a unit's head, those of systemctl left out.
func (s *stage) typed(file string) {
	s.Helper()
	s.must(os.MkdirAll("/unpacked", 0o755))
	os.Symlink(programs, "/unpacked/bin")
	os.Symlink(repository+"/deploy", "/unpacked/deploy")
	for _, m := range regexp.MustCompile(`(?m)^#   ((?:install|printf) .*)$`).FindAllStringSubmatch(read(s.T, file), -1) {
		if said, code := s.run("shell", 0, nil, "sh", "-c", "cd /unpacked && "+m[1]); code != 0 {
			s.Fatalf("%s: %s", m[1], said)
		}
	}
	if _, err := os.Stat("/etc/systemd/system/" + filepath.Base(file)); err != nil {
		s.Error(err)
	}
}

func (s *stage) environmentFile(names []string) (env []string) {
	for _, name := range names {
		text, err := os.ReadFile(strings.TrimPrefix(name, "-"))
		if err != nil && !strings.HasPrefix(name, "-") {
			s.Fatal(err)
		}
		env = append(env, strings.Fields(string(text))...)
	}
	return env
}
