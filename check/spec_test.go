package check

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseSpecIsReadBack(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		s, err := ParseSpec(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			return
		}
		if got := s.String(); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
		again, err := ParseSpec(s.String())
		if err != nil || again != s {
			t.Errorf("%s: read back as %+v, %v", s, again, err)
		}
	}
	f("http://:8080/healthz", "http://:8080/healthz")
	f("HTTP://Example.COM", "http://example.com/")
	f("http://:8080", "http://:8080/")
	f("http://:8080?a=b", "http://:8080/?a=b")
	f("http:///healthz", "http:///healthz")
	f("http://:/healthz", "http:///healthz")
	f("https://10.0.0.7:8443/a/../b//c%2Fd", "https://10.0.0.7:8443/a/../b//c%2Fd")
	f("http://:8080/a%20b?q=%zz", "http://:8080/a%20b?q=%zz")
	f("http://[2001:DB8::7]:8080/", "http://[2001:db8::7]:8080/")
	f("http://[::1]/", "http://[::1]/")
	f("tcp://[fe80::1%25eth0]:80", "tcp://[fe80::1%25eth0]:80")
	f("tcp://[fe80::1%eth0]:80", "tcp://[fe80::1%25eth0]:80")
	f("tcp://:3306", "tcp://:3306")
	f("tcp://db-0.db_x.svc.:3306#full", "tcp://db-0.db_x.svc.:3306#full")
	f("tcp://:3306#full=false", "tcp://:3306")
	f("tcp:", "tcp://")
	f("exec:/opt/app/alive.sh", "exec:/opt/app/alive.sh")
	f("exec:///opt/app/alive.sh?arg=--deep&arg=x&arg=", "exec:/opt/app/alive.sh?arg=--deep&arg=x&arg=")
	f("exec:/a%20b%3Fc?arg=%26%20%23&env=A=b=c&env=JAVA_HOME", "exec:/a%20b%3Fc?arg=%26%20%23&env=A=b=c&env=JAVA_HOME")
	f("file:/run/app/heartbeat#age=1m", "file:/run/app/heartbeat#age=1m")
	f("file:///run/app/heart%20beat", "file:/run/app/heart%20beat")
	f("push:", "push:")
	f("push:orders#ttl=45s", "push:orders#ttl=45s")
	f("none:", "none:")
	f("none:#timeout=1s", "none:#timeout=1s")
	f("http://:1/#timeout=800ms&status=200-299,401&body=UP", "http://:1/#body=UP&status=200-299,401&timeout=800ms")
	f("http://:1/#header=X-A:1&header=Host:legacy.example&header=X-A:2&header=X-E:", "http://:1/#header=X-A:1&header=Host:legacy.example&header=X-A:2&header=X-E:")
	f("http://:1/#match=^a%26b+c%25%20d$", "http://:1/#match=^a%26b+c%25%20d$")
	f("http://:1/#match=a#b", "http://:1/#match=a%23b")
	f("http://:1/#insecure=true&ca=/etc/ca.pem&servername=A.test&redirects=3&method=post", "http://:1/#ca=/etc/ca.pem&insecure&method=post&redirects=3&servername=A.test")
	f("http://:1/#json=status==UP&json=/a~1b/0==true", "http://:1/#json=status==UP&json=/a~1b/0==true")
	f("http://:1/#&&body=x&", "http://:1/#body=x")
}

