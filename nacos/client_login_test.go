package nacos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/sidebeat/sidebeat/registry"
)

// guarded is a Nacos with its auth on: one user, tokens that end, a key that
// can be rotated.
type guarded struct {
	mu       sync.Mutex
	password string
	ttl      int64 // seconds, as answered
	lasts    time.Duration
	key      int
	issued   map[string]time.Time
	logins   int
	beats    int
	denials  int
	queries  []string
	deny     bool          // no permission whatever the token
	slow     time.Duration // of a login
	down     bool          // login answers 500
	last     time.Time     // the last login
	longest  time.Duration // between two logins
}

func (g *guarded) talk(n *network, host string) {
	n.set(host, withRequests(g.answer))
}

func (g *guarded) answer(_ int, q asked, w io.Writer) bool {
	if strings.HasSuffix(q.path, "/login") {
		time.Sleep(g.slow)
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.login(q, w)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	token := strings.TrimPrefix(q.header.Get("Authorization"), "Bearer ")
	at, ok := g.issued[token]
	g.queries = append(g.queries, q.query)
	if g.deny || !ok || time.Since(at) > g.lasts {
		g.denials++
		return say(w, 403, "application/json", `{"timestamp":"x","status":403,"error":"Forbidden","message":"Invalid signature `+token+`","path":"/x"}`)
	}
	g.beats++
	return say(w, 200, "application/json", saidOK)
}

func (g *guarded) login(q asked, w io.Writer) bool {
	g.logins++
	form, _ := url.ParseQuery(q.body)
	query, _ := url.ParseQuery(q.query)
	switch {
	case g.down:
		return say(w, 500, "text/plain", "caused: User nacos not found;")
	case query.Get("username") != "nacos" || query.Has("password") || form.Get("password") != g.password:
		return say(w, 403, "text/plain", "unknown user! "+form.Get("password"))
	}
	token := fmt.Sprintf("canary-token-%d-%d", g.key, g.logins)
	if g.issued == nil {
		g.issued = map[string]time.Time{}
	}
	g.issued[token] = time.Now()
	if !g.last.IsZero() {
		g.longest = max(g.longest, time.Since(g.last))
	}
	g.last = time.Now()
	return say(w, 200, "application/json", fmt.Sprintf(`{"accessToken":%q,"tokenTtl":%d,"globalAdmin":true,"username":"nacos"}`, token, g.ttl))
}

func (g *guarded) rotate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key++
	g.issued = nil
}

func (g *guarded) counts() (logins, beats, denials int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logins, g.beats, g.denials
}

const canaryPassword = "canary/pass+w%rd"

func newGuarded() *guarded {
	return &guarded{password: canaryPassword, ttl: 18000, lasts: 5 * time.Hour}
}

func (g *guarded) client(t *testing.T, password func() (string, error)) *Client {
	var n network
	g.talk(&n, "a")
	return opened(t, ClientConfig{Servers: []string{"a"}, Username: "nacos", Password: password, Dial: n.dial})
}

func fixed(password string) func() (string, error) {
	return func() (string, error) { return password, nil }
}

// A night of beats needs one login for each life of a token, made before it
// ends, and no beat is lost.
func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		g.ttl, g.lasts = 60, time.Minute
		c := g.client(t, fixed(canaryPassword))
		for range 600 { // ten minutes
			if _, err := c.Beat(t.Context(), orders()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		logins, beats, denials := g.counts()
		if beats != 600 || denials != 0 || logins < 10 || logins > 13 {
			t.Errorf("got %d logins, %d beats, %d denials; want 10 to 13, 600 and 0", logins, beats, denials)
		}
		if g.longest > 55*time.Second {
			t.Errorf("a token of 60 s was renewed after %v", g.longest)
		}
		for _, q := range g.queries {
			if strings.Contains(q, "canary") || strings.Contains(q, "accessToken") {
				t.Errorf("the token is in the query: %s", q)
			}
		}
	})
}

// A renewal that fails while the old token holds loses no beat.
func TestFailedRenewalKeepsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		g.ttl, g.lasts = 60, time.Minute
		c := g.client(t, fixed(canaryPassword))
		c.Beat(t.Context(), orders())
		time.Sleep(54*time.Second + time.Millisecond)
		g.slow = time.Minute
		start := time.Now()
		if _, err := c.Beat(t.Context(), orders()); err != nil || time.Since(start) > renewTime {
			t.Errorf("got %v after %v, want the beat done with the old token", err, time.Since(start))
		}
		time.Sleep(g.slow) // until the server is done too
	})
}

