package nacos

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sidebeat/sidebeat/registry"
)

// life is what a real client sent to Nacos 2.5.1 with auth on, and heard; the
// token that it was given stands as <token>.
type life struct {
	Client string
	Steps  []struct {
		AtMillis            int `json:"at_ms"`
		Method, Path, Query string
		Headers             map[string]string
		Body                string
		Status              int
		Answer              string
	}
}

// TestClientsWithAuth plays the lives of real clients, each with its own way to
// show who it is. All they hear must be the same, times aside.
func TestClientsWithAuth(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*-auth.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var l life
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		t.Run(l.Client, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { l.play(t) })
		})
	}
}

func (l life) play(t *testing.T) {
	guard := guardOf(t, 0, userLine(t, "nacos", "nacos1", "admin"))
	serve := startServer(t, &Server{Store: registry.NewStore(), Log: silentLog(), Access: guard})
	began, token := time.Now(), ""
	for n, s := range l.Steps {
		time.Sleep(time.Until(began.Add(time.Duration(s.AtMillis) * time.Millisecond)))
		header := http.Header{}
		for key, value := range s.Headers {
			if key != "Accept-Encoding" && !strings.EqualFold(key, "Connection") {
				header.Set(key, strings.ReplaceAll(value, "<token>", token))
			}
		}
		target := s.Path + "?" + strings.ReplaceAll(s.Query, "<token>", token)
		got := serve.do(t, s.Method, target, header, strings.ReplaceAll(s.Body, "<token>", token))
		var body loginBody
		if json.Unmarshal([]byte(got.body), &body) == nil && body.Token != "" {
			token = body.Token
		}
		type heard struct {
			Status int
			Body   string
		}
		want := heard{s.Status, masked(strings.ReplaceAll(s.Answer, "<token>", "TOKEN"))}
		if diff := gocmp.Diff(want, heard{got.status, masked(got.body)}); diff != "" {
			t.Errorf("step %d, %s %s, -recorded +ours:\n%s", n, s.Method, s.Path, diff)
		}
	}
	if c := guard.Counts(); c.LoggedIn == 0 || c.Denied != 0 {
		t.Errorf("%+v", c)
	}
}
