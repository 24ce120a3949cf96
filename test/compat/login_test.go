package compat

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Two lives of a token pass, and then as much silence as makes unhealthy: a
// client that did not log in again would be seen.
const (
	tokenLife = 12 * time.Second
	outlived  = tokenLife + silentIn + slack
)

// TestLogin has each client use a registry that asks who comes.
func TestLogin(t *testing.T) {
	program := buildRegistry(t)
	for _, k := range chosen(t) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			namespace := "login-" + k.name
			r := newRegistry(t, program, "SIDEBEAT_USERS_FILE="+users(t, program, "write@"+namespace), "SIDEBEAT_TOKEN_LIFE="+tokenLife.String())
			if status, body := r.try(t, http.MethodGet, "/v1/ns/instance/list", url.Values{"serviceName": {"mine"}}); status != http.StatusForbidden {
				t.Fatalf("without a user: %d %s", status, body)
			}
			r.user, r.password = user, password
			mine := place{namespace, "mine", "10.9.0.1", "8080"}
			c := k.launch(t, k.ready(t), r.address, namespace, password)
			c.do(t, "register", mine.service, mine.ip, mine.port, `{"zone":"a%+;&"}`)
			time.Sleep(outlived)
			if state, metadata := r.state(t, mine); state != "healthy" || metadata["zone"] != "a%+;&" {
				t.Fatalf("after %v, of which a token lasts %v: %s %v", outlived, tokenLife, state, metadata)
			}
			c.do(t, "deregister", mine.service, mine.ip, mine.port)
			r.becomes(t, time.Second, mine, "gone")
		})
	}
}

const (
	user     = "nacos"
	password = "right"
)

// users gives a file with one user, made as an operator makes it.
func users(t *testing.T, program, roles string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, "user", user, roles)
	c.Stdin = strings.NewReader(password + "\n")
	line, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, line, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
