package nacos

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

const (
	v2Instance = "/nacos/v2/ns/instance"
	v3Instance = "/nacos/v3/client/ns/instance"
	v3Admin    = "/nacos/v3/admin/ns"
	okEnvelope = `{"code":0,"message":"success","data":"ok"}`
)

// TestParametersOfV2AndV3 covers what the recordings do not.
func TestParametersOfV2AndV3(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		f := func(path, form string, status int, body string) {
			t.Helper()
			d.wants(t, status, body, "POST", path, form)
		}
		invalid := func(data string) string {
			return `{"code":20002,"message":"parameter validate error","data":"` + data + `"}`
		}
		for _, path := range []string{v2Instance, v3Instance, v3Admin + "/instance"} {
			f(path, "serviceName=s"+hostPort+"&weight=x", 400, invalid(`Param 'weight' is illegal, For input string: \"x\"`))
			f(path, "serviceName=s"+hostPort+"&weight=NaN", 400,
				`{"code":21001,"message":"weight error","data":"instance format invalid: The weights range from 0.0 to 10000.0"}`)
			f(path, "serviceName=s"+hostPort+"&enabled=t", 400, invalid("Param 'enabled' is illegal, Invalid boolean value [t]"))
			f(path, "serviceName=@@s"+hostPort, 400, invalid("Param 'serviceName' is illegal, "+badFormat))
			f(path, "serviceName=s"+hostPort+"&clusterName=a_b", 400,
				`{"code":21004,"message":"instance error","data":"Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: a_b)"}`)
			f(path, "serviceName=s&port=1&ip="+strings.Repeat("1", 129), 400,
				"Param 'ip' is illegal, the param length should not exceed 128.\r\n")
			f(path, "serviceName=s"+hostPort+"&enabled=ON&healthy=1&ephemeral=Yes", 200, okEnvelope)
		}
		f(v3Admin+"/service", "serviceName=s2&metadata=%7Bbad", 400,
			`{"code":21005,"message":"service metadata error","data":"metadata format incorrect:{bad"}`)
		f(v3Admin+"/service", `serviceName=s2&selector={"type":"?"}`, 400,
			`{"code":21006,"message":"selector error","data":"not match any type of selector!"}`)
		f(v3Admin+"/service", "serviceName=s2&protectThreshold=1e99", 400, invalid(`Param 'protectThreshold' is illegal, For input string: \"1e99\"`))
		d.wants(t, 400, invalid("Required parameter 'pageSize' should be positive integer, current is -1"), "GET", v3Admin+"/service/list?pageSize=-1", "")
		d.wants(t, 400, invalid(`Param 'pageNo' is illegal, For input string: \"2147483648\"`), "GET", v3Admin+"/service/list?pageNo=2147483648", "")
		d.wants(t, 200, `{"code":0,"message":"success","data":{"count":1,"services":["s"]}}`, "GET", "/nacos/v2/ns/service/list?pageSize=9999", "")
		d.wants(t, 200, `{"code":0,"message":"success","data":{"count":1,"services":[]}}`, "GET", "/nacos/v2/ns/service/list?pageNo=2", "")
	})
}

// TestPatchOfV2 wants all three and answers without an envelope.
func TestPatchOfV2(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		d.wants(t, 200, okEnvelope, "POST", v2Instance, "serviceName=s"+hostPort)
		all := "serviceName=DEFAULT_GROUP@@s" + hostPort + "&weight=2&enabled=true&metadata=a=1"
		for name, kind := range map[string]string{paramWeight: "Double", paramEnabled: "Boolean", paramMetadata: "String"} {
			form, _ := url.ParseQuery(all)
			form.Del(name)
			d.wants(t, 400, `{"code":10000,"message":"parameter missing","data":"Required request parameter '`+name+
				`' for method parameter type `+kind+` is not present"}`, "PATCH", v2Instance, form.Encode())
		}
		d.wants(t, 400, `{"code":20002,"message":"parameter validate error","data":"Param 'serviceName' is illegal, `+badFormat+`"}`,
			"PATCH", v2Instance, strings.Replace(all, "DEFAULT_GROUP@@", "", 1))
		d.wants(t, 200, "ok", "PATCH", v2Instance, all)
		if got := d.found(t, "serviceName=s"+hostPort); got.Weight != 2 || got.Metadata["a"] != "1" {
			t.Errorf("%+v", got)
		}
	})
}

