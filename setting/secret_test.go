package setting

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type credentials struct {
	Username string `split_words:"true"`
	Password Secret `split_words:"true"`
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantSecret(t *testing.T, s Secret, want string) {
	t.Helper()
	if got, err := s.Value(); got != want || err != nil {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	setenv(t, "SIDEBEAT_PASSWORD", "hunter2")
	var c credentials
	if _, err := Load(&c); err != nil {
		t.Fatal(err)
	}
	wantSecret(t, c.Password, "hunter2")
	text, err := json.Marshal(c)
	if err != nil || string(text) != `{"Username":"","Password":"***"}` {
		t.Errorf("got %s %v", text, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{c, &c, c.Password, &c.Password} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "hunter2") || strings.Contains(got, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s of %T shows %s", verb, value, got)
			}
		}
	}
	if got := fmt.Sprintf("%v %#v", c.Password, c.Password); got != "*** ***" {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(Secret{}, NewSecret("")); got != " " {
		t.Errorf("got %q for two secrets that are none, want two empty texts", got)
	}
}

func TestSecretFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	now := time.Now()
	write(t, path, "first\r\n")
	os.Chtimes(path, now, now)
	setenv(t, "SIDEBEAT_PASSWORD_FILE", path)
	var c credentials
	if _, err := Load(&c); err != nil {
		t.Fatal(err)
	}
	copied := c.Password
	wantSecret(t, c.Password, "first")
	write(t, path, "other\r\n") // same size, same tick of the clock
	os.Chtimes(path, now, now)
	wantSecret(t, copied, "other")
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	wantSecret(t, copied, "other")
	write(t, path, " a longer one with blanks \n\n")
	wantSecret(t, copied, " a longer one with blanks ")
	os.Remove(path)
	if _, err := copied.Value(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "SIDEBEAT_PASSWORD_FILE") {
		t.Errorf("got %v, want an error that names variable and file", err)
	}
}

// Kubernetes swaps a symbolic link in the middle of the path.
func TestSecretFollowsASwappedLink(t *testing.T) {
	folder := t.TempDir()
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{"one", "two"} {
		os.Mkdir(filepath.Join(folder, name), 0o700)
		write(t, filepath.Join(folder, name, "password"), name)
		os.Chtimes(filepath.Join(folder, name, "password"), long, long)
	}
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(folder, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, "data")); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	setenv(t, "SIDEBEAT_PASSWORD_FILE", filepath.Join(folder, "data", "password"))
	var c credentials
	if _, err := Load(&c); err != nil {
		t.Fatal(err)
	}
	wantSecret(t, c.Password, "one")
	link("two")
	wantSecret(t, c.Password, "two")
}

// An unchanged file is not opened again: were it, the second read would find
// what was written behind the back of its times.
func TestSecretFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	write(t, path, "kept")
	long := time.Now().Add(-time.Hour)
	os.Chtimes(path, long, long)
	var s Secret
	s.at("SIDEBEAT_PASSWORD_FILE", path)
	wantSecret(t, s, "kept")
	write(t, path, "evil")
	os.Chtimes(path, long, long)
	wantSecret(t, s, "kept")
}

func TestSecretFileFaults(t *testing.T) {
	folder := t.TempDir()
	path := func(name, content string) string {
		p := filepath.Join(folder, name)
		write(t, p, content)
		return p
	}
	f := func(file, plain, want string) {
		t.Helper()
		t.Run("", func(t *testing.T) {
			setenv(t, "SIDEBEAT_PASSWORD_FILE", file, "SIDEBEAT_PASSWORD", plain)
			_, err := Load(new(credentials))
			if got := fmt.Sprint(err); !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
				t.Errorf("got %s, want ...%s...", got, want)
			}
		})
	}
	good := path("good", "hunter2")
	f(good, "", "<nil>")
	f(good, "hunter2", "SIDEBEAT_PASSWORD is given too; give one of them")
	f(folder, "", "SIDEBEAT_PASSWORD_FILE="+folder+": it is no regular file")
	f(path("empty", "\n"), "", "it is empty")
	f(path("long", strings.Repeat("hunter2", 10_000)), "", "it is longer than 65536 bytes")
	f(filepath.Join(folder, "none"), "", "cannot read SIDEBEAT_PASSWORD_FILE: stat ")
}
