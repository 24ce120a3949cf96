package prober

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/setting"
)

// load reads a Config from the given variables alone.
func load(t *testing.T, variables map[string]string) (Config, error) {
	t.Helper()
	for name, value := range variables {
		t.Setenv("SIDEBEAT_"+name, value)
	}
	var c Config
	_, err := setting.Load(&c)
	return c, err
}

func TestDefaults(t *testing.T) {
	c, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.ProbeInterval != 20*time.Second || c.ProbeTimeout != 3200*time.Millisecond || c.ProbeRise != 2 || c.ProbeFall != 3 {
		t.Errorf("got %+v", c.Probe)
	}
	if c.Nacos.String() != "http://127.0.0.1:8848" || c.Admin != "127.0.0.1:9181" || c.ProbeAllowLoopback || c.ProbeInclude != nil {
		t.Errorf("got %+v", c)
	}
}

func TestBadSettingsAreSaidAtOnce(t *testing.T) {
	_, err := load(t, map[string]string{
		"PASSWORD": "hunter2", "PROBE_INTERVAL": "0s", "PROBE_TIMEOUT": "-1s", "PROBE_RISE": "0",
		"PROBE_FALL": "256", "PROBE_INCLUDE": "orders", "PROBE_EXCLUDE": "a/b", "PROBE_IN_FLIGHT": "0", "PROBE_WRITE_RATE": "-3",
		"ADMIN": "9181",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"PASSWORD", "PROBE_INTERVAL", "PROBE_TIMEOUT", "PROBE_RISE", "PROBE_FALL", "PROBE_INCLUDE", "PROBE_EXCLUDE", "PROBE_IN_FLIGHT", "PROBE_WRITE_RATE", "ADMIN"} {
		if !strings.Contains(err.Error(), "SIDEBEAT_"+name) {
			t.Errorf("SIDEBEAT_%s is not named in:\n%v", name, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the password is shown")
	}
}

func TestTimeoutMustBeShorterThanTheInterval(t *testing.T) {
	f := func(interval, timeout string, good bool) {
		t.Helper()
		_, err := load(t, map[string]string{"PROBE_INTERVAL": interval, "PROBE_TIMEOUT": timeout})
		if (err == nil) != good {
			t.Errorf("interval %s timeout %s: got %v", interval, timeout, err)
		}
	}
	f("30s", "29s", true)
	f("30s", "30s", false)
	f("30s", "31s", false)
	f("30s", "0s", false)
	f("1s", "500ms", true)
	f("25h", "1s", false)
}
