package agent

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/setting"
)

// The table: names and defaults that scripts rely on.
func TestVariables(t *testing.T) {
	want := map[string]string{
		"SIDEBEAT_NACOS": "http://127.0.0.1:8848", "SIDEBEAT_NAMESPACE": "public", "SIDEBEAT_GROUP": "DEFAULT_GROUP", "SIDEBEAT_CLUSTER": "DEFAULT",
		"SIDEBEAT_USERNAME": "", "SIDEBEAT_PASSWORD": "", "SIDEBEAT_PASSWORD_FILE": "", "SIDEBEAT_SERVICE": "", "SIDEBEAT_ADDRESS": "",
		"SIDEBEAT_EPHEMERAL": "true", "SIDEBEAT_CHECK": "", "SIDEBEAT_CHECK_ALLOW": "", "SIDEBEAT_CHECK_DENY": "", "SIDEBEAT_CHECK_MODE": "all", "SIDEBEAT_CHECK_INTERVAL": "2s", "SIDEBEAT_CHECK_TIMEOUT": "1s",
		"SIDEBEAT_CHECK_RISE": "1", "SIDEBEAT_CHECK_FALL": "3", "SIDEBEAT_START_GRACE": "0s", "SIDEBEAT_ON_DOWN": "unhealthy", "SIDEBEAT_DRAIN": "12s",
		"SIDEBEAT_WEIGHT": "1", "SIDEBEAT_METADATA": "", "SIDEBEAT_APPS": "", "SIDEBEAT_ALLOW_LOOPBACK": "false", "SIDEBEAT_ADMIN": "127.0.0.1:9180",
		// Who may do what.
		"SIDEBEAT_NACOS_CA_FILE": "", "SIDEBEAT_NACOS_CERT_FILE": "", "SIDEBEAT_NACOS_KEY_FILE": "", "SIDEBEAT_NACOS_SERVER_NAME": "",
		"SIDEBEAT_TLS_CERT_FILE": "", "SIDEBEAT_TLS_KEY_FILE": "", "SIDEBEAT_TLS_CLIENT_CA_FILE": "", "SIDEBEAT_TLS_CLIENT_AUTH": "required",
		"SIDEBEAT_ADMIN_TOKEN": "", "SIDEBEAT_ADMIN_TOKEN_FILE": "", "SIDEBEAT_ADMIN_PPROF": "false",
	}
	got := map[string]string{}
	for _, v := range setting.Variables(&Config{}) {
		got[v.Name] = v.Default
		if v.Doc == "" {
			t.Errorf("%s has no description", v.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTwoVariablesAreEnough(t *testing.T) {
	t.Setenv("SIDEBEAT_SERVICE", "orders")
	t.Setenv("SIDEBEAT_ADDRESS", ":8080")
	var c Config
	if warnings, err := setting.Load(&c); err != nil || len(warnings) > 0 {
		t.Errorf("got %v %v", warnings, err)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	for name, value := range map[string]string{
		"SERVICE": "orders svc", "ADDRESS": "127.0.0.1:8080", "CHECK_INTERVAL": "1s", "CHECK_TIMEOUT": "1s", "CHECK_RISE": "0", "ON_DOWN": "kill",
		"DRAIN": "-1s", "WEIGHT": "10001", "METADATA": "a",
	} {
		t.Setenv("SIDEBEAT_"+name, value)
	}
	var c Config
	_, err := setting.Load(&c)
	if err == nil {
		t.Fatal("all of it was taken")
	}
	for _, want := range []string{
		"SIDEBEAT_SERVICE=", "SIDEBEAT_ADDRESS=", "SIDEBEAT_CHECK_TIMEOUT=1s", "SIDEBEAT_CHECK_RISE=0", `SIDEBEAT_ON_DOWN="kill"`,
		"SIDEBEAT_DRAIN=-1s", "SIDEBEAT_WEIGHT=10001", "SIDEBEAT_METADATA",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no complaint about %s in:\n%v", want, err)
		}
	}
}

func TestRefusedSettings(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		c := usual()
		change(&c)
		err := c.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("refused: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want a complaint with %q", err, want)
		}
	}
	f(func(*Config) {}, "")
	f(func(c *Config) { c.Service = " " }, "SIDEBEAT_SERVICE")
	f(func(c *Config) { c.Service = "nacos\u2010demo" }, "U+2010")
	f(func(c *Config) { c.Service = "G@@orders" }, "@@")
	f(func(c *Config) { c.Service = strings.Repeat("a", 513) }, "512")
	f(func(c *Config) { c.Group = "a b" }, "SIDEBEAT_GROUP")
	f(func(c *Config) { c.Cluster = "a_b" }, "SIDEBEAT_CLUSTER")
	f(func(c *Config) { c.Namespace = "a b" }, "SIDEBEAT_NAMESPACE")
	f(func(c *Config) { c.Address = "" }, "SIDEBEAT_ADDRESS")
	f(func(c *Config) { c.CheckTimeout = 2 * time.Second }, "SIDEBEAT_CHECK_TIMEOUT=2s: it must be shorter than SIDEBEAT_CHECK_INTERVAL=2s")
	f(func(c *Config) { c.CheckTimeout = 0 }, "SIDEBEAT_CHECK_TIMEOUT")
	f(func(c *Config) { c.CheckInterval = -1 }, "SIDEBEAT_CHECK_INTERVAL")
	f(func(c *Config) { c.CheckInterval = 2 * time.Hour }, "SIDEBEAT_CHECK_INTERVAL")
	f(func(c *Config) { c.StartGrace = -1 }, "SIDEBEAT_START_GRACE")
	f(func(c *Config) { c.Drain = 11 * time.Minute }, "SIDEBEAT_DRAIN")
	f(func(c *Config) { c.CheckFall = 256 }, "SIDEBEAT_CHECK_FALL=256: give 1 to 255")
	f(func(c *Config) { c.CheckMode = "some" }, "SIDEBEAT_CHECK_MODE")
	f(func(c *Config) { c.CheckMode = "2" }, "a number from 1 to 1")
	f(func(c *Config) { c.Check, c.CheckMode = "tcp://:1 tcp://:2", "2" }, "")
	f(func(c *Config) { c.Check = "gopher://x" }, "SIDEBEAT_CHECK")
	f(func(c *Config) { c.Check = "tcp://:1 tcp://#timeout=1s" }, `SIDEBEAT_CHECK="tcp://#timeout=1s": a tcp check needs a port`)
	f(func(c *Config) { c.Admin = "9180" }, `SIDEBEAT_ADMIN="9180": give host:port`)
	f(func(c *Config) { c.Admin = "off" }, "")
	f(func(c *Config) { c.Check = "http://:80/#timeout=2s" }, "its timeout must be shorter")
	f(func(c *Config) { c.Weight = -1 }, "SIDEBEAT_WEIGHT")
	f(func(c *Config) { c.Metadata = metaBeat + "=15" }, "whole milliseconds, at least 1000")
	f(func(c *Config) { c.Metadata = metaBeat + "=abc" }, "whole milliseconds")
	f(func(c *Config) { c.Metadata = metaBeat + "=15000" }, "the interval must be below the timeout")
	f(func(c *Config) { c.Metadata = metaSilence + "=31000" }, "the timeout not above the delete timeout")
	f(func(c *Config) { c.Metadata = metaBeat + "=3000," + metaSilence + "=9000," + metaDelete + "=9000" }, "")
	f(func(c *Config) { c.Metadata = "k=" + strings.Repeat("v", 1024) }, "1025 bytes")
	f(func(c *Config) { c.Nacos = nil }, "SIDEBEAT_NACOS")
	f(func(c *Config) { c.Password = setting.NewSecret("hunter2") }, "SIDEBEAT_USERNAME is missing")
	f(func(c *Config) { c.Username = "agent" }, `SIDEBEAT_USERNAME="agent": SIDEBEAT_PASSWORD_FILE or SIDEBEAT_PASSWORD is missing`)
	f(func(c *Config) { c.PodIP = "127.0.0.1" }, "POD_IP")
	f(func(c *Config) { c.PodIP = "10.1.2.3" }, "")
	f(func(c *Config) { c.Apps = "/does/not/exist" }, "SIDEBEAT_APPS")
}

// A file that a check names and that cannot be used is found at the start, in
// the environment as in the file of apps (TwiN/gatus#541).
func TestCAFilesAreReadAtTheStart(t *testing.T) {
	folder := t.TempDir()
	ca, apps := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "apps.yaml")
	app := "- {service: orders, address: '10.0.0.7:8080', check: 'https://:8443/#ca=" + ca + "&header=X-Token:canary'}\n"
	if err := os.WriteFile(apps, []byte(app), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := usual()
		change(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ca) || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want %q, the name of the file and no secret", err, want)
		}
	}
	byVariable := func(c *Config) { c.Check = Checks("http://:8080/ https://:8443/#ca=" + ca + "&header=X-Token:canary") }
	byFile := func(c *Config) { c.Apps = apps }
	f("cannot use SIDEBEAT_CHECK=", byVariable)
	f("cannot read CA file", byVariable)
	f("cannot read CA file", byFile)
	if err := os.WriteFile(ca, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f("holds no certificate", byVariable)
	f("holds no certificate", byFile)
}

func TestSecretsInChecksAreHidden(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Checks(text).String(); got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("tcp://:3306", "tcp://:3306")
	f("http://:80/x#status=200", "http://:80/x#status=200")
	f("http://:80/x#nonsense=hunter2", "http://:80/x#***")
	for _, text := range []string{"http://:80/x#header=Authorization:hunter2", "http://:80/x?token=hunter2"} {
		if got := Checks(text).String(); strings.Contains(got, "hunter2") || !strings.HasPrefix(got, "http://:80/x") {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
	c := usual()
	c.Check = "http://:80/x#nonsense=hunter2"
	if err := c.Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestMetadata(t *testing.T) {
	f := func(text string, want map[string]string, fault string) {
		t.Helper()
		got, err := parseMetadata(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		if (err != nil) != (fault != "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: got %v, want %q", text, err, fault)
		}
	}
	f("", nil, "")
	f("url=http://h:80/a?x=1,zone=eu-1,empty=, time=12:30:00,", map[string]string{"url": "http://h:80/a?x=1", "zone": "eu-1", "empty": "", "time": "12:30:00"}, "")
	f(`{"a":"x,y","b":1.50,"c":true,"d":"2001:db8::1"}`, map[string]string{"a": "x,y", "b": "1.50", "c": "true", "d": "2001:db8::1"}, "")
	f("a", nil, "k=v")
	f("=a", nil, "k=v")
	f("a=1,a=2", nil, `"a" is given twice`)
	f(`{"a":"1","a":"2"}`, nil, `"a" is given twice`)
	f("a\xff=1,a\xfe=2", nil, "it is no UTF-8")
	f(`{"a":{}}`, nil, `"a" must be a text`)
	f(`{"a":null}`, nil, `"a" must be`)
	f(`{"a":"1"} x`, nil, "one whole JSON object")
	f(`{"a":"1"`, nil, "one whole JSON object")
	f("password-hunter2", nil, "password-hun") // and no more of it
	if _, err := parseMetadata("password-hunter2"); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows the whole value: %v", err)
	}
}

func TestAddress(t *testing.T) {
	f := func(address string, loopback bool, host string, port uint16, fault string) {
		t.Helper()
		h, p, err := splitAddress(address, loopback)
		if h != host || p != port || (err != nil) != (fault != "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: got %q %d %v, want %q %d %q", address, h, p, err, host, port, fault)
		}
	}
	f(":8080", false, "", 8080, "")
	f("10.0.0.7:8080", false, "10.0.0.7", 8080, "")
	f("[2001:db8::7]:8080", false, "2001:db8::7", 8080, "")
	f("[::ffff:10.0.0.7]:8080", false, "10.0.0.7", 8080, "")
	f("127.0.0.1:8080", true, "127.0.0.1", 8080, "")
	f("127.0.0.1:8080", false, "", 0, "SIDEBEAT_ALLOW_LOOPBACK")
	f("[::1]:8080", false, "", 0, "SIDEBEAT_ALLOW_LOOPBACK")
	f("169.254.1.1:8080", true, "", 0, "link-local")
	f("[fe80::1]:8080", true, "", 0, "link-local")
	f("[fe80::1%eth0]:8080", true, "", 0, "zone")
	f("0.0.0.0:8080", true, "", 0, "all addresses")
	f("224.0.0.1:8080", true, "", 0, "one machine")
	f("255.255.255.255:8080", true, "", 0, "one machine")
	f(":0", false, "", 0, "1 to 65535")
	f(":65536", false, "", 0, "1 to 65535")
	f(":http", false, "", 0, "1 to 65535")
	f("8080", false, "", 0, "give :8080")
	f("2001:db8::7:8080", false, "", 0, "give :8080")
	f("orders:8080", false, "", 0, "no IP address")
}

func TestFindAddress(t *testing.T) {
	way := func(ip string) func(context.Context) (netip.Addr, error) {
		return func(context.Context) (netip.Addr, error) {
			if ip == "" {
				return netip.Addr{}, errors.New("network is unreachable")
			}
			return netip.MustParseAddr(ip), nil
		}
	}
	f := func(podIP, route, outside string, loopback bool, want, fault string) {
		t.Helper()
		got, err := finder{podIP, loopback, way(route), way(outside)}.find(t.Context())
		if got != want && fault == "" || (err != nil) != (fault != "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("POD_IP %q, route %q, outside %q: got %q %v, want %q %q", podIP, route, outside, got, err, want, fault)
		}
	}
	f("10.0.0.1", "10.0.0.2", "10.0.0.3", false, "10.0.0.1", "")
	f("", "10.0.0.2", "10.0.0.3", false, "10.0.0.2", "")
	f("", "2001:db8::2", "", false, "2001:db8::2", "")
	f("", "127.0.0.1", "10.0.0.3", false, "10.0.0.3", "")
	f("", "127.0.0.1", "10.0.0.3", true, "10.0.0.3", "")
	f("", "127.0.0.1", "", true, "127.0.0.1", "")
	f("", "127.0.0.1", "", false, "", "the registry is on this machine")
	f("", "127.0.0.1", "169.254.1.1", false, "", "the registry is on this machine")
	f("", "", "10.0.0.3", false, "", "network is unreachable")
	f("", "fe80::1%eth0", "10.0.0.3", false, "", "link-local")
}

// Without a network at the start it keeps trying and says so once; the address
// is the one found when the network is there.
func TestNoNetworkAtStart(t *testing.T) {
	c := usual()
	c.Address = ":8080"
	var found atomic.Bool
	offline := func(s *site) {
		s.agent.Route = func(context.Context) (netip.Addr, error) {
			if !found.Load() {
				return netip.Addr{}, errors.New("network is unreachable")
			}
			return netip.MustParseAddr("10.0.0.9"), nil
		}
	}
	playFrom(t, c, offline, func(s *site) {
		s.wait(time.Minute)
		if n := s.log.count("there is no address"); n != 1 {
			t.Errorf("said %d times\n%s", n, s.log.all())
		}
		if err := s.agent.Healthy(); err != nil {
			t.Error(err)
		}
		found.Store(true)
		s.wait(4 * time.Second)
		s.key.IP = "10.0.0.9"
		s.want("healthy")
	})
}

func TestStoppedWithoutNetwork(t *testing.T) {
	c := usual()
	c.Address = ":8080"
	offline := func(s *site) {
		s.agent.Route = func(context.Context) (netip.Addr, error) { return netip.Addr{}, errors.New("network is unreachable") }
	}
	playFrom(t, c, offline, func(s *site) {
		s.wait(time.Minute)
		begin := time.Now()
		if err := s.stop(); err != nil || time.Since(begin) > time.Second {
			t.Errorf("ended with %v in %v", err, time.Since(begin))
		}
	})
}

// While the first registration fails the address is looked for again.
func TestAddressIsFoundAgainUntilRegistered(t *testing.T) {
	c := usual()
	c.Address = ":8080"
	var ip atomic.Value
	ip.Store("10.0.0.8")
	early := func(s *site) {
		s.link.fault = errAway
		s.agent.Route = func(context.Context) (netip.Addr, error) { return netip.MustParseAddr(ip.Load().(string)), nil }
	}
	playFrom(t, c, early, func(s *site) {
		s.wait(10 * time.Second)
		ip.Store("10.0.0.9")
		s.link.set(func(l *link) { l.fault = nil })
		s.wait(period)
		s.key.IP = "10.0.0.9"
		s.want("healthy")
	})
}

func TestApps(t *testing.T) {
	defaults := usual().App
	defaults.Service, defaults.Address, defaults.Drain = "", "", 3*time.Second
	f := func(text string, want []string, fault string) {
		t.Helper()
		plans, err := parseApps([]byte(text), defaults)
		var got []string
		for _, p := range plans {
			got = append(got, strings.Join([]string{p.service.Name, p.instance().Address(), string(p.onDown), p.drain.String()}, " "))
		}
		if err != nil {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
		if (err != nil) != (fault != "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%s\ngot %v, want %q", text, err, fault)
		}
	}
	f("- service: a\n  address: :80\n- service: b\n  address: 10.0.0.7:81\n  drain: 1s\n  on_down: silent\n",
		[]string{"a :80 unhealthy 3s", "b 10.0.0.7:81 silent 1s"}, "")
	f(`{"apps": [{"service": "a", "address": ":80", "check": ["tcp://:1", "tcp://:2"], "check_mode": 2, "metadata": {"v": 2, "t": true}, "weight": 1.5, "check_fall": 2}]}`,
		[]string{"a :80 unhealthy 3s"}, "")
	f("{\n\t\"apps\": [\n\t\t{\"service\": \"a\", \"address\": \":80\"}\n\t]\n}", []string{"a :80 unhealthy 3s"}, "")
	f("- service: a\n  adress: :80\n", nil, `unknown word "adress"; did you mean address?`)
	f("- service: a\n  address: :80\n  nacos: x\n", nil, `unknown word "nacos"`)
	f("- service: a\n  address: :80\n  drain: 5\n", nil, `app 1 ("a"): cannot use drain: "5" is no duration`)
	f("- service: a\n  address: :80\n  check_timeout: 2s\n", nil, `app 1 ("a"): check_timeout=2s`)
	f("- service: a\n  address: :80\n  check_interval: x\n  weight: y\n  ephemeral: z\n  check_rise: w\n", nil, "ephemeral")
	f("- address: :80\n", nil, "service")
	f("- service: a\n  address: :80\n  metadata: [1]\n", nil, "one plain value")
	f("- service: a\n  address: :80\n- service: a\n  address: :80\n", nil, "apps 1 and 2 are the same instance")
	f("- service: a\n  address: :80\n- service: a\n  address: :81\n  ephemeral: false\n", nil, "only one of them is ephemeral")
	f("x: 1\n", nil, `unknown word "x"`)
	f("[]", nil, "give a list of apps")
	f("", nil, "neither YAML nor JSON")
	f("- service: a\n  address: :80\n---\n- service: b\n  address: :81\n", nil, "more than one document")
	f("- service: a\n  service: b\n", nil, "already defined")
	f("- 1\n", nil, "give an object")
}

func TestAppsFileIsBounded(t *testing.T) {
	c := usual()
	c.Apps = filepath.Join(t.TempDir(), "apps.yaml")
	if err := os.WriteFile(c.Apps, []byte(strings.Repeat("#", appsFileMost+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v", err)
	}
}

func FuzzApps(f *testing.F) {
	f.Add("- {service: a, address: ':80', check: [a, b], metadata: {a: 1}}")
	f.Add(`{"apps":[{"service":"a","address":":80","weight":1e9}]}`)
	f.Add("- &a [*a]\n- *a")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]")
	f.Add("- !!binary aGk=\n- 2001-01-01\n- .nan\n- {? [a] : b}")
	defaults := usual().App
	f.Fuzz(func(t *testing.T, text string) {
		plans, err := parseApps([]byte(text), defaults)
		if err != nil {
			return
		}
		for _, p := range plans {
			if p.service.Name == "" || p.port == 0 || p.need < 1 || p.timeout >= p.interval || p.rise == 0 || p.fall == 0 || p.beatEvery < time.Second {
				t.Errorf("%q was taken as %+v", text, p)
			}
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add(`a=b,c=d=e`)
	f.Add(`{"a":"b","c":1e3,"d":[]}`)
	f.Add(`{"a":`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetadata(text)
		if err != nil {
			return
		}
		object := map[string]any{}
		for k, v := range m {
			object[k] = v
		}
		again, err := metadataJSON(object)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseMetadata(again)
		if err != nil || len(back) > len(m) {
			t.Errorf("%q gave %v, which reads back as %v %v", text, m, back, err)
		}
	})
}
