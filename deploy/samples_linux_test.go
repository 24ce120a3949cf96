package deploy_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// composed is a Compose file that is played.
type composed struct {
	*stage
	composition
	running map[string]*process
	faster  []string
}

// playCompose starts what is ours in a file as it says; act plays the rest.
// The settings in faster come on top, so that a test need not wait for long.
func playCompose(t *testing.T, file string, act func(*composed), faster ...string) {
	onStage(t, func(s *stage) {
		c := &composed{stage: s, running: map[string]*process{}, faster: faster}
		parse(t, file, &c.composition)
		names := slices.Sorted(maps.Keys(c.Services))
		for _, name := range names {
			if c.Services[name].NetworkMode == "" {
				s.host(name, addressIn(c.Services[name].Networks))
			}
		}
		for _, config := range names {
			for _, file := range c.Services[config].Configs {
				s.write(file.Target, strings.ReplaceAll(c.Configs[file.Source].Content, "$$", "$"), 0o644)
			}
		}
		for _, name := range []string{"registry", "prober", "agent"} {
			if _, ours := c.Services[name]; ours {
				c.up(name)
			}
		}
		act(c)
	})
}

// addressIn gives the fixed address among a service's networks, "" for none.
func addressIn(networks any) string {
	named, _ := networks.(map[string]any)
	for _, network := range named {
		if address, ok := network.(map[string]any)["ipv4_address"].(string); ok {
			return address
		}
	}
	return ""
}

// up starts one of our services and waits until its health check is well.
func (c *composed) up(name string) {
	c.Helper()
	s := c.Services[name]
	env := imageSettings(c.T, s.Build.Target)
	for key, value := range s.Environment {
		env = append(env, key+"="+value)
	}
	if name != "registry" {
		env = append(env, c.faster...)
	}
	if app, shared := strings.CutPrefix(s.NetworkMode, "service:"); shared {
		env = append(env, "POD_IP="+c.hosts[app]) // else: of the default route, which a stage has not
	}
	for _, volume := range s.Volumes {
		if _, path, _ := strings.Cut(volume, ":"); !strings.HasSuffix(path, ":ro") {
			c.folder(path, imageUser)
		}
	}
	c.running[name] = c.start(name, imageUser, env, append([]string{"/sidebeat-" + s.Build.Target}, s.Command...)...)
	if name == "registry" {
		c.serves()
	}
	if test := s.Healthcheck.Test; len(test) > 0 {
		c.until("its health check is well", func() bool { _, code := c.run("health", imageUser, env, test[1:]...); return code == 0 })
	}
}

// down stops the agent as Compose would: first.
func (c *composed) down() {
	c.Helper()
	for _, name := range []string{"agent", "prober", "registry"} {
		if p := c.running[name]; p != nil && c.stop(p) != 0 {
			c.Errorf("%s ended with %v", name, p.ProcessState)
		}
	}
}

// imageSettings gives the ENV lines of a stage of the Dockerfile.
func imageSettings(t *testing.T, target string) (env []string) {
	t.Helper()
	_, text, found := strings.Cut(read(t, "../Dockerfile"), "\nFROM base AS "+target+"\n")
	if !found {
		t.Fatalf("no target %s", target)
	}
	text, _, _ = strings.Cut(text, "\nFROM ")
	for _, m := range regexp.MustCompile(`(?m)^ENV (.*)$`).FindAllStringSubmatch(text, -1) {
		env = append(env, strings.Fields(m[1])...)
	}
	return env
}

// app starts a service of another image by what the file says.
func (c *composed) app(name string) *process {
	c.Helper()
	s := c.Services[name]
	os.Symlink("python3", "/usr/bin/python") // as in the image of Python
	command := append([]string{"/usr/bin/env", "-C", cmp.Or(s.WorkingDir, "/"), "PATH=/usr/bin:/bin"}, s.Command...)
	return c.start(name, 65534, nil, command...)
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := os.Stat("/usr/bin/" + name); err != nil {
			t.Skipf("NOT PLAYED: this machine has no /usr/bin/%s", name)
		}
	}
}

// The first example: the app as the file starts it is registered, and leaves
// the list when it is stopped.
func TestPlayCompose(t *testing.T) {
	needs(t, "python3")
	playCompose(t, "compose/compose.yaml", func(c *composed) {
		app := c.app("app")
		c.seen(registryURL, "orders", listed{c.hosts["app"], 8080, true, true})
		app.Process.Kill()
		c.seen(registryURL, "orders", listed{c.hosts["app"], 8080, false, true})
	})
}

