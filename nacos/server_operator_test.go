package nacos

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
)

const switchesPath = "/nacos/v1/ns/operator/switches"

// sets sets a switch and fails unless that is answered ok.
func (d dialer) sets(t *testing.T, entry, value string) {
	t.Helper()
	d.wants(t, 200, "ok", "PUT", switchesPath, "entry="+entry+"&value="+value)
}

func TestSwitchesInBeats(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const one = "serviceName=s&ip=10.0.0.1&port=80"
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", one)
		d.sets(t, "lightBeatEnabled", "false")
		d.sets(t, "clientBeatInterval", "7000")
		d.wants(t, 200, `{"clientBeatInterval":7000,"code":10200,"lightBeatEnabled":false}`, "PUT", "/nacos/v1/ns/instance/beat", one)
		d.wants(t, 200, `{"clientBeatInterval":7000,"code":20404,"lightBeatEnabled":false}`, "PUT", "/nacos/v1/ns/instance/beat", "serviceName=s&ip=10.0.0.2&port=80")
		d.wants(t, 200, `{"clientBeatInterval":7000,"code":10200,"lightBeatEnabled":false}`, "PUT", "/nacos/v1/ns/instance/beat", `serviceName=s&beat={"ip":"10.0.0.3","port":80}`)
		d.sets(t, "lightBeatEnabled", "true")
		d.sets(t, "clientBeatInterval", "5000")
		d.wants(t, 200, takenText, "PUT", "/nacos/v1/ns/instance/beat", one)
	})
}

func TestSwitchesInRegistrations(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		d.sets(t, "defaultInstanceEphemeral", "false")
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", "serviceName=p&ip=10.0.0.1&port=80")
		if got := d.send(t, "GET", "/nacos/v1/ns/instance/list?serviceName=p", ""); !strings.Contains(got.body, `"ephemeral":false`) {
			t.Errorf("registered as %s", got.body)
		}
		d.sets(t, "disableAddIP", "true")
		d.wants(t, 400, "Adding IP for dom is forbidden now.", "POST", "/nacos/v1/ns/instance", "serviceName=p&ip=10.0.0.2&port=80")
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", "serviceName=p&ip=10.0.0.1&port=80&weight=2") // known
		d.sets(t, "pushCacheMillis", "12345")
		if got := d.send(t, "GET", "/nacos/v1/ns/instance/list?serviceName=p", ""); !strings.Contains(got.body, `"cacheMillis":12345`) {
			t.Errorf("list is %s", got.body)
		}
	})
}

// TestDebugSwitch: what is set with debug is of this process only, but shows.
func TestDebugSwitch(t *testing.T) {
	inBubble(t, &Server{Writable: func() error { return registry.ErrUnavailable }}, func(t *testing.T, d dialer) {
		if got := d.send(t, "PUT", switchesPath, "entry=pushEnabled&value=false"); got.status != 503 {
			t.Errorf("set for good: %d %q", got.status, got.body)
		}
		d.wants(t, 200, "ok", "PUT", "/nacos/v1/ns/ops/switches", "entry=pushEnabled&value=false&debug=true")
		var shown switchesBody
		if got := d.send(t, "GET", "/nacos/v1/ns/ops/switches", ""); json.Unmarshal([]byte(got.body), &shown) != nil || shown.PushEnabled {
			t.Errorf("shown as %s", got.body)
		}
	})
}