func TestParseSpecFaults(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		s, err := ParseSpec(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error with %q", raw, s, err, want)
		}
	}
	f("", "it must begin with")
	f("healthz", "it must begin with")
	f("ftp://:21", "it must begin with")
	f("http:8080", "two slashes are missing")
	f("http://:8080/a b", `byte 14 is ' ': write a blank as %20`)
	f("http://:8080/a\r\nX: y", `byte 14 is '\r'`)
	f("http://:808O/", `port "808O" is not a number`)
	f("http://:0/", `port "0" is not a number`)
	f("http://:65536/", `port "65536" is not a number`)
	f("http://2001:db8::7:8080/", "written [2001:db8::7]:8080")
	f("http://[::1:8080/", "written [2001:db8::7]:8080")
	f("http://[::1]8080/", "written [2001:db8::7]:8080")
	f("http://[10.0.0.7]:80/", "written [2001:db8::7]:8080")
	f("http://[::g]:80/", `"::g" is no IPv6 address`)
	f("http://a*b/", `holds '*'`)
	f("http://nacos\u2010demo/", "holds '\u2010'")
	f("http://"+strings.Repeat("a", 254)+"/", "at most 253 bytes")
	f("http://user:hunter2@h/", "use #header=Authorization")
	f("tcp://db", "needs a port")
	f("tcp://db:3306/x", `port "3306/x"`)
	f("exec:alive.sh", "must be absolute")
	f("exec:", "must be absolute")
	f("exec://host/alive.sh", "must be absolute")
	f("exec:/a?args=x", `"args" after the question mark`)
	f("exec:/a?arg", "arg needs a value")
	f("exec:/a?env==x", "env needs a value")
	f("exec:/a?arg=a%00b", "NUL")
	f("exec:/a%00b", "NUL")
	f("exec:/a%", "write %25")
	f("exec:/a?env=SIDEBEAT_PASSWORD", "not passed on")
	f("file:heartbeat", "must be absolute")
	f("push:a/b", `holds '/'`)
	f("push:"+strings.Repeat("a", 129), "at most 128 bytes")
	f("none:x", "too much")
}

func TestParseSpecOptionFaults(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		s, err := ParseSpec(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error with %q", raw, s, err, want)
		}
	}
	f("http://:1/#statsu=200", `unknown option "statsu"; did you mean status?`)
	f("http://:1/#Timeout=1s", `did you mean timeout?`)
	f("tcp://:1#status=200", `option "status" does not apply to tcp checks`)
	f("file:/a#ttl=1s", `option "ttl" does not apply to file checks`)
	f("http://:1/#status=200&status=201", `option "status" is given twice`)
	f("http://:1/#status", `option "status" needs a value`)
	f("http://:1/#insecure=yes", "it is true, false, or stands alone")
	f("http://:1/#timeout=5", `option "timeout" is "5": it is a time with a unit`)
	f("http://:1/#timeout=0s", "over 0 and at most 10m0s")
	f("http://:1/#timeout=-1s", "over 0 and at most 10m0s")
	f("http://:1/#timeout=1d", "a time with a unit")
	f("http://:1/#timeout=11m", "at most 10m0s")
	f("file:/a#age=0s", "over 0 and at most 24h")
	f("http://:1/#status=2xx", "written 200-399,401")
	f("http://:1/#status=399-200", "written 200-399,401")
	f("http://:1/#status=", "written 200-399,401")
	f("http://:1/#status=200,", "written 200-399,401")
	f("http://:1/#status=99", "written 200-399,401")
	f("http://:1/#method=G%20T", "method")
	f("http://:1/#method=CONNECT", "method")
	f("http://:1/#header=X", "written name:value")
	f("http://:1/#header=X%20Y:1", `"X Y" is no name of a header`)
	f("http://:1/#headerfile=X", "written name:/path")
	f("http://:1/#headerfile=X:token", "headerfile=X:...: the path must be absolute")
	f("https://:1/#ca=ca.pem", "ca=...: the path must be absolute")
	f("http://:1/#headerfile=TE:/run/token", "header TE is set by the check itself")
	f("http://:1/#header=X:a%0d%0aY:b", "control byte")
	f("http://:1/#header=content-length:5", "set by the check itself")
	f("http://:1/#header=Host:", "once and not empty")
	f("http://:1/#header=Host:a&header=host:b", "once and not empty")
	f("http://:1/#body=", "body needs a text")
	f("http://:1/#match=(", "no regular expression")
	f("http://:1/#json=status", "written path==value")
	f("http://:1/#json===UP", "written path==value")
	f("http://:1/#method=HEAD&body=UP", "brings no body")
	f("http://:1/#redirects=21", "from 0 to 20")
	f("http://:1/#redirects=-1", "from 0 to 20")
	f("http://:1/#ca=ca.pem", "must be absolute")
	f("http://:1/#body=%", "write %25")
	f("exec:/a#output=65537", "from 0 to 65536")
}