// alibaba/nacos#12719: the key of the tokens is rotated. Each of many calls of
// one client succeeds with one login shared by all.
func TestRotatedKeyOneSharedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		c := g.client(t, fixed(canaryPassword))
		beats := func() {
			var running sync.WaitGroup
			for range 20 {
				running.Go(func() {
					if _, err := c.Beat(t.Context(), orders()); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
		}
		beats()
		g.rotate()
		start := time.Now()
		beats()
		if logins, _, _ := g.counts(); logins != 2 || time.Since(start) > time.Second {
			t.Errorf("got %d logins in %v, want one at the start and one after the rotation, at once", logins, time.Since(start))
		}
	})
}

// A password that is wrong for good is tried less and less, is never shown, and
// a new one is tried at once.
func TestWrongPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		password := "canary-wrong"
		c := g.client(t, func() (string, error) { return password, nil })
		for range 120 { // ten minutes
			_, err := c.Beat(t.Context(), orders())
			if !errors.Is(err, registry.ErrRefused) || !strings.Contains(err.Error(), `cannot log in as "nacos"`) {
				t.Fatalf("got %v, want a refused login", err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Fatalf("the password is shown: %v", err)
			}
			time.Sleep(5 * time.Second)
		}
		if logins, _, _ := g.counts(); logins < 15 || logins > 45 {
			t.Errorf("got %d logins in ten minutes, want one every 15 to 30 s after the first few", logins)
		}
		password = canaryPassword
		if _, err := c.Beat(t.Context(), orders()); err != nil {
			t.Errorf("with the right password: %v", err)
		}
	})
}

// A token that is taken but lacks a permission does not lead to a login a beat.
func TestNoPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		g.deny = true
		c := g.client(t, fixed(canaryPassword))
		for range 60 {
			_, err := c.Beat(t.Context(), orders())
			if !errors.Is(err, registry.ErrRefused) || !strings.Contains(err.Error(), "Invalid signature") || strings.Contains(err.Error(), "canary") {
				t.Fatalf("got %v, want the refusal without the token", err)
			}
			time.Sleep(time.Second)
		}
		if logins, _, _ := g.counts(); logins > 40 {
			t.Errorf("got %d logins in 60 beats a second apart", logins)
		}
		g.mu.Lock()
		g.deny = false
		g.mu.Unlock()
		time.Sleep(5 * time.Second)
		if _, err := c.Beat(t.Context(), orders()); err != nil {
			t.Errorf("after the permission was given: %v", err)
		}
	})
}

// 2.5.1 answers a login of a user it does not know yet with 500. It counts as a
// failure of the server, and is tried again soon.
func TestLoginAnswers500(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		g.down = true
		c := g.client(t, fixed(canaryPassword))
		for range 20 {
			if _, err := c.Beat(t.Context(), orders()); !strings.Contains(fmt.Sprint(err), "User nacos not found") {
				t.Fatalf("got %v", err)
			}
			time.Sleep(5 * time.Second)
		}
		if logins, _, _ := g.counts(); logins > 40 {
			t.Errorf("got %d logins in 20 beats", logins)
		}
		g.mu.Lock()
		g.down = false
		g.mu.Unlock()
		time.Sleep(pauseOther)
		if _, err := c.Beat(t.Context(), orders()); err != nil {
			t.Errorf("after the user was made: %v", err)
		}
	})
}

// A server whose login is broken does not keep the client from another one, and
// the log does not say that the registry changed when none was asked.
func TestBrokenLoginOfOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logtest.NewNullLogger()
		broken, good := newGuarded(), newGuarded()
		broken.down = true
		var n network
		broken.talk(&n, "a")
		good.talk(&n, "b")
		password := canaryPassword
		c := opened(t, ClientConfig{Servers: []string{"a", "b"}, Username: "nacos", Dial: n.dial, Log: log, Password: func() (string, error) { return password, nil }})
		c.pool.sticky = c.pool.servers[0]
		if _, err := c.Beat(t.Context(), orders()); err != nil {
			t.Error(err)
		}
		if len(lines.AllEntries()) != 1 {
			t.Errorf("got %d lines, want one of the change", len(lines.AllEntries()))
		}
		good.rotate()
		password = "canary-wrong"
		for range 10 {
			c.pool.sticky = c.pool.servers[0]
			if _, err := c.Beat(t.Context(), orders()); err == nil {
				t.Error("a wrong password was taken")
			}
			time.Sleep(time.Second)
		}
		for _, line := range lines.AllEntries()[1:] {
			if line.Data["registry"] == "http://a:8848/nacos" {
				t.Errorf("got %v %v, though a never answered", line.Message, line.Data)
			}
		}
	})
}