func TestOverriddenStatus(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const write, read = "/nacos/v1/ns/instance", "/nacos/v1/ns/service/list?pageNo=1&pageSize=10"
		f := func(value string, writes, reads int) {
			t.Helper()
			d.sets(t, "overriddenServerStatus", value)
			if got := d.send(t, "POST", write, "serviceName=s&ip=10.0.0.1&port=80"); got.status != writes {
				t.Errorf("%s: a write gets %d %q, want %d", value, got.status, got.body, writes)
			}
			if got := d.send(t, "GET", read, ""); got.status != reads {
				t.Errorf("%s: a read gets %d %q, want %d", value, got.status, got.body, reads)
			}
		}
		f("DOWN", 503, 503)
		f("READ_ONLY", 503, 200)
		d.wants(t, 200, `{"status":"READ_ONLY"}`, "GET", "/nacos/v1/ns/operator/metrics", "")
		f("WRITE_ONLY", 200, 503)
		f("nonsense", 200, 200)
		d.sets(t, "overriddenServerStatus", "STARTING")
		d.wants(t, 503, "server is STARTINGnow, please try again later!", "GET", read, "")
		d.sets(t, "overriddenServerStatus", "null")
		f("UP", 200, 200)
	})
}

func TestLimitedURLs(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		d.sets(t, "limitedUrlMap", "/nacos/v1/ns/service:429")
		d.wants(t, 429, "", "GET", "/nacos/v1/ns/service/list?pageNo=1&pageSize=1", "")
		if got := d.send(t, "GET", "/nacos/v1/ns/instance/list?serviceName=s", ""); got.status != 200 {
			t.Errorf("another path gets %d", got.status)
		}
	})
}

func TestNamespaces(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const path = "/nacos/v1/console/namespaces"
		d.wants(t, 200, "true", "POST", path, "customNamespaceId=n1&namespaceName=One&namespaceDesc=first")
		d.wants(t, 200, "false", "POST", path, "customNamespaceId=n1&namespaceName=Again")
		d.wants(t, 200, "false", "POST", path, "customNamespaceId=a b&namespaceName=One")
		d.wants(t, 200, "false", "POST", path, "customNamespaceId=n2&namespaceName=a@b")
		d.wants(t, 400, "Parameter 'namespaceName' is missing", "POST", path, "customNamespaceId=n2")
		d.wants(t, 200, "true", "GET", path+"?checkNamespaceIdExist=true&customNamespaceId=n1", "")
		d.wants(t, 200, "false", "GET", path+"?checkNamespaceIdExist=true&customNamespaceId=n9", "")
		d.wants(t, 200, "true", "PUT", path, "namespace=n1&namespaceShowName=Uno&namespaceDesc=d")
		const uno = `{"namespace":"n1","namespaceShowName":"Uno","namespaceDesc":"d","quota":200,"configCount":0,"type":2}`
		const public = `{"namespace":"","namespaceShowName":"public","namespaceDesc":"Default Namespace","quota":200,"configCount":0,"type":0}`
		d.wants(t, 200, uno, "GET", path+"?show=all&namespaceId=n1", "")
		d.wants(t, 200, `{"code":200,"message":null,"data":[`+public+","+uno+`]}`, "GET", path, "")
		d.wants(t, 200, "true", "DELETE", path+"?namespaceId=n1", "")
		d.wants(t, 200, `{"code":200,"message":null,"data":[`+public+`]}`, "GET", path, "")

		d.wants(t, 200, "true", "POST", path, "namespaceName=Unnamed")
		var list struct{ Data []namespaceBody }
		if got := d.send(t, "GET", path, ""); json.Unmarshal([]byte(got.body), &list) != nil || len(list.Data) != 2 || len(list.Data[1].ID) != 36 {
			t.Errorf("without an id: %s", got.body)
		}
	})
}

