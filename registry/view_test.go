package registry

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// lists gives "ip+" or "ip-" for what a view shows, "!" for protected.
func lists(v View) string {
	var all []string
	for _, one := range v.Instances {
		sign := map[bool]string{true: "+", false: "-"}[one.Healthy]
		all = append(all, strings.TrimPrefix(one.IP, "10.0.0.")+sign)
	}
	if v.Protected {
		all = append(all, "!")
	}
	return strings.Join(all, " ")
}

// The rule of ServiceUtil.selectInstancesWithHealthyProtection; the first calls
// are what the recordings 07-protection and 07-no-protection show.
func TestProtection(t *testing.T) {
	f := func(threshold float64, states string, healthyOnly bool, want string) {
		t.Helper()
		live(t, func(l life) {
			l.Helper()
			service := per("prot", "1").Service
			for i, state := range states {
				one := per("prot", fmt.Sprint(i+1))
				one.Healthy, one.Enabled = state == '+', state != 'd'
				l.register(one)
			}
			if !math.IsInf(threshold, -1) {
				l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: service, ProtectThreshold: threshold}))
			}
			if got := lists(l.View(service, Query{HealthyOnly: healthyOnly})); got != want {
				l.Errorf("threshold %v of %s: got %q, want %q", threshold, states, got, want)
			}
		})
	}
	none := math.Inf(-1) // no service metadata at all
	f(none, "--", false, "1- 2-")
	f(none, "--", true, "")
	f(0, "++", false, "1+ 2+")
	f(0, "+-", false, "1+ 2-")
	f(0, "--", false, "1+ 2+ !")
	f(0, "--", true, "")
	f(0.5, "+-", false, "1+ 2+ !")
	f(0.5, "+-", true, "1+")
	f(0.5, "++-", false, "1+ 2+ 3-")
	f(1, "++", false, "1+ 2+ !")
	f(-3, "+-", false, "1+ 2-")
	f(-3, "--", false, "1+ 2+ !")
	f(0.33333333, "+--", false, "1+ 2+ 3+ !") // 1/3 is more than that, but not in 32 bits
	f(0.333333, "+--", false, "1+ 2- 3-")
	f(0.5, "+-dd", false, "1+ 2+ !")
	f(0.34, "+--d", false, "1+ 2+ 3+ !")
	f(0, "dd", false, "")
}

func TestProtectionIsOnlyForConsumers(t *testing.T) {
	live(t, func(l life) {
		one := per("prot", "1")
		one.Healthy = false
		l.register(one)
		l.ok(l.SetCluster(l.Context(), ClusterConfig{Cluster: Cluster{one.Service, "DEFAULT"}, Checker: Checker{Type: "NONE"}}))
		if got := lists(l.View(one.Service, Query{})); got != "1+ !" {
			l.Errorf("a configured cluster arms protection: got %q", got)
		}
		l.is(one.Key, "down")
		if all := l.All(one.Service); len(all) != 1 || all[0].Healthy {
			l.Errorf("All shows %v", all)
		}
		if page, err := l.List(l.Context(), ""); err != nil || page.Instances[0].Healthy {
			l.Errorf("List shows %v %v", page, err)
		}
	})
}

func TestViewFiltersAndOrders(t *testing.T) {
	live(t, func(l life) {
		for _, at := range []string{"9 east", "10 west", "100 east", "2 DEFAULT"} {
			last, cluster, _ := strings.Cut(at, " ")
			one := eph("orders", last)
			one.Cluster = cluster
			l.register(one)
		}
		odd := eph("orders", "")
		for _, ip := range []string{"web-2", "2001:db8::1", "web-1"} {
			odd.IP = ip
			l.register(odd)
		}
		service := odd.Service
		f := func(want string, clusters ...string) {
			t.Helper()
			if got := lists(l.View(service, Query{Clusters: clusters})); got != want {
				t.Errorf("%v: got %q, want %q", clusters, got, want)
			}
		}
		f("2+ 9+ 10+ 100+ 2001:db8::1+ web-1+ web-2+")
		f("9+ 100+", "east")
		f("9+ 10+ 100+", "west", "east")
		f("", "nowhere")
		if v := l.View(Service{"", "", "nothing"}, Query{}); v.Exists || v.Instances != nil {
			t.Errorf("got %+v", v)
		}
		if v := l.View(service, Query{}); !v.Exists || !v.Ephemeral {
			t.Errorf("got %+v", v)
		}
	})
}

