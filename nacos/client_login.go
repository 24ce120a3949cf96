package nacos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// Pauses between logins that were refused or did not help. Nacos locks nobody
// out, but the directories behind it do; a server that answers 500 may only be
// starting, and a token may only lack one permission, so these wait less.
const (
	pauseFirst   = time.Second
	pauseRefused = 30 * time.Second
	pauseOther   = 4 * time.Second
)

const (
	// tokenTime is what a token is taken to last when the server does not say;
	// tokenMost keeps a senseless number from overflowing.
	tokenTime = time.Minute
	tokenMost = 30 * 24 * time.Hour
	// renewTime bounds a login made while the old token still holds.
	renewTime = time.Second
	// reloginJitter spreads the logins of many agents whose tokens became
	// worthless in the same instant.
	reloginJitter = 100 * time.Millisecond
)

// login keeps the one token of a client. Whoever finds it missing or refused
// first logs in, the others wait and use the result.
type login struct {
	user     string // "": nobody logs in
	password func() (string, error)
	place    chan struct{} // held while logging in; a channel, so that a context ends the wait

	mu      sync.Mutex
	token   string
	renew   time.Time // a new one is fetched from here on
	expires time.Time
	hidden  []string // passwords and tokens used last, never to be shown; replaced, not changed
	tried   string   // password of the last login that was refused or did not help
	refusal *failure
	where   *server // who refused; nil: no other would take it either
	pause   time.Duration
	next    time.Time // the same password is not tried before
}

func newLogin(user string, password func() (string, error)) *login {
	if password == nil {
		password = func() (string, error) { return "", nil }
	}
	return &login{user: user, password: password, place: make(chan struct{}, 1)}
}

// secrets gives what must be taken out of every text.
func (l *login) secrets() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden
}

// hide keeps the four secrets used last: password and token, before and after
// a rotation.
func (l *login) hide(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := []string{secret}
	for _, s := range l.hidden {
		if s != secret && len(kept) < 4 {
			kept = append(kept, s)
		}
	}
	l.hidden = kept
}

// held gives the token and whether it still holds and is to be renewed.
func (l *login) held(now time.Time) (token string, holds, renew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token, l.token != "" && now.Before(l.expires), !now.Before(l.renew)
}

// paused gives the last refusal while the same password must not be tried at s.
func (l *login) paused(password string, s *server, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if password != l.tried || !now.Before(l.next) || l.where != nil && l.where != s {
		return nil
	}
	again := *l.refusal
	again.blame, again.unasked = l.where != nil, l.where == nil
	return &again
}

// failed notes a login that was refused or a token that did not help: by one
// server, or by one that speaks for all.
func (l *login) failed(password string, why *failure, where *server, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pause = min(max(pauseFirst, 2*l.pause), most)
	l.tried, l.refusal, l.where = password, why, where
	l.next = time.Now().Add(l.pause/2 + rand.N(l.pause/2))
}

// accept keeps a token. It is renewed after 80 to 90 % of its life, by the
// monotonic clock. A login that worked ends the pause, and leaves no more of it
// than a token that does not help deserves.
func (l *login) accept(token string, ttl time.Duration, now time.Time) {
	l.hide(token)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token, l.expires = token, now.Add(ttl)
	l.renew = now.Add(ttl - ttl/10 - rand.N(ttl/10))
	l.pause, l.next = min(l.pause, pauseOther), time.Time{}
}

// later puts a renewal off that failed while the old token still holds.
func (l *login) later(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renew = now.Add(pauseFirst + rand.N(pauseFirst))
}

