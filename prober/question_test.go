package prober

import (
	"strings"
	"testing"

	"github.com/sidebeat/sidebeat/registry"
)

func TestWhatIsAsked(t *testing.T) {
	f := func(metadata map[string]string, checker *registry.Checker, want, fault string) {
		t.Helper()
		var c registry.Checker
		if checker != nil {
			c = *checker
		}
		w := wantOf(metadata, c, checker != nil)
		if got := w.question.At("10.0.0.7", 8080).String(); got != want {
			t.Errorf("%v %+v: asks %s, want %s", metadata, c, got, want)
		}
		var said strings.Builder
		for _, err := range w.faults {
			said.WriteString(err.Error() + "\n")
		}
		if (fault == "") != (said.String() == "") || !strings.Contains(said.String(), fault) {
			t.Errorf("%v %+v: said %q, want %q", metadata, c, said.String(), fault)
		}
	}
	own := func(check string) map[string]string { return map[string]string{metaCheck: check} }

	// The cluster's checker, as Nacos stores it.
	f(nil, nil, "tcp://10.0.0.7:8080", "")
	f(nil, &registry.Checker{Type: "TCP", UseInstancePort: true, Port: 80}, "tcp://10.0.0.7:8080", "")
	f(nil, &registry.Checker{Type: "TCP", Port: 81}, "tcp://10.0.0.7:81", "")
	f(nil, &registry.Checker{Type: "TCP"}, "tcp://10.0.0.7:8080", "")
	f(nil, &registry.Checker{Type: "MYSQL", Port: 81}, "tcp://10.0.0.7:8080", "")
	f(nil, &registry.Checker{Type: "NONE"}, "none:", "")
	f(nil, &registry.Checker{Type: "tcp"}, "none:", "") // as in Nacos
	f(nil, &registry.Checker{Type: "HTTP", UseInstancePort: true}, "http://10.0.0.7:8080/#status=200", "")
	f(nil, &registry.Checker{Type: "HTTP", Path: "/h?x=1", Port: 81}, "http://10.0.0.7:81/h?x=1#status=200", "")
	f(nil, &registry.Checker{Type: "HTTP", Path: "h #1", UseInstancePort: true}, "http://10.0.0.7:8080/h%20%231#status=200", "")
	f(nil, &registry.Checker{Type: "HTTP", Path: "http://169.254.169.254/x", UseInstancePort: true},
		"http://10.0.0.7:8080/http://169.254.169.254/x#status=200", "")
	f(nil, &registry.Checker{Type: "HTTP", Path: "/h", Headers: "A:1| B : x:y|bad|", UseInstancePort: true},
		"http://10.0.0.7:8080/h#header=A:1&header=B:x:y&status=200", "")
	f(nil, &registry.Checker{Type: "HTTP", Path: "/h", Headers: "Connection:close", UseInstancePort: true},
		"http://10.0.0.7:8080/h#status=200", "header")
	f(nil, &registry.Checker{Type: "HTTP", Path: "/" + strings.Repeat("x", 5000), UseInstancePort: true},
		"http://10.0.0.7:8080/#status=200", "too long")

	// The instance's own word wins; its host never counts.
	f(own("http://169.254.169.254:9000/alive"), &registry.Checker{Type: "TCP"}, "http://10.0.0.7:9000/alive", "")
	f(own("http:///alive#status=200-299&timeout=1s"), nil, "http://10.0.0.7:8080/alive#status=200-299&timeout=1s", "")
	f(own("tcp://:9001"), nil, "tcp://10.0.0.7:9001", "")
	f(own("none:"), nil, "none:", "")

	// What is wrong falls back to the cluster's checker.
	f(own("nonsense"), &registry.Checker{Type: "TCP", Port: 81}, "tcp://10.0.0.7:81", "must begin with")
	f(own("exec:/bin/true"), nil, "tcp://10.0.0.7:8080", "http, https or tcp")
	f(own("file:/etc/passwd"), nil, "tcp://10.0.0.7:8080", "http, https or tcp")
	f(own("https:///x#ca=/etc/ssl/private/key.pem"), nil, "tcp://10.0.0.7:8080", `option "ca"`)
	f(own("http:///x#redirects=3"), nil, "tcp://10.0.0.7:8080", `option "redirects"`)
	f(own("http:///x#method=DELETE"), nil, "tcp://10.0.0.7:8080", `option "method"`)
}

func TestRiseAndFall(t *testing.T) {
	f := func(rise, fall string, wantRise, wantFall uint8, faults int) {
		t.Helper()
		w := wantOf(map[string]string{metaRise: rise, metaFall: fall}, registry.Checker{}, false)
		if w.rise != wantRise || w.fall != wantFall || len(w.faults) != faults {
			t.Errorf("rise %q fall %q: got %d %d, faults %v", rise, fall, w.rise, w.fall, w.faults)
		}
	}
	f("", "", 0, 0, 0)
	f("1", "255", 1, 255, 0)
	f("0", "256", 0, 0, 2)
	f("-1", "3.5", 0, 0, 2)
	f("5", "many", 5, 0, 1)
}

func FuzzWhatIsAsked(f *testing.F) {
	f.Add("http:///alive", "HTTP", "/h", "A:1|B:2", uint16(80))
	f.Add("tcp://[::1]:1#full", "TCP", "", "", uint16(0))
	f.Add("https://x/#header=a:b", "HTTP", "//evil", "Host:x|host:y", uint16(9))
	f.Fuzz(func(t *testing.T, own, kind, path, headers string, port uint16) {
		w := wantOf(map[string]string{metaCheck: own}, registry.Checker{Type: kind, Path: path, Headers: headers, Port: port}, true)
		asked := w.question.At("10.0.0.7", 8080).String()
		front, _, _ := strings.Cut(asked, "#")
		_, rest, remote := strings.Cut(front, "://")
		if remote && !strings.HasPrefix(rest, "10.0.0.7:") {
			t.Errorf("asks %s: another host", asked)
		}
		if !remote && asked != "none:" {
			t.Errorf("asks %s: that is not for a prober", asked)
		}
	})
}
