package prober

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sidebeat/sidebeat/registry"
)

func TestScope(t *testing.T) {
	service := registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders/v1-eu"}
	f := func(include, exclude string, want bool) {
		t.Helper()
		list := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, ",")
		}
		in, err := newScope(&Probe{ProbeInclude: list(include), ProbeExclude: list(exclude)})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.holds(service); got != want {
			t.Errorf("include %q exclude %q: got %v, want %v", include, exclude, got, want)
		}
	}
	f("", "", true)
	f("public/DEFAULT_GROUP/orders/v1-eu", "", true)
	f("*/*/orders*", "", true)
	f("public/*/*eu", "", true)
	f("public/*/*us", "", false)
	f("pub*ic/*/o*s*eu", "", true)
	f("prod/*/*", "", false)
	f("prod/*/*,public/*/*", "", true)
	f("", "public/*/orders*", false)
	f("*/*/*", "*/OTHER/*", true)
	f("*/*/*", "*/*/*", false)
	if in, _ := newScope(&Probe{ProbeInclude: []string{"public/*/*"}}); !in.holds(registry.Service{Group: "G", Name: "s"}) {
		t.Error("no namespace is the public one")
	}
}

func TestPatternsAreRefused(t *testing.T) {
	for _, bad := range []string{"orders", "public/orders", "/g/s", "public//s", "public/g/"} {
		if _, err := parsePatterns([]string{bad}); err == nil || !strings.Contains(err.Error(), "namespace/group/service") {
			t.Errorf("%q: got %v, want the right form named", bad, err)
		}
	}
}

func TestGlobIsTheRegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "text")
		re := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$")
		if diff := cmp.Diff(re.MatchString(text), glob(pattern, text)); diff != "" {
			t.Fatalf("%s on %s: %s", pattern, text, diff)
		}
	})
}
