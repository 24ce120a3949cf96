package nacos

import (
	"encoding/json"
	"maps"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/registry"
)

func TestDecimalIsWrittenAsJavaDoes(t *testing.T) {
	f := func(number float64, want string) {
		t.Helper()
		got, err := json.Marshal(decimal(number))
		if err != nil || string(got) != want {
			t.Errorf("%v is written %s (%v), want %s", number, got, err, want)
		}
		var back decimal
		if err := json.Unmarshal(got, &back); err != nil || float64(back) != number && !math.IsNaN(number) {
			t.Errorf("%s reads back as %v (%v)", got, back, err)
		}
	}
	f(0, "0.0")
	f(1, "1.0")
	f(2.5, "2.5")
	f(0.1, "0.1")
	f(10000, "10000.0")
	f(0.001, "0.001")
	f(0.0005, "5.0E-4")
	f(12345678, "1.2345678E7")
	f(1e10, "1.0E10")
	f(math.NaN(), `"NaN"`)
}

func TestMetadataInBothForms(t *testing.T) {
	f := func(text string, want map[string]string) {
		t.Helper()
		got, err := parseMetadata(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	f("", map[string]string{})
	f("  ", map[string]string{})
	f(`{}`, map[string]string{})
	f(`null`, map[string]string{})
	f(`{"zone":"a","n":1,"x":1.50,"b":true,"gone":null}`, map[string]string{"zone": "a", "n": "1", "x": "1.50", "b": "true"})
	f(`{"k":"a=b,c\"d"}`, map[string]string{"k": `a=b,c"d`})
	f("zone=b,env=test", map[string]string{"zone": "b", "env": "test"})
	f("a=1,", map[string]string{"a": "1"})
	f("a=b=", map[string]string{"a": "b"}) // as String.split has it
	f("=v", map[string]string{"": "v"})

	refused := func(text string) {
		t.Helper()
		got, err := parseMetadata(text)
		if err == nil {
			t.Errorf("%q is taken as %v", text, got)
		} else if want := "metadata format incorrect:" + text; err.Error() != want {
			t.Errorf("%q: error %q, want %q", text, err, want)
		}
	}
	refused("k=")
	refused("k=a=b")
	refused("k")
	refused("a=1,,b=2")
	refused("{bad")
	refused(`{"a":{"b":1}}`)
	refused(`{"a":[1]}`)
	refused(`[1,2]`)
}

func TestPreservedMillisFallBack(t *testing.T) {
	f := func(value string, want int64) {
		t.Helper()
		if got := millis(map[string]string{metaTimeout: value}, metaTimeout, 15000); got != want {
			t.Errorf("%q is %d, want %d", value, got, want)
		}
	}
	f("3000", 3000)
	f("0", 0)
	f("", 15000)
	f("15s", 15000)
	f("-1", 15000)
	f("99999999999999999999", 15000)
}

func TestPageSurvivesTheWire(t *testing.T) {
	service := registry.Service{Namespace: "public", Group: "G", Name: "db"}
	want := registry.Page{
		Instances: []registry.Instance{{
			Key:    registry.Key{Service: service, Cluster: "C1", IP: "2001:db8::1", Port: 3306},
			Weight: 2.5, Enabled: true, Metadata: map[string]string{"a": "<&>"}, Revision: math.MaxUint64,
		}},
		Checkers: map[registry.Cluster]registry.Checker{
			{Service: service, Name: "C1"}: {Type: "HTTP", Path: "/h", Headers: "A:1", Port: 80, UseInstancePort: true},
		},
		Next:   "next",
		Failed: []registry.Service{{Namespace: "n", Group: "g", Name: "s"}},
	}
	text, err := encode(toPageJSON(want))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "<&>") {
		t.Errorf("%s escapes what Jackson leaves alone", text)
	}
	var j pageJSON
	if err := json.Unmarshal(text, &j); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, j.page()); diff != "" {
		t.Errorf("page changed on its way (-want +got):\n%s", diff)
	}
}

func TestScanBeat(t *testing.T) {
	f := func(text, ip string, port int, ephemeral bool) {
		t.Helper()
		b, ok := scanBeat([]byte(text))
		if !ok || string(b.ip) != ip || b.port != port || b.ephemeral != ephemeral {
			t.Errorf("%s: %q %d %v, ok %v", text, b.ip, b.port, b.ephemeral, ok)
		}
	}
	f(javaBeat, "10.0.0.1", 8080, true)
	f(`{}`, "", 0, true)
	f(` { "ip" : "::1" , "port" : 1 , "ephemeral" : false } `, "::1", 1, false)
	f(`{"zzz":-1.5,"cpu":0,"ak":"a\"b\u00e9","metadata":{}}`, "", 0, true)

	left := func(text string) {
		t.Helper()
		if b, ok := scanBeat([]byte(text)); ok {
			t.Errorf("%s is judged at first sight: %+v", text, b)
		}
	}
	left(`{"ip":`)
	left(`hello`)
	left(``)
	left(`{"ip":"a\u0062"}`)
	left(`{"port":"8080"}`)
	left(`{"port":65536}`)
	left(`{"port":01}`)
	left(`{"port":-1}`)
	left(`{"metadata":{"a":{"b":1}}}`)
	left(`{"metadata":null}`)
	left(`{"ip":"a"}x`)
	left(`{"ip":"a",}`)
	left(`{"a":1 "b":2}`)
	left("{\"ak\":\"a\nb\"}")
}

