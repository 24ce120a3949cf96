package nacos

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sidebeat/sidebeat/registry"
)

const (
	registerPath = "/nacos/v1/ns/instance?"
	beatPath     = "/nacos/v1/ns/instance/beat?"
	hostPort     = "&ip=10.0.0.1&port=8080"
)

// TestParametersThatAreRefused covers what the recordings do not.
func TestParametersThatAreRefused(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		f := func(query string, status int, body string) {
			t.Helper()
			d.wants(t, status, body, "POST", registerPath+query, "")
		}
		const weights = "instance format invalid: The weights range from 0.0 to 10000.0"
		f("serviceName=s"+hostPort+"&weight=10001", 400, weights)
		f("serviceName=s"+hostPort+"&weight=NaN", 400, weights)
		f("serviceName=s"+hostPort+"&weight=x", 400, `For input string: "x"`)
		f("serviceName=s"+hostPort+"&weight=10000", 200, "ok")
		f("serviceName=s&ip=%20&port=1", 400, "Param 'ip' is required.")
		f("serviceName=s"+hostPort+"&namespaceId=a%20b", 400,
			"Param 'namespaceId/tenant' is illegal, illegal characters should not appear in the param.\r\n")
		f("serviceName=s"+hostPort+"&namespaceId="+strings.Repeat("n", 65), 400,
			"Param 'namespaceId/tenant' is illegal, the param length should not exceed 64.\r\n")
		f("serviceName=s"+hostPort+"&groupName="+strings.Repeat("g", 129), 400,
			"Param 'group' is illegal, the param length should not exceed 128.\r\n")
		f("serviceName=s"+hostPort+"&clusterName=a,b%20", 400,
			"Param 'cluster' is illegal, illegal characters should not appear in the param.\r\n")
		f("serviceName=s"+hostPort+"&clusterName=a_b", 400,
			"Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: a_b)")
		f("serviceName=s"+hostPort+"&clusterName="+strings.Repeat("c", 65), 400,
			"Param 'cluster' is illegal, the param length should not exceed 64.\r\n")
		f("serviceName=s&port=1&ip="+strings.Repeat("1", 129), 400,
			"Param 'ip' is illegal, the param length should not exceed 128.\r\n")
		f("serviceName=s"+hostPort+"&metadata=a="+strings.Repeat("x", 1023), 200, "ok")
		f("serviceName=s"+hostPort+"&metadata=a="+strings.Repeat("x", 1024), 400,
			"Param 'Metadata' is illegal, the param length should not exceed 1024.\r\n")
	})
}

func TestMalformedMetadataIs500(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		got := d.send(t, "POST", registerPath+"serviceName=s"+hostPort+"&metadata=%7Bbad", "")
		const message = `"message":"Server failed, caused: ErrCode:400, ErrMsg:metadata format incorrect:{bad;` +
			`caused: metadata format incorrect:{bad;","path":"/nacos/v1/ns/instance"}`
		if got.status != 500 || !strings.HasSuffix(got.body, message) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

func TestBooleansOfV1(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		f := func(value string, want bool) {
			t.Helper()
			d.wants(t, 200, "ok", "POST", registerPath+"serviceName=s"+hostPort+"&healthy="+value, "")
			if got := d.found(t, "serviceName=s"+hostPort).Healthy; got != want {
				t.Errorf("healthy=%s is %v", value, got)
			}
		}
		for _, yes := range []string{"true", "TRUE", "t", "yes", "Y", "on", "1", ""} {
			f(yes, true)
		}
		for _, no := range []string{"false", "0", "off", "no", "junk"} {
			f(no, false)
		}
	})
}

