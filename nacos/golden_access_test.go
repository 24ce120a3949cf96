package nacos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/access"
	"github.com/sidebeat/sidebeat/registry"
)

const (
	goldenPassword = "golden-pw-1"
	canarySecret   = "canary7Zq4-secret-of-more-than-32-bytes"
)

// hashes keeps those of passwords: each takes 50 ms and more to make.
var hashes = struct {
	sync.Mutex
	of map[string]string
}{of: map[string]string{}}

// userLine gives the line of a user.
func userLine(t testing.TB, name, password, roles string) string {
	t.Helper()
	hashes.Lock()
	defer hashes.Unlock()
	if hashes.of[password] == "" {
		line, err := access.Line("somebody", password, "read")
		if err != nil {
			t.Fatal(err)
		}
		hashes.of[password] = strings.Fields(line)[1]
	}
	return name + " " + hashes.of[password] + " " + roles
}

// guardOf opens a guard for the users in these lines.
func guardOf(t testing.TB, life time.Duration, lines ...string) *access.Guard {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := access.Open(access.Config{
		UsersFile: file, Secret: func() (string, error) { return canarySecret, nil }, TokenLife: life, Log: silentLog(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// withAccess are the recordings of servers with auth on.
func withAccess(r recording) bool {
	return strings.HasPrefix(r.Scenario, "10-") && r.Scenario != "10-login-auth-off"
}

// playAccess plays with auth on. The users that a recording makes by the API
// are there from the start, and a token that it got is replaced by ours.
func playAccess(t *testing.T, r recording, c *score) {
	lines := []string{userLine(t, "somebody", goldenPassword, "read")}
	if r.Scenario != "10-first-admin" {
		lines = []string{userLine(t, "nacos", goldenPassword, "admin"), userLine(t, "reader", "reader-pw", "read@public")}
	}
	store := registry.NewStore()
	if r.Scenario == "10-token-expiry" { // left by the one before
		left := beaten
		left.Name, left.IP, left.Healthy = "sec", "10.10.0.1", false
		if err := store.Register(t.Context(), left); err != nil {
			t.Fatal(err)
		}
	}
	serve := startServer(t, &Server{Store: store, Log: silentLog(), Access: guardOf(t, time.Minute, lines...)})
	began := time.Now()
	tokens := map[string]string{} // recorded to ours
	for n, s := range r.Steps {
		for _, m := range []map[string]string{s.Request.Query, s.Request.Form, s.Request.Headers} {
			for key, value := range m {
				m[key] = ourTokens(value, tokens)
			}
		}
		reach(t, serve, r, n, began)
		got := askAll(t, serve, s)
		var theirs, ours loginBody
		if json.Unmarshal([]byte(s.Response.Body), &theirs) == nil && theirs.Token != "" &&
			json.Unmarshal([]byte(got.body), &ours) == nil && ours.Token != "" {
			tokens[theirs.Token] = ours.Token
			if want := "Bearer " + ours.Token; got.header.Get("Authorization") != want {
				t.Errorf("step %d: the header Authorization does not hold the token", n)
			}
		}
		if r.compared(s) {
			c.judge(t, r, n, got.shape())
		}
	}
}

// ourTokens replaces recorded tokens in a text; one whose signature was spoilt
// is spoilt here too.
func ourTokens(text string, tokens map[string]string) string {
	for theirs, ours := range tokens {
		text = strings.ReplaceAll(text, theirs, ours)
		if spoilt := theirs[:len(theirs)-3] + "abc"; strings.Contains(text, spoilt) {
			text = strings.ReplaceAll(text, spoilt, ours[:len(ours)-3]+"abc")
		}
	}
	return text
}