// The Python app: both what it answers and the file that its worker touches
// count.
func TestPlayPython(t *testing.T) {
	needs(t, "python3")
	playCompose(t, "samples/python.yaml", func(c *composed) {
		c.folder("/run/orders", 65534)
		app := c.app("orders")
		c.seen(registryURL, "orders", listed{c.hosts["orders"], 8080, true, true})
		c.must(app.Process.Kill())
		<-app.ended
		defer c.listen(":8080", "/health", "ok")() // it answers, and nothing touches the file
		c.until("the worker's silence counts", func() bool {
			got := c.listed(registryURL, "orders")
			return len(got) == 1 && !got[0].Healthy
		})
		_, status := c.get("http://127.0.0.1:9180/status")
		if !strings.Contains(status, "file last touched") {
			t.Errorf("why it is down: %s", status)
		}
	})
}

// PHP-FPM behind nginx: the check is what nginx's location is called, and what
// PHP-FPM answers there.
func TestPlayPHP(t *testing.T) {
	playCompose(t, "samples/php-fpm.yaml", func(c *composed) {
		site, ping := read(t, "/etc/nginx/conf.d/default.conf"), read(t, "/usr/local/etc/php-fpm.d/zz-ping.conf")
		check := regexp.MustCompile(`^http://:(\d+)(/[\w-]+)#body=pong$`).FindStringSubmatch(c.Services["agent"].Environment["SIDEBEAT_CHECK"])
		if check == nil || !strings.Contains(site, "listen "+check[1]+";") || !strings.Contains(site, "location = "+check[2]+" {") ||
			!strings.Contains(site, "SCRIPT_FILENAME "+check[2]+";") || !strings.Contains(ping, "ping.path = "+check[2]+"\n") {
			t.Fatalf("the check %v does not fit\n%s%s", check, site, ping)
		}
		nginxReads(c, site)
		stop := c.listen(":8080", check[2], "File not found.")
		c.until("PHP-FPM's page without its word is sick", func() bool {
			_, metrics := c.get("http://127.0.0.1:9180/metrics")
			return regexp.MustCompile(`answers_total\{.*kind="sick".*\} [1-9]`).MatchString(metrics)
		})
		stop()
		defer c.listen(":8080", check[2], "pong")()
		c.seen(registryURL, "shop", listed{c.hosts["web"], 8080, true, true})
	})
}

// nginxReads has nginx itself read the site, where this machine has one.
func nginxReads(c *composed, site string) {
	nginx := "/usr/sbin/nginx"
	if _, err := os.Stat(nginx); err != nil {
		c.Log("NOT READ by nginx: this machine has none")
		return
	}
	c.write("/etc/nginx/fastcgi_params", "", 0o644)
	c.write("/etc/nginx/nginx.conf", "events {}\npid /tmp/nginx.pid;\nhttp {\n"+site+"}\n", 0o644)
	if said, code := c.run("nginx", 0, nil, nginx, "-t", "-c", "/etc/nginx/nginx.conf"); code != 0 {
		c.Error(said)
	}
}

// The vendor's binary leaves the list as soon as nobody accepts.
func TestPlayVendor(t *testing.T) {
	playCompose(t, "samples/vendor-tcp.yaml", func(c *composed) {
		stop := c.listen(":7000", "", "")
		c.seen(registryURL, "ledger", listed{c.hosts["ledger"], 7000, true, true})
		stop()
		c.seen(registryURL, "ledger")
	})
}

// MySQL: curl registers it as the file says, the prober marks it and never
// takes it out.
func TestPlayMySQL(t *testing.T) {
	needs(t, "curl")
	playCompose(t, "samples/mysql.yaml", func(c *composed) {
		s := c.Services["register"]
		if said, code := c.run("register", 65534, nil, append(s.Entrypoint, s.Command...)...); code != 0 || said != "ok" {
			t.Fatalf("curl ended with %d: %s", code, said)
		}
		at := c.hosts["mysql"]
		stop := c.listen(at+":3306", "", "")
		c.until("the prober has asked", func() bool {
			_, metrics := c.get("http://127.0.0.1:9181/metrics")
			return strings.Contains(metrics, "sidebeat_prober_targets_up 1")
		})
		c.seen(registryURL, "mysql", listed{at, 3306, true, true})
		stop()
		c.seen(registryURL, "mysql", listed{at, 3306, false, true})
		if _, metrics := c.get("http://127.0.0.1:9181/metrics"); !strings.Contains(metrics, `sidebeat_prober_writes_total{result="written"} 1`) {
			t.Error("it was not the prober who said so")
		}
		defer c.listen(at+":3306", "", "")()
		c.seen(registryURL, "mysql", listed{at, 3306, true, true})
		c.down()
	}, "SIDEBEAT_PROBE_INTERVAL=1s", "SIDEBEAT_PROBE_TIMEOUT=500ms")
}