// TestBeatDialects: every way in which clients beat heals an unhealthy
// instance.
func TestBeatDialects(t *testing.T) {
	const beat = `{"ip":"10.0.0.1","port":8080,"weight":2,"serviceName":"other","cluster":"","metadata":{"k":"a+b %41"},"scheduled":false}`
	encoded := url.QueryEscape(beat)
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		f := func(method, query, form string) {
			t.Helper()
			d.wants(t, 200, "ok", "POST", registerPath+"healthy=false&namespaceId=n&serviceName=G@@s"+hostPort, "")
			d.wants(t, 200, takenText, method, beatPath+query, form)
			if !d.found(t, "namespaceId=n&serviceName=G@@s"+hostPort).Healthy {
				t.Errorf("%s %s %s: still unhealthy", method, query, form)
			}
		}
		f("PUT", "namespaceId=n&serviceName=G@@s"+hostPort, "")
		f("POST", "namespaceId=n&serviceName=G%40%40s&clusterName=C9"+hostPort, "")
		f("PUT", "namespaceId=n&groupName=G&serviceName=s"+hostPort, "")
		f("PUT", "", "namespaceId=n&serviceName=G%40%40s"+hostPort)
		f("PUT", "namespaceId=n&serviceName=G@@s", "beat="+encoded)
		f("PUT", "namespaceId=n&serviceName=G@@s&beat="+encoded, "")
		f("PUT", "namespaceId=n&serviceName=G@@s&ip=10.9.9.9&port=1&beat="+encoded, "")
		f("PUT", "", "namespaceId=n&serviceName=G@@s&beat="+beat)
		f("PUT", "", "beat="+beat+"&serviceName=G@@s&namespaceId=n")
		f("PUT", "namespaceId=n&serviceName=G@@s&beat="+url.QueryEscape(`{"port":"8080","ip":"10.0.0.\u0031"}`), "")
		f("PUT", "namespaceId=n&serviceName=G@@s&beat=%7B%7D"+hostPort, "")
	})
}

func TestFirstBeats(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		beat := func(service, json, more string) reply {
			t.Helper()
			return d.send(t, "PUT", beatPath+"serviceName="+service+more, "beat="+url.QueryEscape(json))
		}
		f := func(want string, got reply) {
			t.Helper()
			if got.status != 200 || got.body != want {
				t.Errorf("%d %s, want %s", got.status, got.body, want)
			}
		}
		// A beat of the Go client registers what its metadata says, unchanged.
		d.wants(t, 200, takenText, "PUT", beatPath, `serviceName=raw&beat={"ip":"10.0.0.1","port":8080,"weight":2,"metadata":{"k":"a+b %41"}}`)
		if got := d.found(t, "serviceName=raw"+hostPort); got.Metadata["k"] != "a+b %41" || got.Weight != 2 {
			t.Errorf("registered %+v", got)
		}
		f(`{"clientBeatInterval":2000,"code":10200,"lightBeatEnabled":true}`,
			beat("own", `{"ip":"10.0.0.1","port":8080,"metadata":{"preserved.heart.beat.interval":"2000"}}`, ""))
		f(`{"clientBeatInterval":2000,"code":10200,"lightBeatEnabled":true}`, beat("own", `{"ip":"10.0.0.1","port":8080}`, ""))
		// Without an address there is nobody to register.
		f(unknownText, beat("ghost", `{}`, ""))
		f(unknownText, beat("ghost", `{"ip":"10.0.0.1"}`, ""))
		f(unknownText, beat("ghost", `{"port":8080}`, ""))
		f(unknownText, beat("ghost", `{"ip":"10.0.0.1","port":0}`, "&port=0"))
		d.wants(t, 200, `{"count":2,"doms":["own","raw"]}`, "GET", "/nacos/v1/ns/service/list?pageNo=1&pageSize=9", "")
		// Persistent by its own word: it is registered, and beats do it no harm.
		f(takenText, beat("kept", `{"ip":"10.0.0.1","port":8080,"ephemeral":false}`, ""))
		f(takenText, beat("kept", `{"ip":"10.0.0.1","port":8080,"ephemeral":false}`, ""))
		d.wants(t, 200, unknownText, "PUT", beatPath+"serviceName=kept"+hostPort, "")
		if got := beat("s", `{"ip":"10.0.0.1","port":70000}`, ""); got.status != 400 || !strings.HasPrefix(got.body, "Param 'port' is illegal") {
			t.Errorf("%+v", got)
		}
		if got := beat("s", `{"ip":"10.0. 0.1","port":1}`, ""); got.status != 400 || !strings.HasPrefix(got.body, "Param 'ip' is illegal") {
			t.Errorf("%+v", got)
		}
		if got := beat("G@@", `{}`, ""); got.status != 400 {
			t.Errorf("%+v", got)
		}
	})
}

