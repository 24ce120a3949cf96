package nacos

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/registry"
)

// FuzzFormReference holds the reader of parameters to that of net/url where
// both mean the same: no raw beat, no faulty percent sign, no semicolon.
func FuzzFormReference(f *testing.F) {
	f.Add("serviceName=G%40%40s&ip=1+2", "ip=3&port=8080")
	f.Add("a&b=&=c&&a=%20x%00", "b=1=2&%61=é")
	f.Fuzz(func(t *testing.T, query, body string) {
		all, err := url.ParseQuery(query)
		more, failed := url.ParseQuery(body)
		if err != nil || failed != nil || strings.Contains(query+"&"+body, paramBeat) {
			return
		}
		for name, values := range more {
			all[name] = append(all[name], values...)
		}
		delete(all, "")
		var form form
		form.read([]byte(query), []byte(body))
		for name, values := range all {
			if got := string(form.get(name)); got != javaTrimBytes(values[0]) {
				t.Fatalf("%q and %q: %q is %q, not %q", query, body, name, got, values[0])
			}
		}
	})
}

func javaTrimBytes(s string) string { return string(trim([]byte(s))) }

// FuzzMetadataReference holds both forms of metadata to what encoding/json
// reads, and to what was put together.
func FuzzMetadataReference(f *testing.F) {
	f.Add(`{"a":"1","b":null}`, "k", "v")
	f.Add(`{"a":"\ud83d\ude00","a":"2"}`, "{", "}")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		var slow map[string]*string
		if json.Unmarshal([]byte(text), &slow) == nil {
			want := map[string]string{}
			for k, v := range slow {
				if v != nil {
					want[k] = *v
				}
			}
			if got, err := parseMetadata(text); err != nil || !maps.Equal(got, want) {
				t.Fatalf("%q reads as %v, not %v (%v)", text, got, want, err)
			}
		}
		pair := key + "=" + value
		if value == "" || strings.ContainsAny(key+value, ",=") || json.Valid([]byte(pair)) {
			return
		}
		got, err := parseMetadata(pair)
		if err != nil || !maps.Equal(got, map[string]string{key: value}) {
			t.Fatalf("%q reads as %v (%v)", pair, got, err)
		}
	})
}

// FuzzRequest: whatever is asked, the answer has a status that HTTP clients
// read and is not large; one of v2 and v3 is an envelope, unless the filter for
// illegal parameters, which stands before all versions, refused in plain text.
func FuzzRequest(f *testing.F) {
	f.Add("GET", v3Admin+"/service/list", "pageNo=1&pageSize=10", "")
	f.Add("POST", v3Instance, "", "serviceName=s&ip=1.1.1.1&port=1&metadata={\"a\":1}")
	f.Add("POST", v2Instance, "serviceName=s", "ip=1.1.1.1&port=1&weight=x")
	f.Add("PUT", "/nacos/v1/ns/instance/beat", "serviceName=s", `beat={"ip":"1.1.1.1","port":1}`)
	f.Add("PUT", "/nacos/v1/ns/instance/beat", "serviceName=s&ip=1.1.1.1&port=1", "")
	handle := (&Server{Store: registry.NewStore(), Log: silentLog()}).Handler()
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		var r fasthttp.Request
		r.Header.SetMethod(method)
		r.SetRequestURI(path + "?" + query)
		r.Header.SetContentType("application/x-www-form-urlencoded")
		r.SetBodyString(body)
		var ctx fasthttp.RequestCtx
		ctx.Init(&r, nil, nil)
		handle(&ctx)
		status, answer := ctx.Response.StatusCode(), ctx.Response.Body()
		if status < 200 || status > 599 || len(answer) > 1<<20+10*(len(query)+len(body)) {
			t.Fatalf("%s %q?%q %q: %d with %d bytes", method, path, query, body, status, len(answer))
		}
		if status == fasthttp.StatusBadRequest && strings.HasPrefix(string(answer), "Param '") {
			return
		}
		switch path {
		case v2Instance, v3Instance, v3Admin + "/service/list":
			var e map[string]json.RawMessage
			if err := json.Unmarshal(answer, &e); method != "HEAD" && (err != nil || !utf8.Valid(answer)) {
				t.Fatalf("%s %q?%q %q: %d %q is no envelope (%v)", method, path, query, body, status, answer, err)
			}
		}
	})
}
