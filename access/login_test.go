package access

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// counted counts the rounds of bcrypt in place of a clock.
func counted(w *world) *atomic.Int64 {
	rounds := new(atomic.Int64)
	w.logins.compare = func(hash, password []byte) error {
		cost, err := bcrypt.Cost(hash)
		if err != nil {
			return err
		}
		rounds.Add(1 << cost)
		if string(hash[7:]) == canaryHash[7:] && string(password) == canaryPassword {
			return nil
		}
		return bcrypt.ErrMismatchedHashAndPassword
	}
	return rounds
}

// Nothing but the answer tells a user who exists from one who does not: same
// work, same error.
func TestEveryWrongLoginCostsTheSame(t *testing.T) {
	w := open(t, "low HASH read\nhigh "+strings.Replace(canaryHash, "$10$", "$13$", 1)+" read\n")
	rounds := counted(w)
	f := func(name, password string) {
		t.Helper()
		rounds.Store(0)
		_, err := w.LogIn(t.Context(), here, name, password)
		if err != ErrUnknown || rounds.Load() != 1<<13 {
			t.Errorf("%s: %d rounds and %v, want %d", name, rounds.Load(), err, 1<<13)
		}
	}
	f("low", "wrong")
	f("high", "wrong")
	f("nobody", "wrong")
	f("", "")
	f("low", "")
	f("low", strings.Repeat("x", 100))
	f(strings.Repeat("n", 10000), "wrong")
	f("low", canaryPassword+strings.Repeat("x", 72)) // what bcrypt looks at is no excuse
	if w.Counts().Refused != 8 {
		t.Errorf("%+v", w.Counts())
	}
}

func TestLongPasswordIsNotCut(t *testing.T) {
	password := strings.Repeat("x", 72)
	line, err := Line("a", password, "read")
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, line)
	if _, err := w.LogIn(t.Context(), here, "a", password+"y"); err != ErrUnknown {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if _, err := w.LogIn(t.Context(), here, "a", password); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.LogIn(t.Context(), here, "a", password+"y"); err != ErrUnknown {
		t.Errorf("got %v", err)
	}
}

// A hash in place of that of a user who is not there must be one for bcrypt.
func TestNobodyIsAHash(t *testing.T) {
	for cost := costLeast; cost <= costMost; cost++ {
		if got, err := bcrypt.Cost(nobody(cost)); got != cost || err != nil || !hashPattern.Match(nobody(cost)) {
			t.Errorf("%d: %v", got, err)
		}
	}
	if err := bcrypt.CompareHashAndPassword(nobody(costLeast), []byte(canaryPassword)); err != bcrypt.ErrMismatchedHashAndPassword {
		t.Errorf("got %v", err)
	}
}

// A client that sends its password with every request costs work once, until
// the users file gives another hash.
func TestRightPasswordIsRemembered(t *testing.T) {
	w := open(t, "nacos HASH admin\nother HASH read\n")
	rounds := counted(w)
	for range 100 {
		if u, err := w.ByPassword(t.Context(), here, "nacos", canaryPassword); err != nil || u.Name() != "nacos" {
			t.Fatal(err)
		}
	}
	if rounds.Load() != 1<<10 {
		t.Errorf("%d rounds, want those of one comparison", rounds.Load())
	}
	if _, err := w.ByPassword(t.Context(), here, "other", "wrong"); err != ErrUnknown {
		t.Errorf("got %v", err)
	}
	changed, err := Line("nacos", "something else", "admin")
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.file, changed)
	w.look()
	if _, err := w.ByPassword(t.Context(), here, "nacos", canaryPassword); err != ErrUnknown {
		t.Errorf("got %v, want the old password refused", err)
	}
}

// Wrong logins are bounded by address and by name, right ones are not; who was
// right before gets in whatever others try under the name.
func TestWrongLoginsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "nacos HASH admin\nnew HASH read\n")
		counted(w)
		logIn := func(from, name, password string) error {
			_, err := w.LogIn(t.Context(), netip.MustParseAddr(from), name, password)
			return err
		}
		for range 2 * addressBurst {
			if err := logIn("192.0.2.1", "nacos", canaryPassword); err != nil {
				t.Fatal(err)
			}
		}
		for n := range addressBurst {
			if err := logIn("192.0.2.1", fmt.Sprint("user", n), "wrong"); err != ErrUnknown {
				t.Fatalf("%d: %v", n, err)
			}
		}
		for range 3 {
			if err := logIn("192.0.2.1", "somebody", "wrong"); err != ErrTooMany {
				t.Errorf("got %v", err)
			}
		}
		if err := logIn("192.0.2.1", "new", canaryPassword); err != ErrTooMany {
			t.Errorf("got %v for one not known to be right", err)
		}
		if err := logIn("192.0.2.1", "nacos", canaryPassword); err != nil {
			t.Errorf("got %v for one known to be right", err)
		}
		if err := logIn("192.0.2.2", "new", "wrong"); err != ErrUnknown {
			t.Errorf("got %v from another address", err)
		}
		if n := len(w.lines.AllEntries()); n != 1 || w.lines.LastEntry().Data["address"] != "192.0.2.1" {
			t.Errorf("%d lines, want one", n)
		}
		time.Sleep(addressRefill)
		if err := logIn("192.0.2.1", "user", "wrong"); err != ErrUnknown {
			t.Errorf("got %v after a while", err)
		}
		if err := logIn("192.0.2.1", "user", "wrong"); err != ErrTooMany {
			t.Errorf("got %v, want one more in %v", err, addressRefill)
		}
		// The name, from everywhere; and a /64 is one address.
		for n := range nameBurst {
			if err := logIn(fmt.Sprintf("2001:db8:0:%x::1", n), "victim", "wrong"); err != ErrUnknown {
				t.Fatalf("%d: %v", n, err)
			}
		}
		if err := logIn("2001:db8:1::1", "victim", "wrong"); err != ErrTooMany {
			t.Errorf("got %v", err)
		}
		for n := range addressBurst {
			if err := logIn(fmt.Sprintf("2001:db8:2::%x", n), fmt.Sprint("x", n), "wrong"); err != ErrUnknown {
				t.Fatalf("%d: %v", n, err)
			}
		}
		if err := logIn("2001:db8:2::ffff", "y", "wrong"); err != ErrTooMany {
			t.Errorf("got %v", err)
		}
	})
}