// send makes a request with a token where there is a user. A token that is
// refused is replaced once, by one login that all calls share.
func (c *Client) send(ctx context.Context, s *server, q request) (answer, error) {
	if c.login.user == "" {
		return c.exchange(ctx, s, q, "")
	}
	token, err := c.token(ctx, s)
	if err != nil {
		return answer{}, err
	}
	a, err := c.exchange(ctx, s, q, token)
	if err != nil || !denied(a.status) {
		return a, err
	}
	if err := run.Wait(ctx, rand.N(reloginJitter)); err != nil {
		return answer{}, &failure{word: registry.ErrUnavailable, cause: err, text: s.base + ": no time left to log in again"}
	}
	fresh, err := c.relogin(ctx, s, token)
	if err != nil {
		return answer{}, err
	}
	if a, err = c.exchange(ctx, s, q, fresh); err != nil {
		return a, err
	}
	if !denied(a.status) {
		return a, nil
	}
	if password, err := c.login.password(); err == nil {
		c.login.failed(password, a.refused(registry.ErrRefused), nil, pauseOther)
	}
	return a, nil
}

func denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// token gives the one that is held, or logs in. While the old one still holds,
// a renewal that fails or that somebody else is at does no harm.
func (c *Client) token(ctx context.Context, s *server) (string, error) {
	token, holds, renew := c.login.held(time.Now())
	if !renew {
		return token, nil
	}
	if !holds {
		return c.relogin(ctx, s, token)
	}
	if len(c.login.place) > 0 {
		return token, nil
	}
	short, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	if fresh, err := c.relogin(short, s, token); err == nil {
		return fresh, nil
	}
	c.login.later(time.Now())
	return token, nil
}

// relogin replaces the token old. It gives the token that another call fetched
// in the meantime, if one did.
func (c *Client) relogin(ctx context.Context, s *server, old string) (string, error) {
	l := c.login
	select {
	case l.place <- struct{}{}:
		defer func() { <-l.place }()
	case <-ctx.Done():
		return "", &failure{word: registry.ErrUnavailable, cause: ctx.Err(), text: s.base + ": no time left to log in"}
	}
	if token, holds, _ := l.held(time.Now()); holds && token != old {
		return token, nil
	}
	password, err := l.password()
	if err != nil {
		return "", &failure{word: registry.ErrRefused, text: "cannot log in: no password: " + scrub(err.Error(), l.secrets()), unasked: true}
	}
	l.hide(password)
	if err := l.paused(password, s, time.Now()); err != nil {
		return "", err
	}
	token, ttl, err := c.logIn(ctx, s, password)
	if err != nil {
		return "", err
	}
	l.accept(token, ttl, time.Now())
	return token, nil
}

// logIn asks for a token as the Java client does: the user in the query, the
// password in the body, which no access log keeps.
func (c *Client) logIn(ctx context.Context, s *server, password string) (token string, ttl time.Duration, err error) {
	var q query
	q.add(paramUsername, c.login.user)
	a, err := c.exchange(ctx, s, request{
		method: http.MethodPost, path: pathUsersLogin, query: q.String(), form: url.Values{paramPassword: {password}},
	}, "")
	if err != nil {
		return "", 0, err
	}
	if err := a.fault(false); err != nil {
		return "", 0, c.loginFault(a, password, err)
	}
	var body loginBody
	if err := a.decode(&body); err != nil || body.Token == "" {
		return "", 0, &failure{word: registry.ErrUnavailable, text: s.base + " answered a login without a token", blame: true}
	}
	ttl = tokenTime
	if body.TTL > 0 {
		ttl = time.Duration(min(body.TTL, int64(tokenMost/time.Second))) * time.Second
	}
	return body.Token, ttl, nil
}

// loginFault notes a login that the server refused. 2.5.1 answers 500 to an
// unknown user and 3.0.3 to a wrong password.
func (c *Client) loginFault(a answer, password string, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	f.text = fmt.Sprintf("cannot log in as %q: %s", c.login.user, f.text)
	switch {
	case a.status == http.StatusInternalServerError:
		c.login.failed(password, f, a.from, pauseOther)
	case !f.blame:
		c.login.failed(password, f, nil, pauseRefused)
	}
	return f
}