func TestParseSpecErrorKeepsSecrets(t *testing.T) {
	_, err := ParseSpec("http://:8080/x?token=hunter2#header=Authorization:hunter2&statsu=1")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestParseSpecs(t *testing.T) {
	specs, err := ParseSpecs(" http://:1/a\ttcp://:2\n none: ")
	var got []string
	for _, s := range specs {
		got = append(got, s.String())
	}
	if diff := cmp.Diff([]string{"http://:1/a", "tcp://:2", "none:"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if specs, err := ParseSpecs("  "); len(specs) != 0 || err != nil {
		t.Errorf("blank: got %v, %v", specs, err)
	}
	specs, err = ParseSpecs("ftp://x tcp://:2 file:y")
	if err == nil || specs != nil || !strings.Contains(err.Error(), "ftp://x") || !strings.Contains(err.Error(), "file:y") {
		t.Errorf("got %v, %v, want both faults", specs, err)
	}
}

func TestAt(t *testing.T) {
	f := func(raw, host string, port uint16, want string) {
		t.Helper()
		if got := must(t, raw).At(host, port).String(); got != want {
			t.Errorf("%s at %s %d: got %s, want %s", raw, host, port, got, want)
		}
	}
	f("http:///healthz#body=UP", "10.0.0.7", 8080, "http://10.0.0.7:8080/healthz#body=UP")
	f("http://evil.example:9090/healthz", "10.0.0.7", 8080, "http://10.0.0.7:9090/healthz")
	f("https://[::1]/", "2001:db8::7", 8443, "https://[2001:db8::7]:8443/")
	f("tcp:", "10.0.0.7", 3306, "tcp://10.0.0.7:3306")
	f("exec:/a", "10.0.0.7", 8080, "exec:/a")
	f("file:/a", "10.0.0.7", 8080, "file:/a")
	f("push:a", "10.0.0.7", 8080, "push:a")
	f("none:", "10.0.0.7", 8080, "none:")
}

func TestSpecAccessors(t *testing.T) {
	if s := must(t, "https://:1/#timeout=1500ms"); s.Scheme() != "https" || s.Timeout() != 1500*time.Millisecond {
		t.Errorf("got %s %v", s.Scheme(), s.Timeout())
	}
	if s := TCP("10.0.0.7", 80); s != must(t, "tcp://10.0.0.7:80") || s.Timeout() != 0 {
		t.Errorf("got %v", s)
	}
}

func TestLabelHidesSecrets(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		if got := must(t, raw).Label(); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	f("http://:1/a?token=hunter2#header=Authorization:hunter2&header=Host:a.test&body=UP", "http://:1/a?***#body=UP&header=Authorization:***&header=Host:a.test")
	f("exec:/a?arg=x&env=PW=hunter2&env=HOME", "exec:/a?arg=x&env=PW=***&env=HOME")
	f("tcp://:1#timeout=1s", "tcp://:1#timeout=1s")
}

func TestEscape(t *testing.T) {
	text := "a b&c=d+e%#\r\n\x00\xff\u202e"
	s := must(t, "http://:1/#body="+Escape(text))
	if got := splitOptions(s.options)[0].value; got != text {
		t.Errorf("got %q, want %q", got, text)
	}
}

func must(t testing.TB, raw string) Spec {
	t.Helper()
	s, err := ParseSpec(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever parses is written as something that parses to the same, and what is
// shown in logs is printable ASCII where the target is.
func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{
		"http://:8080/healthz#status=200-399&body=UP&timeout=800ms", "https://[fe80::1%25eth0]:1/?a#header=A:b&insecure",
		"tcp://h:1#full", "exec:/a%20b?arg=%26&env=A=b#output=1", "file:///a#age=1h", "push:a.b#ttl=1s", "none:",
		"http://:1/#match=a%26b&json=/a~1b==c&redirects=3", "exec:/a%3F?arg=", "http://:1/%zz#body=%ff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		s, err := ParseSpec(raw)
		if err != nil {
			if s != (Spec{}) {
				t.Fatalf("%q: a Spec beside an error: %+v", raw, s)
			}
			return
		}
		again, err := ParseSpec(s.String())
		if err != nil || again != s {
			t.Fatalf("%q: written %q, read back %+v, %v, want %+v", raw, s, again, err, s)
		}
		if words, err := ParseSpecs(s.String() + " " + s.String()); err != nil || len(words) != 2 || words[0] != s || words[1] != s {
			t.Fatalf("%q: read from a list as %v, %v", raw, words, err)
		}
		if strings.ContainsFunc(s.Label(), func(r rune) bool { return r <= ' ' }) {
			t.Fatalf("%q: label %q", raw, s.Label())
		}
		at := s.At("10.0.0.7", 80)
		if read, err := ParseSpec(at.String()); err != nil || read != at {
			t.Fatalf("%q at 10.0.0.7: %q is read back as %+v, %v", raw, at, read, err)
		}
	})
}
