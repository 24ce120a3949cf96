package nacos

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sidebeat/sidebeat/registry"
)

// Whatever a server answers: nothing panics, only what Nacos says is success
// is one, every error has a word of registry and a text that can be logged.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []struct {
		status int
		kind   string
		body   string
	}{
		{200, textType, "ok"}, {200, jsonType, saidOK}, {200, jsonType, saidUnknown}, {200, jsonType, nacosState},
		{200, jsonType, ourState}, {404, jsonType, bootNone}, {410, jsonType, bootGone}, {400, "", "Param 'ip' is required.\r\n"},
		{500, textType, "caused: no matched ip found!;"}, {200, "text/html", "<html>"}, {200, jsonType, detail1}, {200, jsonType, listNone},
		{200, jsonType, `{"code":0,"message":"success","data":"ok"}`}, {503, "", "\x1b[31m\xff\x00"}, {200, jsonType, `{"code":1e400}`},
		{200, jsonType, `{"message":"secret-canary","data":{"a":[1]}}`}, {302, "", ""}, {101, "", ""},
	} {
		f.Add(seed.status, seed.kind, seed.body)
	}
	f.Fuzz(func(t *testing.T, status int, kind, body string) {
		a := answer{
			from: &server{base: "http://a:8848/nacos"}, status: status, kind: mediaType(kind), body: []byte(body),
			secret: []string{"secret-canary"},
		}
		check := func(err error, right bool) {
			t.Helper()
			if err == nil {
				if !right {
					t.Errorf("%d %q %q counts as a success", status, kind, body)
				}
				return
			}
			checkFailure(t, err)
		}
		written := status == 200 && (string(bytes.TrimSpace(a.body)) == "ok" || json.Valid(a.body))
		check(a.written(), written)
		check(a.fault(true), status == 200)
		check(detailFault(a), status == 200)
		check(marked(a, kind14), written)
		said, err := beatSaid(a)
		check(err, status == 200 && said.Code == codeOK)
		k, err := readKind(a)
		check(err, json.Valid(a.body) || status != 200)
		if k.ours && !strings.Contains(strings.ToLower(body), "sidebeat") && !strings.Contains(body, `\u`) {
			t.Errorf("%q is taken for ours", body)
		}
		if a.page() {
			check(a.failed("x"), false)
		}
		for _, v := range []any{&detailBody{}, &listBody{}, &pageJSON{}, &instanceJSON{}, &loginBody{}} {
			check(a.decode(v), json.Valid(a.body))
		}
	})
}

var kind14 = kind{old: true}

func checkFailure(t *testing.T, err error) {
	t.Helper()
	var f *failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no failure", err)
	}
	if !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrStale) &&
		!errors.Is(err, registry.ErrRefused) && !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("%v has no word", err)
	}
	text := err.Error()
	if f.blame != errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("%v: blames the server %v", err, f.blame)
	}
	if len(text) > 5*mostText || strings.Contains(text, "secret-canary") || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("%q cannot be logged", text)
	}
}