// TestBeatIsForTheAddressInItsJSON, not for that of the parameters.
func TestBeatIsForTheAddressInItsJSON(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		const other = "&ip=10.0.0.2&port=8080"
		d.wants(t, 200, "ok", "POST", registerPath+"healthy=false&serviceName=s"+hostPort, "")
		d.wants(t, 200, "ok", "POST", registerPath+"healthy=false&serviceName=s"+other, "")
		d.wants(t, 200, takenText, "PUT", beatPath+"serviceName=s"+other, "beat="+url.QueryEscape(`{"ip":"10.0.0.1","port":8080}`))
		if !d.found(t, "serviceName=s"+hostPort).Healthy || d.found(t, "serviceName=s"+other).Healthy {
			t.Error("the wrong one was healed")
		}
	})
}

func TestBeatOfTheOtherKindIsRefused(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		d.wants(t, 200, "ok", "POST", registerPath+"serviceName=s"+hostPort, "")
		d.wants(t, 400, "errCode: 400, errMsg: Current service DEFAULT_GROUP@@s is ephemeral service, can't register persistent instance. ",
			"PUT", beatPath+"serviceName=s", "beat="+url.QueryEscape(`{"ip":"10.0.0.1","port":8080,"ephemeral":false}`))
	})
}

func TestOnlyFormsAreReadAsForms(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		got := d.do(t, "POST", registerPath+"serviceName=s"+hostPort, http.Header{"Content-Type": {"application/json"}}, "healthy=false")
		if got.status != 200 || !d.found(t, "serviceName=s"+hostPort).Healthy {
			t.Errorf("%+v, and the body was read", got)
		}
	})
}

// TestPutOutlivesSilence: the overlay is the operator's, so an unknown address
// takes it, and it shows when the instance comes.
func TestPutOutlivesSilence(t *testing.T) {
	inBubble(t, &Server{}, func(t *testing.T, d dialer) {
		d.wants(t, 200, "ok", "POST", registerPath+"serviceName=s&ip=10.0.0.2&port=1", "")
		d.wants(t, 200, "ok", "PUT", registerPath+"serviceName=s"+hostPort+"&weight=7", "")
		d.wants(t, 200, "ok", "POST", registerPath+"serviceName=s"+hostPort, "")
		if got := d.found(t, "serviceName=s"+hostPort).Weight; got != 7 {
			t.Errorf("weight is %v", got)
		}
	})
}

func TestPagingNeverOverflows(t *testing.T) {
	f := func(no, size string, from, to int) {
		t.Helper()
		c := call{bounds: noBounds}
		c.form.read([]byte("pageNo="+no+"&pageSize="+size), nil)
		if a, b, err := c.paging(10); a != from || b != to || err != nil {
			t.Errorf("page %s of %s: %d to %d (%v), want %d to %d", no, size, a, b, err, from, to)
		}
	}
	f("1", "4", 0, 4)
	f("3", "4", 8, 10)
	f("4", "4", 10, 10)
	f("0", "4", 0, 4)
	f("-5", "4", 0, 4)
	f("1", "0", 10, 10)
	f("1", "-1", 10, 10)
	f("9223372036854775807", "9223372036854775807", 10, 10)
	f("1", "9223372036854775807", 0, 10)
}

func TestKeysOfStoreErrorsOnTheWire(t *testing.T) {
	f := func(err error, status int, text string) {
		t.Helper()
		if got := asFault(err); got.status != status || got.text != text {
			t.Errorf("%v: %d %q", err, got.status, got.text)
		}
	}
	f(&registry.Refusal{Reason: registry.KindConflict, Text: "T"}, 400, "errCode: 400, errMsg: T ")
	f(&registry.Refusal{Reason: registry.BadPeriods, Text: "T"}, 400, "T")
	f(&registry.Refusal{Reason: registry.InstanceUnknown, Text: "T"}, 404, "T")
	f(registry.ErrStale, 412, "changed since it was read")
	f(registry.ErrUnavailable, 503, "registry cannot take writes now")
	f(badRequest("T"), 400, "T")
}