// TestHeartBeatKeepsAlive: a beat of v3 is a beat; it registers nothing.
func TestHeartBeatKeepsAlive(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const beat, unknown = "heartBeat=true&serviceName=s" + hostPort, `{"code":21003,"message":"instance not found","data":null}`
		d.wants(t, 200, unknown, "POST", v3Instance, beat)
		d.wants(t, 200, okEnvelope, "POST", v3Instance, "serviceName=s"+hostPort)
		for range 10 {
			time.Sleep(14 * time.Second) // fake: in a bubble of synctest
			d.wants(t, 200, okEnvelope, "POST", v3Instance, beat)
		}
		if got := d.found(t, "serviceName=s"+hostPort); !got.Healthy || got.ID != "" {
			t.Errorf("%+v", got)
		}
		time.Sleep(31 * time.Second)
		d.wants(t, 200, unknown, "POST", v3Instance, beat)
	})
}

// TestClientsByAPI: who publishes and who listens, on v2 and v3.
func TestClientsByAPI(t *testing.T) {
	s := &Server{}
	inBubble(t, s, func(t *testing.T, d dialer) {
		d.wants(t, 200, okEnvelope, "POST", v2Instance, "serviceName=s"+hostPort)
		d.wants(t, 200, okEnvelope, "POST", v2Instance, "serviceName=s&groupName=g"+hostPort)
		d.wants(t, 200, okEnvelope, "POST", v3Instance, "namespaceId=dev&ephemeral=false&serviceName=p&ip=10.0.0.2&port=1")
		s.Store.Subscribe(registry.Subscriber{
			Service: registry.Service{Namespace: "dev", Name: "p"}, Address: netip.MustParseAddrPort("10.0.0.3:5000"),
			Agent: "Nacos-Go-Client:v1.1.6", App: "shop",
		}, time.Minute)
		base := ""
		f := func(path, data string) {
			t.Helper()
			d.wants(t, 200, `{"code":0,"message":"success","data":`+data+`}`, "GET", base+path, "")
		}
		now := time.Now().UnixMilli()
		for _, base = range []string{"/nacos/v2/ns/client", v3Admin + "/client"} {
			f("/list", `["10.0.0.1:8080#true","10.0.0.2:1#false","10.0.0.3:5000#true"]`)
			f("/service/publisher/list?serviceName=s&ip=10.0.0.9", `[]`)
			f("/service/subscriber/list?serviceName=s", `[]`)
			f("/publish/list?clientId=10.0.0.3:5000%23true", `[]`)
			f("/subscribe/list?clientId=10.0.0.2:1%23false", `[]`)
			for _, id := range []string{"x", "10.0.0.9:1%23true", "10.0.0.2:1%23true", "10.0.0.3:5000%23false", "10.0.0.3:05000%23true"} {
				for _, path := range []string{"", "/publish/list", "/subscribe/list"} {
					text, err := url.PathUnescape(id)
					if err != nil {
						t.Fatal(err)
					}
					d.wants(t, 404, `{"code":20004,"message":"resource not found","data":"clientId [ `+text+` ] not exist"}`, "GET", base+path+"?clientId="+id, "")
				}
			}
		}
		base = "/nacos/v2/ns/client"
		f("?clientId=10.0.0.2:1%23false", fmt.Sprintf(
			`{"clientId":"10.0.0.2:1#false","ephemeral":false,"lastUpdatedTime":%d,"clientType":"ipPort","clientIp":"10.0.0.2","clientPort":"1"}`, now))
		f("/publish/list?clientId=10.0.0.2:1%23false",
			`[{"namespace":"dev","group":"DEFAULT_GROUP","serviceName":"p","registeredInstance":{"ip":"10.0.0.2","port":1,"cluster":"DEFAULT"}}]`)
		f("/subscribe/list?clientId=10.0.0.3:5000%23true",
			`[{"namespace":"dev","group":"DEFAULT_GROUP","serviceName":"p","subscriberInfo":{"app":"shop","agent":"Nacos-Go-Client:v1.1.6","addr":"10.0.0.3:5000"}}]`)
		f("/service/publisher/list?serviceName=s&port=8080", `[{"ip":"10.0.0.1","port":8080,"cluster":"DEFAULT","clientId":"10.0.0.1:8080#true"}]`)
		f("/service/publisher/list?serviceName=s&ephemeral=false", `[]`)
		f("/service/subscriber/list?serviceName=p&namespaceId=dev&port=5000", `[{"clientId":"10.0.0.3:5000#true","ip":"10.0.0.3","port":5000}]`)
		base = v3Admin + "/client"
		f("?clientId=10.0.0.2:1%23false", fmt.Sprintf(
			`{"clientId":"10.0.0.2:1#false","ephemeral":false,"lastUpdatedTime":%d,"clientType":"ipPort","connectType":null,"appName":null,"version":null,"clientIp":null,"clientPort":0}`, now))
		f("/publish/list?clientId=10.0.0.2:1%23false",
			`[{"namespaceId":"dev","groupName":"DEFAULT_GROUP","serviceName":"p","publisherInfo":{"clientId":null,"ip":"10.0.0.2","port":1,"clusterName":"DEFAULT"},"subscriberInfo":null}]`)
		f("/subscribe/list?clientId=10.0.0.3:5000%23true",
			`[{"namespaceId":"dev","groupName":"DEFAULT_GROUP","serviceName":"p","publisherInfo":null,"subscriberInfo":{"clientId":null,"appName":"shop","agent":"Nacos-Go-Client:v1.1.6","address":"10.0.0.3:5000"}}]`)
		f("/service/publisher/list?serviceName=s&port=8080", `[{"clientId":"10.0.0.1:8080#true","ip":"10.0.0.1","port":8080,"clusterName":"DEFAULT"}]`)
		f("/service/subscriber/list?serviceName=p&namespaceId=dev&ip=10.0.0.3",
			`[{"clientId":"10.0.0.3:5000#true","appName":"shop","agent":"Nacos-Go-Client:v1.1.6","address":"10.0.0.3:5000"}]`)
	})
}

