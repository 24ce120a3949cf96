package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// Limits of logins that are wrong, or not known to be right yet: so many at
// once, and one more each so long. An address stands for all of a /64 in IPv6.
// A name has more room, because others can use it up; and who knows a password
// that was right before is never held up.
const (
	addressBurst  = 20
	addressRefill = 3 * time.Second
	nameBurst     = 50
	nameRefill    = time.Second
	// limitedMost bounds the addresses and names that are remembered.
	limitedMost = 8192
	// patience is how long a login waits for its turn; clients give up after 3
	// to 5 s.
	patience = 2500 * time.Millisecond
	// rememberedMost bounds the passwords known to be right; by their hash.
	rememberedMost = 4096
)

// doorman checks passwords: few at a time, because each keeps a processor busy
// for 50 ms and more that beats need too.
type doorman struct {
	places    chan struct{}
	compare   func(hash, password []byte) error // bcrypt's
	addresses limiter
	names     limiter
	salt      [32]byte

	mu    sync.Mutex
	right map[[sha256.Size]byte]struct{}

	ok, wrong, limited, busy atomic.Uint64
}

func (d *doorman) open(log *logrus.Logger) {
	d.places = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	d.compare = bcrypt.CompareHashAndPassword
	d.addresses = limiter{burst: addressBurst, refill: addressRefill, log: log}
	d.names = limiter{burst: nameBurst, refill: nameRefill}
	_, _ = rand.Read(d.salt[:]) // never fails
	d.right = map[[sha256.Size]byte]struct{}{}
}

// print is what is kept of a password that was right: it holds for this
// process, this user and this hash of the users file only.
func (d *doorman) print(u *User, password string) [sha256.Size]byte {
	var room [256]byte
	text := append(room[:0], d.salt[:]...)
	text = append(text, u.hash...)
	text = append(text, u.name...)
	text = append(text, 0)
	return sha256.Sum256(append(text, password...))
}

func (d *doorman) remembers(u *User, password string) bool {
	if u == nil || len(password) > passwordMost {
		return false
	}
	print := d.print(u, password)
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.right[print]
	return known
}

func (d *doorman) remember(u *User, password string) {
	print := d.print(u, password)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.right) >= rememberedMost {
		clear(d.right)
	}
	d.right[print] = struct{}{}
}

// check does the work of one login. The user is nil when there is none.
func (d *doorman) check(ctx context.Context, users *table, u *User, from netip.Addr, name, password string) error {
	now := time.Now()
	address := network(from)
	if !d.addresses.take(address, now) {
		d.limited.Add(1)
		return ErrTooMany
	}
	if !d.names.take(name, now) {
		d.addresses.giveBack(address)
		d.limited.Add(1)
		return ErrTooMany
	}
	if !d.enter(ctx) {
		d.addresses.giveBack(address)
		d.names.giveBack(name)
		d.busy.Add(1)
		return ErrBusy
	}
	defer func() { <-d.places }()
	if !d.matches(users.cost, u, password) {
		d.wrong.Add(1)
		return ErrUnknown
	}
	d.ok.Add(1)
	d.addresses.giveBack(address)
	d.names.giveBack(name)
	d.remember(u, password)
	return nil
}

func (d *doorman) enter(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case d.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// matches compares with as much work whoever asks: a hash of cost c takes 2^c
// rounds, so one of each cost from c up to the highest, less one, makes all the
// same, and a user who is not there gets the highest.
func (d *doorman) matches(highest int, u *User, password string) bool {
	given := []byte(password)
	if len(given) > passwordMost { // bcrypt would look at the beginning only
		given, u = given[:passwordMost], nil
	}
	if u == nil {
		_ = d.compare(nobody(highest), given) // cannot match
		return false
	}
	right := d.compare(u.hash, given) == nil
	for cost := u.cost; cost < highest; cost++ {
		_ = d.compare(nobody(cost), given)
	}
	return right
}

// nobody is a hash that no password is known for.
func nobody(cost int) []byte {
	return append([]byte{'$', '2', 'a', '$', '0' + byte(cost/10), '0' + byte(cost%10), '$'},
		"xh0dTjLmYOeGGZ4sS8Xf7uQkWvP1b3N5c7V9aRtYuIoKlMnBvCxZq"...)
}

// network is what an address counts as: who has an IPv6 address has the 2^64 of
// its network.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); err == nil && a.Is6() {
		return p.String()
	}
	return a.String()
}

// limiter is a token bucket for each of many keys.
type limiter struct {
	burst  float64
	refill time.Duration  // of one
	log    *logrus.Logger // says when an address is held up; nil: nobody
	mu     sync.Mutex
	used   map[string]bucket
	said   time.Time
}

// bucket is how much was used at an instant.
type bucket struct {
	used float64
	at   time.Time
}

func (l *limiter) left(b bucket, now time.Time) float64 {
	return max(0, b.used-float64(max(0, now.Sub(b.at)))/float64(l.refill))
}

func (l *limiter) take(key string, now time.Time) bool {
	if len(key) > nameMost {
		key = key[:nameMost]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	used := l.left(l.used[key], now)
	if used+1 > l.burst {
		l.say(key, now)
		return false
	}
	l.makeRoom(now)
	l.used[key] = bucket{used + 1, now}
	return true
}

// say tells once a minute at most that somebody tries passwords.
func (l *limiter) say(key string, now time.Time) {
	if l.log == nil || !l.said.IsZero() && now.Sub(l.said) < time.Minute {
		return
	}
	l.said = now
	l.log.WithField("address", key).Warn("logins are refused: too many were wrong")
}

func (l *limiter) giveBack(key string) {
	if len(key) > nameMost {
		key = key[:nameMost]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, known := l.used[key]; known {
		b.used = max(0, b.used-1)
		l.used[key] = b
	}
}

// makeRoom forgets who has not used anything any more, or anybody.
func (l *limiter) makeRoom(now time.Time) {
	if l.used == nil {
		l.used = map[string]bucket{}
	}
	if len(l.used) < limitedMost {
		return
	}
	for key, b := range l.used {
		if l.left(b, now) == 0 {
			delete(l.used, key)
		}
	}
	for key := range l.used {
		if len(l.used) < limitedMost {
			return
		}
		delete(l.used, key)
	}
}