func TestKindsAndTexts(t *testing.T) {
	live(t, func(l life) {
		l.register(eph("ke", "1"), per("kp", "3"))
		l.fails(l.Register(l.Context(), per("ke", "2")), ErrRefused, "Current service DEFAULT_GROUP@@ke is ephemeral service, can't register persistent instance.")
		l.fails(l.Register(l.Context(), eph("kp", "3")), ErrRefused, "Current service DEFAULT_GROUP@@kp is persistent service, can't register ephemeral instance.")
		service := per("kc", "").Service
		l.fails(l.UpdateService(l.Context(), ServiceConfig{Service: service}), ErrRefused, "service DEFAULT_GROUP@@kc not found!")
		l.fails(l.DeleteService(l.Context(), service), ErrNotFound, "service DEFAULT_GROUP@@kc not found!")
		l.fails(l.SetCluster(l.Context(), ClusterConfig{Cluster: Cluster{service, "C"}}), ErrRefused, "service not found:DEFAULT_GROUP@@kc")
		_, err := l.Describe(service)
		l.fails(err, ErrNotFound, "service not found, namespace: public, serviceName: DEFAULT_GROUP@@kc")
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: service}))
		l.fails(l.CreateService(l.Context(), ServiceConfig{Service: service}), ErrRefused, "specified service DEFAULT_GROUP@@kc already exists!")
		l.fails(l.Register(l.Context(), eph("kc", "6")), ErrRefused, "Current service DEFAULT_GROUP@@kc is persistent service, can't register ephemeral instance.")
		l.fails(l.DeleteService(l.Context(), per("kp", "").Service), ErrRefused, "Service DEFAULT_GROUP@@kp is not empty, can't be delete. Please unregister instance first")

		// The kind outlives the last instance, and goes with the service.
		l.ok(l.Deregister(l.Context(), eph("ke", "1").Key))
		l.fails(l.Register(l.Context(), per("ke", "2")), ErrRefused, "Current service DEFAULT_GROUP@@ke is ephemeral service, can't register persistent instance.")
		l.ok(l.DeleteService(l.Context(), eph("ke", "").Service))
		l.register(per("ke", "2"))

		bad := eph("x", "1")
		bad.Cluster = "a_b"
		l.fails(l.Register(l.Context(), bad), ErrRefused, "Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: a_b)")
		bad = eph("x", "1")
		bad.Metadata = map[string]string{KeyBeatInterval: "5000", KeyBeatTimeout: "3000", KeyDeleteTimeout: "6000"}
		l.fails(l.Register(l.Context(), bad), ErrRefused, "Instance 'heart beat interval' must less than 'heart beat timeout' and 'ip delete timeout'.")
		bad.Name = ""
		l.fails(l.Register(l.Context(), bad), ErrRefused, "Param 'serviceName' is required.")
	})
}

func TestEmptyServicesAreCleaned(t *testing.T) {
	live(t, func(l life) {
		created, emptied, busy := per("ecc", "").Service, eph("ece", "").Service, per("ecb", "").Service
		l.ok(l.CreateService(l.Context(), ServiceConfig{Service: created, Metadata: map[string]string{"a": "1"}}))
		l.register(eph("ece", "1"), per("ecp", "1"), per("ecb", "1"))
		l.ok(l.SetCluster(l.Context(), ClusterConfig{Cluster: Cluster{emptied, "DEFAULT"}}))
		l.pass(10 * time.Second)
		l.ok(l.Deregister(l.Context(), eph("ece", "1").Key))
		l.ok(l.Deregister(l.Context(), per("ecp", "1").Key))
		l.pass(20 * time.Second)
		l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: created})) // begins anew
		f := func(after time.Duration, want ...string) {
			t.Helper()
			l.pass(after)
			var got []string
			for _, service := range l.Services("", "") {
				got = append(got, service.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		f(38*time.Second, "ecb", "ecc", "ece", "ecp")
		f(4*time.Second, "ecb", "ecc")
		f(16*time.Second, "ecb", "ecc")
		f(4*time.Second, "ecb")
		f(1000*time.Second, "ecb")
		l.register(per("ece", "1"), eph("ecp", "1")) // the kind is free
		if info, err := l.Describe(emptied); err != nil || info.HasMetadata {
			l.Errorf("got %+v %v: what was set before is gone", info, err)
		}
		l.is(per("ecb", "1").Key, "up")
		if info, err := l.Describe(busy); err != nil || info.Instances != 1 || info.Healthy != 1 || info.HasMetadata {
			l.Errorf("got %+v %v", info, err)
		}
	})
}

