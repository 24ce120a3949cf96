package nacos

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// recording is what a real server answered: testdata/golden holds some of
// Nacos 2.5.1.
type recording struct {
	Scenario string
	Steps    []step
}

type step struct {
	AtMillis int `json:"at_ms"`
	Request  *struct {
		Method, Path, Body   string
		Query, Form, Headers map[string]string
	}
	Response struct {
		Status      int
		ContentType string `json:"content_type"`
		Body        string
	}
	Note string
}

// TestGolden plays what was asked of a Nacos 2.5.1 to our server, at the same
// times, and compares each answer. A step that is not equal must stand in
// differences with its reason; one that stands there must differ.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	equal, all := 0, 0
	played := map[string]bool{}
	for _, file := range files {
		r := readRecording(t, file)
		played[r.Scenario] = true
		t.Run(r.Scenario, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n := play(t, r)
				equal, all = equal+e, all+n
			})
		})
	}
	for scenario := range differences {
		if !played[scenario] {
			t.Errorf("differences of %s, which was not played", scenario)
		}
	}
	t.Logf("%d of %d recorded answers equal, %d differ on purpose", equal, all, all-equal)
}

func readRecording(t *testing.T, file string) recording {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

func play(t *testing.T, r recording) (equal, all int) {
	serve := startServer(t, &Server{Store: registry.NewStore(), Log: silentLog()})
	began := time.Now()
	for n, s := range r.Steps {
		if s.Request == nil {
			continue
		}
		repeat(t, serve, r, n, began)
		time.Sleep(time.Until(began.Add(time.Duration(s.AtMillis) * time.Millisecond)))
		want := shape{s.Response.Status, s.Response.ContentType, masked(s.Response.Body)}
		got := ask(t, serve, s)
		why := differences[r.Scenario][n]
		diff := gocmp.Diff(want, got)
		all++
		switch {
		case diff == "" && why == "":
			equal++
		case diff == "":
			t.Errorf("step %d (%s) is equal, but listed as different: %s", n, s.Note, why)
		case why == "":
			t.Errorf("step %d, %s %s (%s), -2.5.1 +ours:\n%s", n, s.Request.Method, s.Request.Path, s.Note, diff)
		}
	}
	for n := range differences[r.Scenario] {
		if n >= len(r.Steps) || r.Steps[n].Request == nil {
			t.Errorf("step %d is listed as different, but does not exist", n)
		}
	}
	return equal, all
}

// repeats are requests that were sent again and again while only the first or
// the last of them was written down.
var repeats = map[string][]struct{ step, from, to, every int }{
	"03-expiry-beaten": {{1, 100, 6100, 1000}},
	"02-beat-name-mismatch": {
		{6, 1607, 22000, 1000}, {8, 1776, 22000, 1000}, {10, 1829, 22000, 1000},
		{12, 1978, 22000, 1000}, {14, 2057, 22000, 1000}, {16, 2159, 22000, 1000},
	},
}

// repeat sends what has to be repeated between the step before n and n.
func repeat(t *testing.T, serve dialer, r recording, n int, began time.Time) {
	t.Helper()
	type due struct{ at, step int }
	var queue []due
	for _, again := range repeats[r.Scenario] {
		for at := again.from; at <= again.to; at += again.every {
			if at < r.Steps[n].AtMillis && (n == 0 || at >= r.Steps[n-1].AtMillis) {
				queue = append(queue, due{at, again.step})
			}
		}
	}
	slices.SortFunc(queue, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	for _, d := range queue {
		time.Sleep(time.Until(began.Add(time.Duration(d.at) * time.Millisecond)))
		if got := ask(t, serve, r.Steps[d.step]); got.Status != http.StatusOK {
			t.Fatalf("repeated step %d: %v", d.step, got)
		}
	}
}

// shape is an answer without what changes from run to run.
type shape struct {
	Status int
	Type   string
	Body   string
}

func ask(t *testing.T, serve dialer, s step) shape {
	t.Helper()
	target := s.Request.Path
	if len(s.Request.Query) > 0 {
		target += "?" + values(s.Request.Query)
	}
	body, kind := s.Request.Body, ""
	if len(s.Request.Form) > 0 {
		body, kind = values(s.Request.Form), "application/x-www-form-urlencoded"
	}
	header := http.Header{}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	for k, v := range s.Request.Headers {
		header.Set(k, v)
	}
	got := serve.do(t, s.Request.Method, target, header, body)
	return shape{got.status, got.header.Get("Content-Type"), masked(got.body)}
}

func values(m map[string]string) string {
	v := url.Values{}
	for key, value := range m {
		v.Set(key, value)
	}
	return v.Encode()
}

// volatile are the keys whose values no two runs share.
var volatile = []string{"lastRefTime", "checksum", "timestamp", "server_port", "cpu", "load", "mem"}

// snowflake is the number an id starts with when a generator made it.
var snowflake = regexp.MustCompile(`^\d{12,}#`)

// masked writes a JSON body anew: volatile values away, keys and lists sorted
// (the order of hosts and names means nothing).
func masked(body string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return body
	}
	b, err := json.MarshalIndent(mask(v), "", " ")
	if err != nil {
		return body
	}
	return string(b)
}

func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = mask(v[k])
			if slices.Contains(volatile, k) {
				v[k] = "*"
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return cmp.Compare(text(a), text(b)) })
	case string:
		return snowflake.ReplaceAllString(v, "NUMBER#")
	}
	return v
}

func text(v any) string {
	b, _ := json.Marshal(v) // came from JSON
	return string(b)
}

// dialer opens connections to a server in this process.
type dialer struct {
	ln *fasthttputil.InmemoryListener
}

type reply struct {
	status int
	header http.Header
	body   string
}

// startServer serves until the test ends, its store running beside it.
func startServer(t *testing.T, s *Server) dialer {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run.All(ctx, s.Store.Run, func(ctx context.Context) error { return run.Serve(ctx, ln, s.HTTP()) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server ended with %v", err)
		}
		time.Sleep(10 * time.Second) // fake: fasthttp's worker pool looks around before it ends
	})
	return dialer{ln}
}

// do sends one request on a connection of its own.
func (d dialer) do(t *testing.T, method, target string, header http.Header, body string) reply {
	t.Helper()
	conn, err := d.ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://registry"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header, r.Close = header, true
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(got)}
}

func silentLog() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