const javaBeat = `{"cluster":"DEFAULT","ip":"10.0.0.1","metadata":{"v":"2","n":1},"port":8080,"scheduled":true,` +
	`"serviceName":"DEFAULT_GROUP@@b1","stopped":false,"weight":9.5}`

func TestReadBeatAsJacksonDoes(t *testing.T) {
	f := func(text string, want beatDetails) {
		t.Helper()
		got, err := readBeat([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(beatDetails{}, beat{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	f(javaBeat, beatDetails{
		beat{[]byte("10.0.0.1"), 8080, true}, "DEFAULT", 9.5, map[string]string{"v": "2", "n": "1"},
	})
	f(`{"port":"8080","IP":"no","ip":"\u0061","weight":"2","ephemeral":"false","metadata":null,"x":[1]} tail`,
		beatDetails{beat{[]byte("a"), 8080, false}, "", 2, map[string]string{}})
	f(`{"ip":null,"port":null,"weight":1e1}`, beatDetails{beat{[]byte{}, 0, true}, "", 10, nil})

	refused := func(text string) {
		t.Helper()
		if got, err := readBeat([]byte(text)); err == nil {
			t.Errorf("%s is taken as %+v", text, got)
		}
	}
	refused(`{"ip":`)
	refused(`hello`)
	refused(`[]`)
	refused(`{"metadata":{"a":{"b":1}}}`)
	refused(`{"metadata":1}`)
	refused(`{"ip":{}}`)
	refused(`{"port":"x"}`)
	refused(`{"weight":"x"}`)
	refused(`{"ephemeral":"maybe"}`)
}

// FuzzBeat holds the quick reader to the slow one.
func FuzzBeat(f *testing.F) {
	f.Add(javaBeat)
	f.Add(`{"ip":"a","ip":"b","port":1,"port":2}`)
	f.Add(`{"ephemeral":false,"metadata":{"a":true,"b":-0.5},"x":"\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		quick, ok := scanBeat([]byte(text))
		if !ok {
			_, _ = readBeat([]byte(text)) // must not panic
			return
		}
		slow, err := readBeat([]byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "weight") { // not looked at in a hurry
				return
			}
			t.Fatalf("%q: taken at first sight, refused at second: %v", text, err)
		}
		if string(quick.ip) != string(slow.ip) || quick.port != slow.port || quick.ephemeral != slow.ephemeral {
			t.Fatalf("%q: %q:%d %v at first sight, %q:%d %v at second", text,
				quick.ip, quick.port, quick.ephemeral, slow.ip, slow.port, slow.ephemeral)
		}
	})
}

// FuzzMetadata: what was read can be written and read again.
func FuzzMetadata(f *testing.F) {
	for _, s := range []string{`{"a":"1","b":2.50,"c":true,"d":null}`, "a=1,b=2", "k=", "{bad", `{"a":{"b":1}}`, "=v,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetadata(text)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		again, err := metadataJSON(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseMetadata(again)
		if err != nil || !maps.Equal(m, back) {
			t.Fatalf("%q reads as %v, written %s, read back %v (%v)", text, m, again, back, err)
		}
	})
}

// FuzzChecker: what was read is one of the four types, and shows again as itself.
func FuzzChecker(f *testing.F) {
	for _, s := range []string{`{"type":"TCP"}`, `{"type":"HTTP","path":"/h","headers":"A:1|B:2"}`, `NONE`, `{"type":`, `{"type":"tcp"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := readChecker(text)
		if err != nil {
			return
		}
		shown, err := encode(toChecker(k))
		if err != nil {
			t.Fatal(err)
		}
		if k.Type == checkHTTP && k.ExpectedStatus == 0 {
			k.ExpectedStatus = 200 // what is shown when none was given
		}
		if back, err := readChecker(string(shown)); err != nil || back != k {
			t.Fatalf("%q reads as %+v, shown as %s, read back as %+v (%v)", text, k, shown, back, err)
		}
	})
}

func TestReadChecker(t *testing.T) {
	f := func(text string, want registry.Checker) {
		t.Helper()
		if got, err := readChecker(text); err != nil || got != want {
			t.Errorf("%s is %+v (%v), want %+v", text, got, err, want)
		}
	}
	f(`{"type":"TCP"}`, registry.Checker{Type: "TCP"})
	f(`{"type":"MYSQL","user":"u","pwd":"p","cmd":"c"}`, registry.Checker{Type: "MYSQL", User: "u", Password: "p", Command: "c"})
	f(`{"type":"HTTP","path":"/h","headers":"A:1|B:2","expectedResponseCode":200}`,
		registry.Checker{Type: "HTTP", Path: "/h", Headers: "A:1|B:2", ExpectedStatus: 200})
	f(`{"type":"tcp"}`, registry.Checker{Type: "NONE"})
	f(`{}`, registry.Checker{Type: "NONE"})
	f(`{"type":"PING"}`, registry.Checker{Type: "NONE"})

	refused := func(text string) {
		t.Helper()
		if got, err := readChecker(text); err == nil {
			t.Errorf("%s is taken as %+v", text, got)
		}
	}
	refused("NONE")
	refused(`{"type":`)
	refused(`{"type":{}}`)
	refused(`{"type":"HTTP","path":[]}`)
	refused(`{"type":"HTTP","expectedResponseCode":"many"}`)
}
