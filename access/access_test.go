package access

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"golang.org/x/crypto/bcrypt"
)

// What stands in for secrets; .ci/test.sh looks for it in all output.
const (
	canaryPassword = "canary7Zq4-password"
	canarySecret   = "canary7Zq4-secret-of-more-than-32-bytes"
)

// canaryHash is made once: it takes 50 ms and more.
var canaryHash = func() string {
	line, err := Line("someone", canaryPassword, "read")
	if err != nil {
		panic(err)
	}
	return strings.Fields(line)[1]
}()

var here = netip.MustParseAddr("192.0.2.7")

type world struct {
	*Guard
	file   string
	secret string
	lines  *test.Hook
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// open makes a guard; HASH stands for the one of canaryPassword.
func open(t testing.TB, users string) *world {
	t.Helper()
	w := &world{file: filepath.Join(t.TempDir(), "users"), secret: canarySecret}
	write(t, w.file, strings.ReplaceAll(users, "HASH", canaryHash))
	var log *logrus.Logger
	log, w.lines = test.NewNullLogger()
	var err error
	w.Guard, err = Open(Config{UsersFile: w.file, Secret: func() (string, error) { return w.secret, nil }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) logIn(t testing.TB, name string) Token {
	t.Helper()
	token, err := w.LogIn(t.Context(), here, name, canaryPassword)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (w *world) wantToken(t *testing.T, token string, want error) {
	t.Helper()
	if u, err := w.ByToken([]byte(token)); !errors.Is(err, want) || (u == nil) != (want != nil) {
		t.Errorf("got %v and %v, want %v", u, err, want)
	}
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "nacos HASH admin\nreader HASH read@public\n")
		token := w.logIn(t, "nacos")
		if token.Life != 5*time.Hour || !token.Admin || w.logIn(t, "reader").Admin {
			t.Errorf("life %v, admin %v", token.Life, token.Admin)
		}
		for range 2 { // the second time from the cache
			w.wantToken(t, token.Text, nil)
		}
		w.wantToken(t, "wrong", ErrBadToken)
		w.wantToken(t, strings.Repeat("a", 3000), ErrBadToken)
		w.wantToken(t, token.Text[:len(token.Text)-3]+"abc", ErrSignature)
		// {"alg":"none"}
		w.wantToken(t, "eyJhbGciOiJub25lIn0."+strings.Split(token.Text, ".")[1]+".", ErrSignature)
		other := open(t, "nacos HASH admin\n")
		other.secret = strings.Repeat("x", 32)
		other.look()
		w.wantToken(t, other.logIn(t, "nacos").Text, ErrSignature)

		time.Sleep(5*time.Hour - time.Second)
		w.wantToken(t, token.Text, nil)
		time.Sleep(time.Second)
		w.wantToken(t, token.Text, ErrExpired)
		w.Guard.tokens = tokenCache{}
		w.wantToken(t, token.Text, ErrExpired)
	})
}

// Who loses the line in the file loses access at once, token or not.
func TestTokenOfAUserWhoIsGone(t *testing.T) {
	w := open(t, "nacos HASH admin\nreader HASH read\n")
	token := w.logIn(t, "reader").Text
	write(t, w.file, "nacos "+canaryHash+" admin\n")
	w.look()
	w.wantToken(t, token, ErrUnknown)
	if _, err := w.LogIn(t.Context(), here, "reader", canaryPassword); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

// After a rotation new tokens are signed by the new secret and old ones hold
// until they expire, through more rotations than one.
func TestSecretRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "nacos HASH admin\n")
		first := w.logIn(t, "nacos").Text
		w.secret = "canary7Zq4-another-secret-of-32-bytes"
		w.look()
		time.Sleep(time.Hour)
		second := w.logIn(t, "nacos").Text
		w.secret = "canary7Zq4-one-more-secret-of-32-bytes"
		w.look()
		for _, cached := range []bool{false, true} {
			if !cached {
				w.Guard.tokens = tokenCache{}
			}
			w.wantToken(t, first, nil)
			w.wantToken(t, second, nil)
		}
		if key := string((*w.keys.Load())[0].secret); key != w.secret {
			t.Error("the new secret does not sign")
		}
		w.life *= 100 // who stole the first secret gives himself more
		stolen, err := w.signBy(key{secret: []byte(canarySecret)}, "nacos", time.Now())
		w.life /= 100
		if err != nil {
			t.Fatal(err)
		}
		w.wantToken(t, stolen, nil)
		w.secret = "too short"
		w.look()
		w.look()
		if n := len(w.lines.AllEntries()); n != 3 || w.lines.LastEntry().Level != logrus.ErrorLevel {
			t.Errorf("%d lines, want two of rotations and one of the short secret", n)
		}
		w.wantToken(t, w.logIn(t, "nacos").Text, nil)
		time.Sleep(5 * time.Hour)
		w.wantToken(t, stolen, ErrExpired)
		w.Guard.tokens = tokenCache{}
		w.wantToken(t, stolen, ErrExpired)
		w.wantToken(t, first, ErrExpired)
		time.Sleep(6 * time.Hour)
		w.secret = "canary7Zq4-the-last-secret-of-32-bytes"
		w.look()
		if n := len(*w.keys.Load()); n != 2 {
			t.Errorf("%d secrets are known, want the new one and the one before", n)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	f := func(users, secret string, life time.Duration, want string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "users")
		write(t, file, strings.ReplaceAll(users, "HASH", canaryHash))
		_, err := Open(Config{UsersFile: file, Secret: func() (string, error) { return secret, nil }, TokenLife: life})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("a HASH admin\n", strings.Repeat("x", 31), 0, "the secret has 31 bytes, give 32 at least")
	f("a HASH admin\n", canarySecret, time.Millisecond, "a token lasts 1s at least")
	f("", canarySecret, 0, "it holds no user")
	f("# nobody\n", canarySecret, 0, "it holds no user")
	if _, err := Open(Config{UsersFile: t.TempDir(), Secret: func() (string, error) { return canarySecret, nil }}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}

// Run looks by itself; a broken file keeps what was, and is said once.
func TestUsersAreReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "nacos HASH admin\n")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(lookPeriod / 2) // never look while the file is written
		step := func(text string, users, lines int) {
			t.Helper()
			if text == "" {
				os.Remove(w.file)
			} else {
				write(t, w.file, strings.ReplaceAll(text, "HASH", canaryHash))
			}
			time.Sleep(10 * time.Second)
			if c := w.Counts(); c.Users != users || len(w.lines.AllEntries()) != lines {
				t.Errorf("%d users and %d lines, want %d and %d: %v", c.Users, len(w.lines.AllEntries()), users, lines, w.lines.LastEntry().Data)
			}
		}
		step("nacos HASH admin\nreader HASH read\n", 2, 1)
		step("nacos HASH admin\nreader HASH reads\n", 2, 2)
		if cause := w.lines.LastEntry().Data["cause"].(error).Error(); !strings.HasPrefix(cause, "line 2: ") {
			t.Errorf("got %q", cause)
		}
		step("nacos HASH admin\nreader HASH readx\n", 2, 3)
		step("", 2, 4)
		step("nacos HASH admin\nreader HASH readx\n", 2, 5)
		step("nacos HASH admin\n", 1, 6)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestRoles(t *testing.T) {
	w := open(t, "a HASH read,write@pay,admin@ops\nb HASH write@pay,read@pay\nc HASH admin@*\n")
	f := func(name string, level Level, namespace string, want bool) {
		t.Helper()
		in := []byte(namespace)
		if namespace == "" {
			in = nil
		}
		if got := w.users.Load().byName[name].May(level, in); got != want {
			t.Errorf("%s may %d in %q: %v", name, level, namespace, got)
		}
	}
	f("a", Read, "public", true)
	f("a", Read, "", true)
	f("a", Write, "public", false)
	f("a", Write, "pay", true)
	f("a", Admin, "pay", false)
	f("a", Write, "ops", true)
	f("a", Admin, "ops", true)
	f("a", Admin, "", false)
	f("b", Read, "pay", true)
	f("b", Write, "pay", true)
	f("b", Read, "public", false)
	f("b", Read, "*", false)
	f("b", Read, "", false)
	f("c", Admin, "", true)
	f("c", Write, "pay", true)
	if b := w.users.Load().byName["b"]; !b.Somewhere(Write) || b.Somewhere(Admin) || b.Name() != "b" {
		t.Error("b writes somewhere and is admin nowhere")
	}
}

func TestParseUsersNamesTheLine(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := parseUsers([]byte(strings.ReplaceAll(text, "HASH", canaryHash)))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canaryPassword) || strings.Contains(err.Error(), "$2") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	f("# users\n\na HASH read\nb "+canaryPassword+" read\n", "line 4: the second word is no bcrypt hash")
	f("a HASH\n", "line 1: it has 2 words")
	f("a my "+canaryPassword+" HASH read\n", "line 1: it has 5 words")
	f("a HASH read, write\n", "line 1: it has 4 words")
	f("a HASH read,\n", "line 1: a role is")
	f("a HASH root\n", "line 1: a role is")
	f("a HASH "+canaryPassword+"\n", "line 1: a role is")
	f("a HASH read@\n", "line 1: a namespace is")
	f("a HASH read@a/b\n", "line 1: a namespace is")
	f("a HASH read\na HASH write\n", "line 2: this user stands in a line before")
	f("a\x00 HASH read\n", "line 1: the name")
	f("a HASH read\n\xff HASH read\n", "line 2: the name")
	f(strings.Repeat("a", 65)+" HASH read\n", "line 1: the name")
	f("a "+strings.Replace(canaryHash, "$10$", "$05$", 1)+" read\n", "the hash has cost 5; give 10 to 14")
	f("a "+strings.Replace(canaryHash, "$10$", "$31$", 1)+" read\n", "the hash has cost 31")
	f("a "+canaryHash[:59]+" read\n", "no bcrypt hash")
}