// Only so many passwords are looked at at once; who waits too long is told.
func TestLoginsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "nacos HASH admin\n")
		var now, most atomic.Int64
		release := make(chan struct{})
		w.logins.compare = func([]byte, []byte) error {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
			return errors.New("wrong")
		}
		ended := make(chan error)
		places := cap(w.logins.places)
		if places != max(1, runtime.GOMAXPROCS(0)/2) {
			t.Errorf("%d at once on %d processors", places, runtime.GOMAXPROCS(0))
		}
		for n := range places + 5 {
			go func() {
				_, err := w.LogIn(t.Context(), netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), fmt.Sprint(n), "wrong")
				ended <- err
			}()
		}
		synctest.Wait()
		if w.Counts().LoginsOnHold != places {
			t.Errorf("%+v", w.Counts())
		}
		for range 5 {
			if err := <-ended; err != ErrBusy {
				t.Errorf("got %v", err)
			}
		}
		close(release)
		for range places {
			if err := <-ended; err != ErrUnknown {
				t.Errorf("got %v", err)
			}
		}
		if most.Load() != int64(places) || w.Counts().Busy != 5 {
			t.Errorf("%d at once, want %d; %+v", most.Load(), places, w.Counts())
		}
		// Who was not looked at has used nothing up.
		if used := len(w.logins.names.used); used == 0 || w.logins.names.used["5"].used > 1 {
			t.Errorf("%v", w.logins.names.used)
		}
	})
}

func TestLimiterForgets(t *testing.T) {
	l := limiter{burst: 2, refill: time.Second}
	start := time.Now()
	for n := range 3 * limitedMost {
		if !l.take(fmt.Sprint(n), start.Add(time.Duration(n)*time.Millisecond)) {
			t.Fatal(n)
		}
	}
	if len(l.used) > limitedMost {
		t.Errorf("%d are remembered", len(l.used))
	}
	for n := range 2 * limitedMost { // nobody has anything back yet
		l.take(fmt.Sprint("at once", n), start)
	}
	if len(l.used) > limitedMost {
		t.Errorf("%d are remembered", len(l.used))
	}
	l = limiter{burst: 2, refill: time.Second}
	l.take("a", start)
	if !l.take("a", start.Add(-time.Hour)) || l.take("a", start.Add(-time.Hour)) {
		t.Error("a clock that goes back gives more, or less")
	}
}

func TestTokenCacheIsBounded(t *testing.T) {
	var c tokenCache
	c.put(seen{"one", "a", 9}, 0)
	c.seen[maphash.String(seed, "other")] = c.seen[maphash.String(seed, "one")]
	if _, ok := c.get([]byte("other")); ok {
		t.Error("a token with the same hash is taken")
	}
	c = tokenCache{}
	text := func(n int) string { return fmt.Sprint("token", n) }
	for n := range tokensMost {
		c.put(seen{text(n), "a", int64(n % 2)}, 0)
	}
	c.put(seen{text(tokensMost), "a", 9}, 0) // half have expired
	if s, ok := c.get([]byte(text(1))); !ok || s.name != "a" || c.size() > tokensMost/2+1 {
		t.Errorf("%d are kept", c.size())
	}
	for n := range tokensMost {
		c.put(seen{text(-n), "a", 9}, 0)
	}
	if c.size() > tokensMost {
		t.Errorf("%d are kept", c.size())
	}
}

func TestKnownTokenAllocatesNothing(t *testing.T) {
	w := open(t, "nacos HASH admin\n")
	token := []byte(w.logIn(t, "nacos").Text)
	namespace := []byte("public")
	n := testing.AllocsPerRun(1000, func() {
		if u, err := w.ByToken(token); err != nil || !u.May(Write, namespace) {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKnownToken(b *testing.B) {
	w := open(b, "nacos HASH admin\n")
	token, namespace := []byte(w.logIn(b, "nacos").Text), []byte("public")
	b.ReportAllocs()
	for b.Loop() {
		if u, err := w.ByToken(token); err != nil || !u.May(Write, namespace) {
			b.Fatal(err)
		}
	}
}
