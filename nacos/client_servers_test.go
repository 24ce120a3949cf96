package nacos

import (
	"strings"
	"testing"
)

func TestParseServers(t *testing.T) {
	f := func(list, want string) {
		t.Helper()
		got, err := parseServers([]string{list})
		var words []string
		for _, a := range got {
			words = append(words, a.String())
		}
		if text := strings.Join(words, " "); err != nil || text != want {
			t.Errorf("%q: got %s %v, want %s", list, text, err, want)
		}
	}
	f("nacos", "http://nacos:8848/nacos")
	f("nacos:8848", "http://nacos:8848/nacos")
	f("http://nacos", "http://nacos:8848/nacos")
	f("http://nacos/", "http://nacos:8848/nacos")
	f("HTTPS://nacos.example.com:443/", "https://nacos.example.com:443/nacos")
	f("https://nacos/ctx/", "https://nacos:8848/ctx")
	f("http://10.0.0.1:80/a/b", "http://10.0.0.1:80/a/b")
	f(" a:1 ,, b:2,", "http://a:1/nacos http://b:2/nacos")
	f("a,http://a:8848,a:8848/nacos/", "http://a:8848/nacos") // one server is asked once a round
	f("nacos_1.my-net.:8848", "http://nacos_1.my-net.:8848/nacos")
	// alibaba/nacos#9269: addresses split at their first colon.
	f("[2001:db8::1]:8848,2001:db8::2,127.0.0.1:8848,nacos:8848,[::1]",
		"http://[2001:db8::1]:8848/nacos http://[2001:db8::2]:8848/nacos http://127.0.0.1:8848/nacos http://nacos:8848/nacos http://[::1]:8848/nacos")
	f("2001:db8::1:8848", "http://[2001:db8::1:8848]:8848/nacos")
	f("http://[::1]:9/x", "http://[::1]:9/x")
	f("http://2001:db8::5/x", "http://[2001:db8::5]:8848/x")
	f("[fe80::1%eth0]:8848,[fe80::1%25eth0]", "http://[fe80::1%25eth0]:8848/nacos")
}

func TestParseServersRefuses(t *testing.T) {
	f := func(list string, want ...string) {
		t.Helper()
		got, err := parseServers([]string{list})
		if err == nil {
			t.Fatalf("%q: got %v, want an error", list, got)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: error %q does not say %q", list, err, w)
			}
		}
	}
	f("", "no registry given", "http://host:8848")
	f(" , ", "no registry given")
	f("ftp://nacos:21", "http or https", "ftp://nacos:21")
	f("nacos:port", "1 to 65535", "port")
	f("nacos:0", "1 to 65535")
	f("nacos:65536", "1 to 65535")
	f("nacos:+80", "1 to 65535")
	f("nacos:", "1 to 65535")
	f("http://:8848", "host is missing")
	f("[::1", "[2001:db8::1]:8848")
	f("[::1]8848", "[2001:db8::1]:8848")
	f("[10.0.0.1]:8848", "no IPv6 address")
	f("2001:db8::zz", "no IPv6 address")
	f("a b:8848", "host name")
	f("nacos‐1:8848", "host name", "‐") // alibaba/nacos#5399: a typographic hyphen
	f("http://nacos:8848/nacos?x=1", "context path")
	f("http://nacos:8848/#", "context path")
	f("http://nacos:8848/a%2Fb", "context path")
	f("http://nacos:8848//a", "context path")
	f("ftp://a,nacos:0", "ftp://a", "nacos:0") // all faults at once
}

func TestParseServersHidesAPassword(t *testing.T) {
	for _, word := range []string{"http://nacos:canary-pw@host:8848", "nacos:canary-pw@host"} {
		_, err := parseServers([]string{word})
		if err == nil || strings.Contains(err.Error(), "canary-pw") {
			t.Errorf("%q: got %v, want an error that does not repeat the password", word, err)
		}
	}
}

// Whatever is taken is printed so that it is taken again as the same server.
func FuzzParseServer(f *testing.F) {
	for _, seed := range []string{
		"http://nacos:8848/nacos", "[2001:db8::1]:8848", "2001:db8::1:8848", "[fe80::1%25eth0]:1", "https://a/b/",
		"a:1,b:2", "http://[::ffff:1.2.3.4]:5/%41", "x://", "[]:1", "http://a/%", "::", "a//",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		a, err := parseServer(word)
		if err != nil {
			return
		}
		again, err := parseServer(a.String())
		if err != nil || again != a {
			t.Errorf("%q became %q, which is %+v %v and not %+v", word, a, again, err, a)
		}
	})
}