// A password file that cannot be read is refused with its reason; the registry
// is not asked.
func TestPasswordCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		c := g.client(t, func() (string, error) { return "", errors.New("cannot read SIDEBEAT_PASSWORD_FILE: permission denied") })
		_, err := c.Beat(t.Context(), orders())
		if logins, _, _ := g.counts(); !errors.Is(err, registry.ErrRefused) || !strings.Contains(err.Error(), "permission denied") || logins != 0 {
			t.Errorf("got %v and %d logins", err, logins)
		}
	})
}

// A caller that gives up while another logs in does not wait for it.
func TestWaitForALoginEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		g.slow = 2 * time.Second
		c := g.client(t, fixed(canaryPassword))
		var running sync.WaitGroup
		running.Go(func() { c.Beat(t.Context(), orders()) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Beat(ctx, orders())
		if took := time.Since(start); took > 200*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after %v", err, took)
		}
		running.Wait()
	})
}

// Servers that echo what they got, in every way they can: no secret is in any
// error or log line.
func TestSecretsNeverShow(t *testing.T) {
	var out strings.Builder
	var mu sync.Mutex
	log := logrus.New()
	log.SetLevel(logrus.TraceLevel)
	log.SetOutput(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(b)
	}))
	echo := func(q asked) string { return q.query + " " + q.body + " " + q.header.Get("Authorization") }
	answers := []func(q asked, w io.Writer) bool{
		func(q asked, w io.Writer) bool { return say(w, 400, "text/plain", echo(q)) },
		func(q asked, w io.Writer) bool { return say(w, 500, "text/plain", echo(q)) },
		func(q asked, w io.Writer) bool { return say(w, 403, "text/plain", echo(q)) },
		func(q asked, w io.Writer) bool { return say(w, 200, "application/json", `{"message":"`+echo(q)+`"}`) },
		func(q asked, w io.Writer) bool { return say(w, 200, "text/html", "<html>"+echo(q)) },
		func(q asked, w io.Writer) bool {
			return say(w, 302, "", "", "Location: http://x/"+url.PathEscape(echo(q)))
		},
		func(q asked, w io.Writer) bool { return say(w, 307, "", "", "Location: http://%zz"+echo(q)) },
		func(q asked, w io.Writer) bool { io.WriteString(w, echo(q)+"\r\n\r\n"); return false },
		func(q asked, w io.Writer) bool {
			io.WriteString(w, "HTTP/1.1 200 OK\r\n"+echo(q)+"\r\n\r\n")
			return false
		},
		func(q asked, w io.Writer) bool { return say(w, 200, echo(q), "ok") },
	}
	good := newGuarded()
	for n, answer := range answers {
		for _, loginToo := range []bool{false, true} {
			t.Run(fmt.Sprint(n, loginToo), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var n network
					for _, host := range []string{"a", "b"} {
						n.set(host, withRequests(func(i int, q asked, w io.Writer) bool {
							if strings.HasSuffix(q.path, "/login") && !loginToo {
								return good.answer(i, q, w)
							}
							return answer(q, w)
						}))
					}
					c := opened(t, ClientConfig{Servers: []string{"a", "b"}, Username: "nacos", Password: fixed(canaryPassword), Dial: n.dial, Log: log})
					c.pool.sticky = c.pool.servers[0]
					for range 3 {
						_, beat := c.Beat(t.Context(), orders())
						_, get := c.Get(t.Context(), orders().Key)
						_, list := c.List(t.Context(), "")
						for _, err := range []error{beat, get, list, c.Register(t.Context(), orders()), c.Mark(t.Context(), orders())} {
							text := fmt.Sprintf("%v %+v", err, err)
							for _, secret := range []string{"canary", "rd", "pass"} {
								if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(text, "orders", ""), "password", ""), secret) {
									t.Errorf("%q is in: %s", secret, text)
								}
							}
						}
					}
				})
			})
		}
	}
	if text := out.String(); strings.Contains(text, "canary") {
		t.Errorf("a secret is in the log: %s", text)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