func TestBatchMetadata(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const path = "/nacos/v1/ns/instance/metadata/batch"
		for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
			d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", "serviceName=s&port=80&metadata=a=1&ip="+ip)
		}
		d.wants(t, 200, `{"updated":["10.0.0.2:80:unknown:DEFAULT:ephemeral"]}`, "PUT", path,
			`serviceName=s&metadata={"a":"2","b":"3"}&instances=[{"ip":"10.0.0.2","port":80},{"ip":"10.9.9.9","port":80}]`)
		if m := d.found(t, "serviceName=s&ip=10.0.0.2&port=80").Metadata; m["a"] != "2" || m["b"] != "3" {
			t.Errorf("metadata is %v", m)
		}
		if m := d.found(t, "serviceName=s&ip=10.0.0.1&port=80").Metadata; m["a"] != "1" || len(m) != 1 {
			t.Errorf("metadata of the other is %v", m)
		}
		d.wants(t, 200, `{"updated":[]}`, "PUT", path, "serviceName=s&metadata=a=9&consistencyType=persist")
		d.wants(t, 200, `{"updated":[]}`, "PUT", path, "serviceName=s&metadata=a=9")
		d.wants(t, 200, `{"updated":[]}`, "PUT", path, "serviceName=unknown&metadata=a=9&consistencyType=ephemeral")
		d.wants(t, 400, "Param 'metadata' is required.", "PUT", path, "serviceName=s")
		d.wants(t, 200, `{"updated":["10.0.0.1:80:unknown:DEFAULT:ephemeral","10.0.0.2:80:unknown:DEFAULT:ephemeral"]}`, "DELETE",
			path+"?serviceName=s&metadata=a=x&consistencyType=ephemeral", "")
		if m := d.found(t, "serviceName=s&ip=10.0.0.2&port=80").Metadata; m["a"] != "1" || m["b"] != "3" {
			t.Errorf("metadata after taking a out is %v", m) // what was published shows again
		}
	})
}

func TestStatusesAndNames(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", "serviceName=s&ip=10.0.0.1&port=80&namespaceId=n")
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", "serviceName=s&ip=10.0.0.2&port=80&namespaceId=n&healthy=false")
		d.wants(t, 200, "ok", "POST", "/nacos/v1/ns/instance", "serviceName=G1@@t&ip=10.0.0.2&port=80")
		const statuses, names = "/nacos/v1/ns/instance/statuses?key=", "/nacos/v1/ns/service/names?"
		d.wants(t, 200, `{"ips":["10.0.0.1:80_true","10.0.0.2:80_false"]}`, "GET", statuses+"n%23%23DEFAULT_GROUP@@s", "")
		d.wants(t, 200, `{"ips":["10.0.0.2:80_true"]}`, "GET", statuses+"G1@@t", "")
		d.wants(t, 200, `{"ips":[]}`, "GET", statuses+"G1@@unknown", "")
		d.wants(t, 400, "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'", "GET", statuses+"t", "")
		d.wants(t, 200, `{"META-INF/services":{"n":["DEFAULT_GROUP@@s"],"public":["G1@@t"]},"count":2}`, "GET", names, "")
		d.wants(t, 200, `{"META-INF/services":{"public":["G1@@t"]},"count":1}`, "GET", names+"namespaceId=public&expr=G[0-9]", "")
		d.wants(t, 200, `{"META-INF/services":{"public":[]},"count":0}`, "GET", names+"namespaceId=public&expr=[", "")
	})
}

func TestSubscriberList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Store: registry.NewStore(), Log: silentLog()}
		d := startServer(t, s)
		s.Store.Subscribe(registry.Subscriber{
			Service: registry.Service{Namespace: "n", Group: "G", Name: "orders"},
			Address: netip.MustParseAddrPort("10.1.0.1:5000"), Clusters: "C1", Agent: "Nacos-Go-Client:v1.1.6", App: "shop",
		}, time.Minute)
		const one = `{"addrStr":"10.1.0.1:5000","agent":"Nacos-Go-Client:v1.1.6","app":"shop","ip":"10.1.0.1","port":5000,"namespaceId":"n","serviceName":"G@@orders","cluster":"C1"}`
		const path = "/nacos/v1/ns/service/subscribers?namespaceId=n&serviceName="
		d.wants(t, 200, `{"subscribers":[`+one+`],"count":1}`, "GET", path+"G@@ord", "")
		d.wants(t, 200, `{"subscribers":[],"count":1}`, "GET", path+"G@@ord&pageNo=2&pageSize=10", "")
		d.wants(t, 200, `{"subscribers":[],"count":0}`, "GET", path+"orders", "") // another group
		d.wants(t, 400, "Param 'serviceName' is required.", "GET", path, "")
	})
}