// TestNamespacesByAPI: made, changed, seen and dropped on v2 and v3.
func TestNamespacesByAPI(t *testing.T) {
	const isTrue = `{"code":0,"message":"success","data":true}`
	for _, base := range []string{"/nacos/v2/console/namespace", "/nacos/v3/admin/core/namespace"} {
		inBubble(t, &Server{}, func(t *testing.T, d dialer) {
			refused := func(status, code int, text, query string) {
				t.Helper()
				d.wants(t, status, fmt.Sprintf(`{"code":%d,"message":"%s","data":"%s"}`, code, codeWords[code], text), "POST", base+"?"+query, "")
			}
			refused(400, 10000, "required parameter 'namespaceId' is missing", "namespaceName=x")
			refused(400, 10000, "required parameter 'namespaceName' is missing", "namespaceId=x")
			refused(400, 22000, "namespaceId [a.b] mismatch the pattern", "namespaceId=a.b&namespaceName=x")
			refused(400, 22000, "too long namespaceId, over 128", "namespaceName=x&namespaceId="+strings.Repeat("x", 129))
			refused(400, 22000, "namespaceName [x@y] contains illegal char", "namespaceId=x&namespaceName=x@y")
			d.wants(t, 200, isTrue, "POST", base, "namespaceId=dev&namespaceName=Dev&namespaceDesc=ours")
			if base[len("/nacos/")+1] == '2' {
				refused(400, 22000, "the namespaceId is existed, namespaceId: dev", "namespaceId=dev&namespaceName=Dev")
			} else {
				refused(500, 22002, "namespaceId [dev] already exist", "namespaceId=dev&namespaceName=Dev")
				d.wants(t, 200, `{"code":0,"message":"success","data":1}`, "GET", base+"/check?namespaceId=dev", "")
				d.wants(t, 200, `{"code":0,"message":"success","data":0}`, "GET", base+"/check?namespaceId=other", "")
			}
			d.wants(t, 200, isTrue, "PUT", base+"?namespaceId=dev&namespaceName=New&namespaceDesc=", "")
			d.wants(t, 200, `{"code":0,"message":"success","data":{"namespace":"dev","namespaceShowName":"New","namespaceDesc":"","quota":200,"configCount":0,"type":2}}`,
				"GET", base+"?namespaceId=dev", "")
			d.wants(t, 200, isTrue, "POST", base, "namespaceId=&namespaceName=unnamed")
			var list struct{ Data []namespaceBody }
			if err := json.Unmarshal([]byte(d.send(t, "GET", base+"/list", "").body), &list); err != nil || len(list.Data) != 3 {
				t.Errorf("%+v %v", list, err)
			}
			d.wants(t, 200, isTrue, "DELETE", base+"?namespaceId=dev", "")
			d.wants(t, 200, isTrue, "DELETE", base+"?namespaceId=dev", "")
			d.wants(t, 404, `{"code":22001,"message":"namespace not exist","data":"namespaceId [ dev ] not exist"}`, "GET", base+"?namespaceId=dev", "")
		})
	}
}

