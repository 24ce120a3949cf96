package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/setting"
)

// loaded reads the settings of these variables, beside the two that are needed.
func loaded(t *testing.T, pairs ...string) (Config, error) {
	t.Helper()
	pairs = append([]string{"SERVICE", "orders", "ADDRESS", "10.0.0.7:8080"}, pairs...)
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv("SIDEBEAT_"+pairs[i], pairs[i+1])
	}
	var c Config
	_, err := setting.Load(&c)
	return c, err
}

// oracle/oracle-db-appdev-monitoring#292, kelseyhightower/envconfig#180:
// nothing is expanded in a value, and it is cut at the first sign only.
func TestValuesAreTakenWhole(t *testing.T) {
	want := map[string]string{"cost": "$5", "home": "${HOME}", "other": "${A:-b}", "odd": "pa$USERx$$y", "url": "http://h:80/a?x=1", "time": "12:30:00", "v6": "[2001:db8::7]:80", "empty": ""}
	const text = "cost=$5,home=${HOME},other=${A:-b},odd=pa$USERx$$y,url=http://h:80/a?x=1,time=12:30:00,v6=[2001:db8::7]:80,empty=,"
	c, err := loaded(t, "METADATA", text, "CHECK", "exec:/bin/sh?arg=-c&arg=echo%20$HOME")
	if err != nil {
		t.Fatal(err)
	}
	check := func(plans []plan, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plans[0].metadata); diff != "" {
			t.Error(diff)
		}
		if got := plans[0].specs[0].String(); !strings.Contains(got, "arg=echo%20$HOME") {
			t.Errorf("the check is %s", got)
		}
	}
	check(c.declared())
	c.Apps = filepath.Join(t.TempDir(), "apps.yaml")
	file := "- service: orders\n  address: 10.0.0.7:8080\n  metadata: '" + text + "'\n"
	if err := os.WriteFile(c.Apps, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	check(c.declared())
}

// hashicorp/consul#5834 and kelseyhightower/envconfig#71: what is set but empty
// is not set, and no time that cannot be used is replaced by a default.
func TestTimesAndEmptyValues(t *testing.T) {
	f := func(want string, pairs ...string) {
		t.Helper()
		t.Run("", func(t *testing.T) {
			_, err := loaded(t, pairs...)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: got %v, want %q", pairs, err, want)
			}
		})
	}
	f("", "CHECK_INTERVAL", "30s", "CHECK_TIMEOUT", "29s")
	f("", "CHECK_INTERVAL", "30s", "CHECK_TIMEOUT", "1.5s")
	f("SIDEBEAT_CHECK_TIMEOUT=30s: it must be shorter", "CHECK_INTERVAL", "30s", "CHECK_TIMEOUT", "30s")
	f("SIDEBEAT_CHECK_TIMEOUT=31s: it must be shorter", "CHECK_INTERVAL", "30s", "CHECK_TIMEOUT", "31s")
	f("SIDEBEAT_CHECK_TIMEOUT=", "CHECK_TIMEOUT", "0s")
	f("SIDEBEAT_CHECK_TIMEOUT=", "CHECK_TIMEOUT", "-1s")
	f(`SIDEBEAT_CHECK_TIMEOUT="30": a duration needs a unit`, "CHECK_TIMEOUT", "30")
	f(`SIDEBEAT_CHECK_TIMEOUT="1d": it is no duration`, "CHECK_TIMEOUT", "1d")
	f("SIDEBEAT_SERVICE", "SERVICE", "")
	f("SIDEBEAT_SERVICE", "SERVICE", " ")
	c, err := loaded(t, "CHECK_TIMEOUT", "", "EPHEMERAL", "", "ON_DOWN", "")
	if err != nil || c.CheckTimeout != time.Second || !c.Ephemeral || c.OnDown != Unhealthy {
		t.Errorf("got %v %+v, want the defaults", err, c.App)
	}
}
