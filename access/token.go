package access

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// key signs tokens, or did: what an old one signed holds until the last token
// has expired that it signed while it was in use.
type key struct {
	secret []byte
	until  time.Time // zero: this one signs
}

// holds tells until when a token holds that this key signed, Unix, s.
func (k key) holds(expires int64) int64 {
	if k.until.IsZero() {
		return expires
	}
	return min(expires, k.until.Unix())
}

// keysMost is how many secrets are taken at once; more rotations within the
// life of a token drop the oldest.
const keysMost = 8

// tokenMost bounds what is looked at, bytes; ours have about 150.
const tokenMost = 2048

// rotate takes the secret as it is now.
func (g *Guard) rotate(now time.Time) error {
	secret, err := g.secret()
	if err != nil {
		return err
	}
	if len(secret) < SecretLeast {
		return fmt.Errorf("cannot sign tokens: the secret has %d bytes, give %d at least", len(secret), SecretLeast)
	}
	var old []key
	if keys := g.keys.Load(); keys != nil {
		old = *keys
	}
	if len(old) > 0 && string(old[0].secret) == secret {
		return nil
	}
	fresh := []key{{secret: []byte(secret)}}
	for _, k := range old {
		if k.until.IsZero() {
			k.until = now.Add(g.life)
		}
		// For as long again it is told from a stranger's.
		if now.Before(k.until.Add(g.life)) && len(fresh) < keysMost && string(k.secret) != secret {
			fresh = append(fresh, k)
		}
	}
	g.keys.Store(&fresh)
	if len(old) > 0 {
		g.log.Info("tokens are signed by a new secret")
	}
	return nil
}

// sign gives a token in the form of Nacos: who, and until when.
func (g *Guard) sign(name string, now time.Time) (string, error) {
	return g.signBy((*g.keys.Load())[0], name, now)
}

func (g *Guard) signBy(k key, name string, now time.Time) (string, error) {
	claims := jwt.RegisteredClaims{Subject: name, ExpiresAt: jwt.NewNumericDate(now.Add(g.life))}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(k.secret)
	if err != nil {
		return "", fmt.Errorf("cannot sign a token: %w", err)
	}
	return text, nil
}

// subject gives the name in a token that holds.
func (g *Guard) subject(token []byte, now time.Time) (string, error) {
	if len(token) > tokenMost {
		return "", ErrBadToken
	}
	if s, ok := g.tokens.get(token); ok {
		if now.Unix() >= s.expires {
			return "", ErrExpired
		}
		return s.name, nil
	}
	s, err := g.verify(string(token), now)
	if err != nil {
		return "", err
	}
	g.tokens.put(s, now.Unix())
	return s.name, nil
}

// verify looks at the signature, then at the time.
func (g *Guard) verify(token string, now time.Time) (seen, error) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return now }))
	var claims jwt.RegisteredClaims
	err := error(ErrSignature)
	for _, k := range *g.keys.Load() {
		if _, err = parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return k.secret, nil }); err == nil {
			s := seen{token, claims.Subject, k.holds(claims.ExpiresAt.Unix())}
			if s.expires <= now.Unix() {
				return seen{}, ErrExpired
			}
			return s, nil
		}
		if !errors.Is(err, jwt.ErrTokenSignatureInvalid) {
			break
		}
	}
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return seen{}, ErrExpired
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, ErrSignature):
		return seen{}, ErrSignature
	}
	return seen{}, ErrBadToken
}

// seen is a token whose signature was right.
type seen struct {
	token, name string
	expires     int64 // Unix, s
}

// tokensMost bounds the memory of the cache: about 30 MB when it is full.
const tokensMost = 1 << 17

// tokenCache finds tokens by a hash that nobody outside can foresee.
type tokenCache struct {
	mu   sync.RWMutex
	seen map[uint64]seen
}

var seed = maphash.MakeSeed()

func (c *tokenCache) get(token []byte) (seen, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.seen[maphash.Bytes(seed, token)]
	return s, ok && s.token == string(token)
}

func (c *tokenCache) size() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.seen)
}

// put keeps a token. When there is no room those that expired go, and when that
// made none, all: each costs one signature to know again.
func (c *tokenCache) put(s seen, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= tokensMost {
		for hash, old := range c.seen {
			if old.expires <= now {
				delete(c.seen, hash)
			}
		}
	}
	if c.seen == nil || len(c.seen) >= tokensMost {
		c.seen = map[uint64]seen{}
	}
	c.seen[maphash.String(seed, s.token)] = s
}