func TestDescribe(t *testing.T) {
	live(t, func(l life) {
		one, two := per("db", "1"), per("db", "2")
		two.Cluster, two.Healthy = "east", false
		l.register(one, two)
		none := ClusterConfig{Cluster{one.Service, "C9"}, Checker{Type: "NONE", Port: 80}, map[string]string{"a": "1"}}
		l.ok(l.SetCluster(l.Context(), none))
		http := ClusterConfig{Cluster{one.Service, "east"}, Checker{Type: "HTTP", Path: "/h", Headers: "A:1|B:2", Port: 8081}, nil}
		l.ok(l.SetCluster(l.Context(), http))
		l.ok(l.UpdateService(l.Context(), ServiceConfig{Service: one.Service, ProtectThreshold: 0.25, Metadata: map[string]string{"k": "v"}, Selector: `{"type":"none"}`}))
		info, err := l.Describe(one.Service)
		want := ServiceInfo{
			ServiceConfig: ServiceConfig{Service: one.Service, ProtectThreshold: 0.25, Metadata: map[string]string{"k": "v"}, Selector: `{"type":"none"}`},
			Clusters: []ClusterConfig{ // C9 has no instances
				{Cluster{one.Service, "DEFAULT"}, Checker{Type: "TCP", Port: 80, UseInstancePort: true}, nil},
				http,
			},
			Instances: 2, Healthy: 1, HasMetadata: true,
		}
		if diff := cmp.Diff(want, info, cmpopts.EquateEmpty()); err != nil || diff != "" {
			l.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if c, exists := l.Cluster(none.Cluster); !exists || c.Checker != none.Checker || c.Metadata["a"] != "1" {
			l.Errorf("got %+v %v", c, exists)
		}
		if _, exists := l.Cluster(Cluster{one.Service, "DEFAULT"}); exists {
			l.Error("nobody configured DEFAULT")
		}
		page, err := l.List(l.Context(), "")
		if err != nil || len(page.Checkers) != 1 || page.Checkers[http.Cluster] != http.Checker {
			l.Errorf("got %v %v", page.Checkers, err)
		}
	})
}

func TestServicesAndNamespaces(t *testing.T) {
	live(t, func(l life) {
		for _, service := range []Service{{"dev", "g", "b"}, {"dev", "g", "a"}, {"dev", "h", "c"}, {"", "", "z"}, {"dev", "g2", "q"}} {
			one := eph("", "1")
			one.Service = service
			l.register(one)
		}
		f := func(namespace, group, want string) {
			t.Helper()
			if got := fmt.Sprint(l.Services(namespace, group)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		f("dev", "", "[dev/g@@a dev/g@@b dev/g2@@q dev/h@@c]")
		f("dev", "g", "[dev/g@@a dev/g@@b]")
		f("dev", "nothing", "[]")
		f("", "", "[DEFAULT_GROUP@@z]")
		f("nowhere", "", "[]")
		if got := l.Namespaces(); !slices.Equal(got, []string{"dev", "public"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestListRefusesACursorThatIsNone(t *testing.T) {
	s := NewStore()
	for _, from := range []string{"x", "AAAA", "%%%", strings.Repeat("A", 5000)} {
		if _, err := s.List(t.Context(), from); !errors.Is(err, ErrRefused) {
			t.Errorf("%.20q: got %v", from, err)
		}
	}
}

// As in the recording 01-update.
func TestInstanceID(t *testing.T) {
	if got, want := InstanceID(eph("upd", "1").Key), "10.0.0.1#8080#DEFAULT#DEFAULT_GROUP@@upd"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIDGoesAndComesWithEachRegistration(t *testing.T) {
	live(t, func(l life) {
		for _, one := range []Instance{eph("orders", "1"), per("db", "1")} {
			for _, noID := range []bool{true, false, true} {
				one.NoID = noID
				before := l.Version(one.Service)
				l.register(one)
				if got, err := l.Get(l.Context(), one.Key); err != nil || got.NoID != noID {
					l.Errorf("%s: NoID is %v (%v), want %v", one.Key, got.NoID, err, noID)
				}
				if l.Version(one.Service) == before {
					l.Errorf("%s: what a View shows changed, but not the version", one.Key)
				}
			}
		}
	})
}
