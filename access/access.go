// Package access decides who may do what: users from a file, their passwords,
// and the tokens they get for them. It knows no wire.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/run"
)

// What a Guard refuses. The texts hold nothing of what was sent.
var (
	ErrUnknown   = errors.New("unknown user or wrong password") // which of the two is never told
	ErrBadToken  = errors.New("this is no token")
	ErrSignature = errors.New("the token has another signature")
	ErrExpired   = errors.New("the token has expired")
	ErrTooMany   = errors.New("too many wrong logins; try again later")
	ErrBusy      = errors.New("too many logins at once; try again")
)

// DefaultTokenLife is how long a token is good for
// (nacos.core.auth.plugin.nacos.token.expire.seconds).
const DefaultTokenLife = 18000 * time.Second

// SecretLeast is how long a secret has to be, bytes: as long as what HS256
// makes of it (RFC 7518 section 3.2).
const SecretLeast = 32

// lookPeriod is how often users and secret are looked at for changes.
const lookPeriod = 2 * time.Second

// Config is what a Guard needs.
type Config struct {
	UsersFile string
	// Secret signs the tokens: at least SecretLeast bytes. It is asked every
	// 2 s, so that it may rotate.
	Secret    func() (string, error)
	TokenLife time.Duration // 0: DefaultTokenLife
	Log       *logrus.Logger
}

// Guard knows the users and gives and takes tokens. All methods may be called
// at the same time.
type Guard struct {
	file    usersFile
	life    time.Duration
	secret  func() (string, error)
	log     *logrus.Logger
	users   atomic.Pointer[table]
	keys    atomic.Pointer[[]key]
	tokens  tokenCache
	logins  doorman
	refused struct {
		sync.Mutex
		secret string // why the secret cannot be used, as it was said last
	}
	denied atomic.Uint64
}

// Open reads the users and the secret; both must be usable.
func Open(c Config) (*Guard, error) {
	g := &Guard{file: usersFile{path: c.UsersFile}, life: c.TokenLife, secret: c.Secret, log: c.Log}
	if g.life == 0 {
		g.life = DefaultTokenLife
	}
	if g.life < time.Second {
		return nil, fmt.Errorf("cannot give tokens for %v: a token lasts 1s at least", g.life)
	}
	users, _, err := g.file.read()
	if err != nil {
		return nil, fmt.Errorf("cannot use the users file %s: %w", c.UsersFile, err)
	}
	g.users.Store(users)
	if err := g.rotate(time.Now()); err != nil {
		return nil, err
	}
	g.logins.open(g.log)
	return g, nil
}

// Run looks for changes of users and secret until the context ends. What cannot
// be used is said once, and the old holds.
func (g *Guard) Run(ctx context.Context) error {
	return run.Every(ctx, lookPeriod, lookPeriod, func(context.Context) { g.look() })
}

func (g *Guard) look() {
	switch users, changed, err := g.file.read(); {
	case err != nil && changed:
		g.log.WithField("cause", err).Error("the users file cannot be used, the users before hold")
	case err == nil && changed:
		g.users.Store(users)
		g.log.WithField("count", len(users.byName)).Info("users read anew")
	}
	g.lookAtSecret()
}

func (g *Guard) lookAtSecret() {
	err := g.rotate(time.Now())
	g.refused.Lock()
	defer g.refused.Unlock()
	switch {
	case err == nil:
		g.refused.secret = ""
	case g.refused.secret != err.Error():
		g.refused.secret = err.Error()
		g.log.WithField("cause", err).Error("the secret of the tokens cannot be used, the one before holds")
	}
}

// Token is what a login gets.
type Token struct {
	Text  string
	Life  time.Duration
	Admin bool // of everything
}

// LogIn gives a token for a password.
func (g *Guard) LogIn(ctx context.Context, from netip.Addr, name, password string) (Token, error) {
	u, err := g.ByPassword(ctx, from, name, password)
	if err != nil {
		return Token{}, err
	}
	text, err := g.sign(u.name, time.Now())
	if err != nil {
		return Token{}, err
	}
	return Token{Text: text, Life: g.life, Admin: u.May(Admin, nil)}, nil
}

// ByPassword gives the user whose password this is. What was right once is
// known again without work, as long as the users file says so. Anything else
// costs the same work, is refused with the same words, and is counted against
// the address and the name.
func (g *Guard) ByPassword(ctx context.Context, from netip.Addr, name, password string) (*User, error) {
	users := g.users.Load()
	u := users.byName[name]
	if g.logins.remembers(u, password) {
		g.logins.ok.Add(1)
		return u, nil
	}
	if err := g.logins.check(ctx, users, u, from, name, password); err != nil {
		return nil, err
	}
	return u, nil
}

// ByToken gives the user of a token. For one that was seen before this
// allocates nothing and does not compute its signature again.
func (g *Guard) ByToken(token []byte) (*User, error) {
	name, err := g.subject(token, time.Now())
	if err != nil {
		return nil, err
	}
	if u := g.users.Load().byName[name]; u != nil {
		return u, nil
	}
	return nil, ErrUnknown
}

// Denied counts a request that was refused for want of a token or of a role.
func (g *Guard) Denied() { g.denied.Add(1) }

// Counts are figures since the start.
type Counts struct {
	Users                     int
	LoggedIn, Refused         uint64 // logins: right, wrong
	Limited, Busy             uint64 // logins that were not looked at: too many wrong ones, too many at once
	Denied                    uint64 // requests
	TokensKnown, LoginsOnHold int    // now
}

// Counts tells how often what happened.
func (g *Guard) Counts() Counts {
	return Counts{
		Users: len(g.users.Load().byName), LoggedIn: g.logins.ok.Load(), Refused: g.logins.wrong.Load(),
		Limited: g.logins.limited.Load(), Busy: g.logins.busy.Load(), Denied: g.denied.Load(),
		TokensKnown: g.tokens.size(), LoginsOnHold: len(g.logins.places),
	}
}