func FuzzUsers(f *testing.F) {
	f.Add([]byte("a " + canaryHash + " read,write@pay\r\n# b\n"))
	f.Add([]byte("a b c"))
	f.Add([]byte("\x00\xff\n\n@ @ @"))
	f.Fuzz(func(t *testing.T, text []byte) {
		users, err := parseUsers(text)
		if (users == nil) == (err == nil) {
			t.Fatal("users and an error, or neither")
		}
		if err != nil {
			if bytes.Contains([]byte(err.Error()), []byte("$2")) {
				t.Fatalf("%v shows a hash", err)
			}
			return
		}
		for name, u := range users.byName {
			if name != u.name || !u.Somewhere(Read) || u.cost < costLeast || u.cost > users.cost {
				t.Fatalf("%+v", u)
			}
			if _, err := bcrypt.Cost(u.hash); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzToken: whatever is sent as a token is refused, and nothing panics.
func FuzzToken(f *testing.F) {
	var w world
	log, _ := test.NewNullLogger()
	file := filepath.Join(f.TempDir(), "users")
	if err := os.WriteFile(file, []byte("nacos "+canaryHash+" admin\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	var err error
	if w.Guard, err = Open(Config{UsersFile: file, Secret: func() (string, error) { return canarySecret, nil }, Log: log}); err != nil {
		f.Fatal(err)
	}
	good, err := w.sign("nacos", time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(good[:len(good)-1]))
	f.Add([]byte("eyJhbGciOiJub25lIn0.e30."))
	f.Add([]byte("a.b.c"))
	f.Fuzz(func(t *testing.T, token []byte) {
		if u, err := w.ByToken(token); err == nil || u != nil {
			t.Fatal("a token of a stranger was taken")
		}
	})
}

func TestLine(t *testing.T) {
	line, err := Line("reader", canaryPassword, "read@public")
	if err != nil || !strings.HasPrefix(line, "reader $2a$10$") || !strings.HasSuffix(line, " read@public") {
		t.Fatalf("%v", err)
	}
	users, err := parseUsers([]byte(line))
	if err != nil || bcrypt.CompareHashAndPassword(users.byName["reader"].hash, []byte(canaryPassword)) != nil {
		t.Errorf("%v", err)
	}
	f := func(name, password, roles, want string) {
		t.Helper()
		if _, err := Line(name, password, roles); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("a", "", "read", "it is empty")
	f("a", strings.Repeat("x", 73), "read", "longer than 72 bytes")
	f("a b", "x", "read", "4 words")
	f("a", "x", "root", "a role is")
}
