package nacos

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestForm(t *testing.T) {
	f := func(query, body, name, want string) {
		t.Helper()
		var form form
		form.read([]byte(query), []byte(body))
		if got := form.text(name); got != want {
			t.Errorf("query %q, body %q: %s is %q, want %q", query, body, name, got, want)
		}
	}
	f("a=1&b=2", "", "b", "2")
	f("a=1", "a=2&b=3", "a", "1") // the query wins
	f("a=1", "a=2&b=3", "b", "3")
	f("a=1&a=2", "", "a", "1") // the first wins
	f("a=&x=1", "a=2", "a", "")
	f("a=%20x%20", "", "a", "x")
	f("a=1+2%2B3", "", "a", "1 2+3")
	f("%61=1", "", "a", "1")
	f("a=%zz%4", "", "a", "%zz%4")
	f("a=%ff", "", "a", "\uFFFD")
	f("a=%e9t%E9&encoding=ISO-8859-1", "", "a", "été")
	f("a=%C3%A9&encoding=ISO-8859-1", "", "a", "é") // UTF-8 all the same
	f("a=%C3%A9&encoding=UTF-8", "", "a", "é")
	f("a", "", "a", "")
	f("a&b=1", "", "b", "1")
	f("&&=x&b=1&", "", "b", "1")
	f("a=b=c", "", "a", "b=c")
	f("", "", "a", "")
}

func TestFormAlias(t *testing.T) {
	var form form
	form.read([]byte("cluster=C2&clusterName="), nil)
	if got := form.text(paramCluster, paramClusterAlias); got != "C2" {
		t.Errorf("cluster is %q", got)
	}
	form.read([]byte("clusterName=C1&cluster=C2"), nil)
	if got := form.text(paramCluster, paramClusterAlias); got != "C1" {
		t.Errorf("cluster is %q", got)
	}
}

// TestFormTakesARawBeat: nacos-sdk-go 1.x sends the JSON of its beats as it
// is, fields in any order.
func TestFormTakesARawBeat(t *testing.T) {
	const beat = `{"ip":"10.1.1.1","port":8080,"metadata":{"k":"a&b=c+d %41","&ip=":"1"},"scheduled":false}`
	f := func(body string) {
		t.Helper()
		var form form
		form.read(nil, []byte(body))
		if got := form.text(paramBeat); got != beat {
			t.Errorf("%s: beat is %s", body, got)
		}
		if ns, name := form.text(paramNamespace), form.text(paramService); ns != "n" || name != "G@@s" {
			t.Errorf("%s: namespace %q, service %q", body, ns, name)
		}
	}
	f("namespaceId=n&serviceName=G@@s&beat=" + beat)
	f("beat=" + beat + "&namespaceId=n&serviceName=G@@s")
	f("serviceName=G@@s&beat=" + beat + "&namespaceId=n")
	f("serviceName=G@@s&beat=" + url.QueryEscape(beat) + "&namespaceId=n")
}

// FuzzForm: what the encoder of the standard library wrote is read back, and
// nothing panics on the rest.
func FuzzForm(f *testing.F) {
	f.Add("serviceName", "G@@s", "ip", "10.0.0.1", "namespaceId=n&beat={\"ip\":\"a&b\"}")
	f.Add("beat", `{"a":1}`, "beat", "{", "a=%&beat={&ip=1&beat={}")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, raw string) {
		var form form
		form.read([]byte(raw), []byte(raw))
		_ = form.text(k1)
		form.read([]byte(url.QueryEscape(k1)+"="+url.QueryEscape(v1)), []byte(url.QueryEscape(k2)+"="+url.QueryEscape(v2)))
		want := strings.ToValidUTF8(javaTrim(v1), "\uFFFD")
		if k1 == k2 && want == "" && v1 == "" {
			return
		}
		if got := form.text(k1); got != want {
			t.Fatalf("%q=%q reads as %q", k1, v1, got)
		}
	})
}

func javaTrim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// TestFormEndsARawBeat: the beat is one whole object, whatever stands in it.
func TestFormEndsARawBeat(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		var form form
		form.read(nil, []byte(body))
		if got := form.text(paramBeat); got != want {
			t.Errorf("%s: beat is %s, not %s", body, got, want)
		}
	}
	f(`beat={"a":{"b":"}&ip=%41"}}&ip=1`, `{"a":{"b":"}&ip=%41"}}`)
	f(`beat={"a":"\"}&ip=%41"}`, `{"a":"\"}&ip=%41"}`)
	f(`beat={"a":"%41"} &ip=1`, `{"a":"%41"}`)
	f(`beat={"a":"%41"}x`, `{"a":"A"}x`)
	f(`beat={"a":"%41"}&other=1`, `{"a":"A"}`)
	f(`beat={"a":"%41&ip=1`, `{"a":"A`)
	f(`beat={"a":%41}&ip=1`, `{"a":A}`)
}

// TestFormReadsBodiesOnce: no body makes the server look at its bytes again and
// again, and none makes it keep much.
func TestFormReadsBodiesOnce(t *testing.T) {
	f := func(what, body string) {
		t.Helper()
		var form form
		began := time.Now()
		form.read(nil, []byte(body))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s: %d bytes took %v", what, len(body), took)
		}
		form.get("absent")
		form.read([]byte("a=1"), nil)
		if cap(form.pairs) > keptPairs || cap(form.decoded) > keptDecoded {
			t.Errorf("%s: %d parameters and %d bytes are kept", what, cap(form.pairs), cap(form.decoded))
		}
	}
	f("a beat without end", `beat={"a":"`+strings.Repeat("&ip=", DefaultLimits.Body/4))
	f("beats without end", strings.Repeat(`beat={"&`, DefaultLimits.Body/8))
	f("names only", strings.Repeat("&", DefaultLimits.Body))
	f("encoded", "a="+strings.Repeat("%41", DefaultLimits.Body/3))
}
