package nacos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// recording is what a real server answered: testdata/golden holds what was
// asked of Nacos 2.5.1, testdata/golden/3.0.3 of that version.
type recording struct {
	Server   string
	Scenario string
	Steps    []step
}

type step struct {
	AtMillis int `json:"at_ms"`
	Event    string
	Request  *struct {
		Method, Path, Body   string
		Query, Form, Headers map[string]string
	}
	Response struct {
		Status      int
		ContentType string `json:"content_type"`
		Body        string
	}
	Raw  string `json:"raw_response"` // in place of Response: the bytes of the wire
	UDP  string // "from server" or "to server": a datagram, Body
	Gzip bool
	Body string
	Note string
}

// TestGolden plays what was asked of a Nacos to our server, at the same times,
// and compares each answer. A step that is not equal must stand in differences
// with its reason; one that stands there must differ. What differs is told in
// docs/nacos-compatibility.md: -update writes it anew.
func TestGolden(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/golden/*.json", "testdata/golden/3.0.3/*.json"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	if len(files) == 0 {
		t.Fatal("no recordings")
	}
	score := newScore()
	for _, file := range files {
		r := readRecording(t, file)
		t.Run(r.key(), func(t *testing.T) {
			score.played[r.key()] = true
			stageOf(t, r, score)
		})
	}
	if len(score.played) < len(files) {
		return // only some were chosen
	}
	for scenario := range differences {
		if !score.played[scenario] {
			t.Errorf("differences of %s, which was not played", scenario)
		}
	}
	t.Logf("%d of %d recorded answers equal, the other %d differ on purpose", score.equal, score.all, score.all-score.equal)
	documentDifferences(t, score)
}

// score is what came out of all recordings.
type score struct {
	equal, all int
	played     map[string]bool
	examples   map[difference]example // the first of each
	times      map[difference]int
}

// example is one answer that differs.
type example struct {
	scenario  string
	asked     string
	want, got shape
}

func newScore() *score {
	return &score{played: map[string]bool{}, examples: map[difference]example{}, times: map[difference]int{}}
}

// key names the recording in differences: the scenario, with the version in
// front unless it is 2.5.1.
func (r recording) key() string {
	if version := strings.TrimPrefix(r.Server, "Nacos "); version != spoken {
		return version + "/" + r.Scenario
	}
	return r.Scenario
}

// compared tells whether the answer to a step counts: 3.0.3 is the measure of
// v3 alone, what else it was asked only sets the scene.
func (r recording) compared(s step) bool {
	return r.Server == "Nacos "+spoken || strings.Contains(s.Request.Path, "/v3/")
}

func readRecording(t *testing.T, file string) recording {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parseRecording(t, string(text))
}

func parseRecording(t *testing.T, text string) recording {
	t.Helper()
	var r recording
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// judge compares one answer and counts it.
func (c *score) judge(t *testing.T, r recording, n int, got shape) {
	t.Helper()
	s := r.Steps[n]
	want := s.want(t)
	why, listed := differences[r.key()][n]
	diff := gocmp.Diff(want, got)
	c.all++
	switch {
	case diff == "" && !listed:
		c.equal++
	case diff == "":
		t.Errorf("step %d (%s) is equal, but listed as different: %s", n, s.Note, why.where)
	case !listed:
		t.Errorf("step %d, %s %s (%s), -recorded +ours:\n%s", n, s.Request.Method, s.Request.Path, s.Note, diff)
	default:
		c.times[why]++
		if _, shown := c.examples[why]; !shown {
			c.examples[why] = example{r.key(), s.asked(), want, got}
		}
	}
}

// checkListed fails for steps that are listed as different and are not there.
func checkListed(t *testing.T, r recording) {
	t.Helper()
	for n := range differences[r.key()] {
		if n >= len(r.Steps) || r.Steps[n].Request == nil || !r.compared(r.Steps[n]) {
			t.Errorf("step %d is listed as different, but is not compared", n)
		}
	}
}

// shape is an answer without what changes from run to run.
type shape struct {
	Status int
	Type   string
	Body   string
}

func (s step) want(t *testing.T) shape {
	t.Helper()
	if s.UDP != "" {
		return shape{Type: fmt.Sprint("gzip ", s.Gzip), Body: maskedPush(t, s.Body)}
	}
	if s.Raw == "" {
		return shape{s.Response.Status, s.Response.ContentType, masked(s.Response.Body)}
	}
	answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(s.Raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body := []byte{} // 101 has none, but is not at its end for net/http
	if answer.StatusCode != http.StatusSwitchingProtocols {
		if body, err = io.ReadAll(answer.Body); err != nil {
			t.Fatal(err)
		}
	}
	return shape{answer.StatusCode, answer.Header.Get("Content-Type"), masked(string(body))}
}

// ask sends the request of a step.
func ask(t *testing.T, serve dialer, s step) shape {
	t.Helper()
	return askAll(t, serve, s).shape()
}

func (r reply) shape() shape {
	return shape{r.status, r.header.Get("Content-Type"), masked(r.body)}
}

// askAll is ask with the whole answer.
func askAll(t *testing.T, serve dialer, s step) reply {
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
	return serve.do(t, s.Request.Method, target, header, body)
}

// asked tells the request as a reader would type it.
func (s step) asked() string {
	all := map[string]string{}
	for _, m := range []map[string]string{s.Request.Query, s.Request.Form} {
		for k, v := range m {
			if k != paramNamespace { // each scenario has its own
				all[k] = token.ReplaceAllString(v, "TOKEN")
			}
		}
	}
	text := s.Request.Method + " " + s.Request.Path
	if len(all) == 0 {
		return text
	}
	form, err := url.QueryUnescape(values(all))
	if err != nil {
		form = values(all)
	}
	return text + " " + form
}

func values(m map[string]string) string {
	v := url.Values{}
	for key, value := range m {
		v.Set(key, value)
	}
	return v.Encode()
}