// TestPasswordInURLIsNotLogged: the client for Node sends one with every call.
func TestPasswordInURLIsNotLogged(t *testing.T) {
	var told bytes.Buffer
	log := logrus.New()
	log.SetOutput(&told)
	log.SetLevel(logrus.TraceLevel)
	inBubble(t, &Server{Log: log}, func(t *testing.T, d dialer) {
		const login = "username=u&password=hush-hush&"
		for _, rest := range []string{
			"/nacos/v1/ns/instance/list?" + login + "serviceName=s", "/nacos/v1/ns/nothing?" + login, "/nowhere?" + login,
			"/nacos/v1/ns/instance/list?" + login + "serviceName=" + strings.Repeat("s", DefaultLimits.Header),
		} {
			d.send(t, "GET", rest, "")
			d.send(t, "POST", rest, login)
		}
		d.raw(t, "GET /nacos/v1/ns/instance/list?"+login+" HTTP/1.1\r\nbroken\r\n\r\n")
	})
	if strings.Contains(told.String(), "hush") {
		t.Errorf("the log says %s", told.String())
	}
	if told.Len() == 0 {
		t.Error("nothing was logged: the test saw nothing")
	}
}

// raw sends bytes and reads until the server closes.
func (d dialer) raw(t *testing.T, text string) {
	t.Helper()
	conn, err := d.ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
}

// TestErrorPage: whoever takes HTML first gets the page in place of the error
// JSON, and nothing else changes for it.
func TestErrorPage(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		java := http.Header{"Accept": {"text/html, image/gif, image/jpeg, */*; q=0.2"}}
		got := d.do(t, "GET", "/nacos/v1/ns/<nothing>", java, "")
		if got.status != 501 || got.header.Get("Content-Type") != typeHTML ||
			!strings.Contains(got.body, "(type=Not Implemented, status=501)") || !strings.Contains(got.body, "no such api:GET:/nacos/v1/ns/&lt;nothing&gt;") {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
		if got := d.do(t, "GET", "/nacos/v1/ns/nothing", http.Header{"Accept": {"*/*"}}, ""); got.header.Get("Content-Type") != typeJSON {
			t.Errorf("for */*: %v", got.header)
		}
		if got := d.do(t, "GET", "/nacos/v1/ns/instance/list?serviceName=s", java, ""); got.status != 200 || got.header.Get("Content-Type") != typeJSON {
			t.Errorf("list: %d %v", got.status, got.header)
		}
	})
}

func TestReadSelector(t *testing.T) {
	f := func(text string, want selectorBody) {
		t.Helper()
		if got, err := readSelector(text); err != nil || got != want {
			t.Errorf("%s is %+v (%v), want %+v", text, got, err, want)
		}
	}
	label := selectorBody{Type: "label", Context: "CMDB", Expression: "CONSUMER.label.A = PROVIDER.label.A"}
	f("", noSelector)
	f(`{"type":"none"}`, noSelector)
	f(`{"type":"label","expression":"CONSUMER.label.A = PROVIDER.label.A"}`, label)
	f("%7B%22type%22%3A%22label%22%2C%22expression%22%3A%22CONSUMER.label.A+%3D+PROVIDER.label.A%22%7D", label)
	for _, text := range []string{"none", "{", `{"type":"LABEL"}`, `{}`, "%7B%zz"} {
		if got, err := readSelector(text); err == nil {
			t.Errorf("%s is taken as %+v", text, got)
		}
	}
}

// FuzzSelector: what was taken shows again as itself.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"", `{"type":"none"}`, `{"type":"label","expression":"CONSUMER.label.A = PROVIDER.label.A"}`, "%7B%22type%22%3A%22none%22%7D", `{"type":`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readSelector(text)
		if err != nil {
			if asFault(err).status != http.StatusBadRequest {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		shown, err := encode(got)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := readSelector(string(shown)); err != nil || back != got {
			t.Fatalf("%q reads as %+v, shown as %s, read back as %+v (%v)", text, got, shown, back, err)
		}
	})
}