// TestThreeVersionsOneStore: what one version writes the others read.
func TestThreeVersionsOneStore(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const query = "serviceName=s&groupName=g" + hostPort
		d.wants(t, 200, "ok", "POST", registerPath+query, "")
		d.wants(t, 200, okEnvelope, "PUT", v2Instance, query+"&weight=3")
		d.wants(t, 200, `{"code":0,"message":"success","data":{"updated":["10.0.0.1:8080:unknown:DEFAULT:ephemeral"]}}`,
			"PUT", v3Admin+"/instance/metadata/batch?consistencyType=ephemeral&metadata=a=1&"+query, "")
		data := func(path string) (body struct{ Data hostBody }) {
			t.Helper()
			got := d.send(t, "GET", path, "")
			if err := json.Unmarshal([]byte(got.body), &body); err != nil {
				t.Fatalf("%s: %s", path, got.body)
			}
			return body
		}
		for _, path := range []string{v2Instance, v3Admin + "/instance"} {
			if got := data(path + "?" + query).Data; got.Weight != 3 || got.Metadata["a"] != "1" || got.ID == "" {
				t.Errorf("%s: %+v", path, got)
			}
		}
		if got := d.send(t, "GET", v3Admin+"/instance?"+query, ""); got.header.Get("ETag") != "" {
			t.Errorf("v3 has no revisions: %v", got.header)
		}
		d.wants(t, 200, "", "HEAD", v3Admin+"/instance?"+query, "")
		if got := d.do(t, "OPTIONS", v3Instance, http.Header{}, ""); got.status != 200 || got.header.Get("Allow") != "DELETE, POST, OPTIONS" {
			t.Errorf("%d %v", got.status, got.header)
		}
		d.wants(t, 200, okEnvelope, "DELETE", v3Instance+"?"+query, "")
		d.wants(t, 200, `{"code":0,"message":"success","data":[]}`, "GET", v3Instance+"/list?"+query, "")
	})
}

// TestRefusedWritesOfV3: the reason comes in the envelope, as 503.
func TestRefusedWritesOfV3(t *testing.T) {
	full := errors.Join(errors.New("disk nearly full"), registry.ErrUnavailable)
	inBubble(t, &Server{Writable: func() error { return full }}, func(t *testing.T, d dialer) {
		f := func(method, path, form string) {
			t.Helper()
			want := `{"code":30000,"message":"server error","data":"disk nearly full\nregistry cannot take writes now"}`
			d.wants(t, 503, want, method, path, form)
		}
		f("POST", v3Admin+"/service", "serviceName=s")
		f("PUT", v3Admin+"/service", "serviceName=s")
		f("DELETE", v3Admin+"/service?serviceName=s", "")
		f("POST", v3Instance, "ephemeral=false&serviceName=s"+hostPort)
		f("PUT", v2Instance, "serviceName=s"+hostPort)
		d.wants(t, 200, okEnvelope, "POST", v3Instance, "serviceName=e"+hostPort)
		f("PUT", v3Admin+"/instance/partial", "serviceName=e"+hostPort)
		f("PUT", v3Admin+"/cluster", `serviceName=e&clusterName=C&checkPort=1&useInstancePort4Check=1&healthChecker={"type":"NONE"}`)
	})
}

// FuzzEndpoint: whatever the parameters are, they are taken, and then the
// operation can rely on them, or refused with an answer that a client can read.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"serviceName=s&ip=1.1.1.1&port=1", "serviceName=g@@s&ip=1.1.1.1&port=1&weight=1e3", "serviceName=@@&ip=%20",
		"serviceName=s&ip=1&port=65536", "metadata={bad", "serviceName=s&ip=1&port=1&enabled=junk&weight=NaN",
		"serviceName=s&ip=1&port=1&pageNo=x&protectThreshold=-Inf", "serviceName=s%00&ip=%FF&port=01",
	} {
		f.Add(seed, true, true)
		f.Add(seed, false, false)
	}
	f.Fuzz(func(t *testing.T, query string, grouped, v3 bool) {
		e := endpoint{needs: []string{paramService, paramIP, paramPort}, grouped: grouped, v3: v3, spring: !v3}
		c := call{bounds: noBounds}
		c.form.read([]byte(query), nil)
		if err := e.prepare(&c); err != nil {
			var fault *fault
			if refused := asCoded(err); !errors.As(err, &fault) && (codeWords[refused.code] == "" || refused.status != http.StatusBadRequest) {
				t.Errorf("%q: %+v", query, refused)
			}
			return
		}
		key, err := c.key()
		if err != nil || key.Name == "" || key.IP == "" {
			t.Errorf("%q: taken, but it is %v (%v)", query, key, err)
		}
		if grouped != (key.Name != c.form.text(paramService)) {
			t.Errorf("%q: the name is %q", query, key.Name)
		}
		if weight, err := c.weight(); err != nil || !(weight >= 0 && weight <= 10000) {
			t.Errorf("%q: weight %v (%v)", query, weight, err)
		}
		for _, name := range booleans {
			if value := strings.ToLower(c.form.text(name)); c.truth(false, name) != slices.Contains([]string{"true", "on", "yes", "1"}, value) {
				t.Errorf("%q: %s=%s", query, name, value)
			}
		}
	})
}
