package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heartbeat")
	touch := func(ago time.Duration) {
		t.Helper()
		os.WriteFile(path, nil, 0o600)
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, newAsker(t), "file:"+path, Sick, "no such file: "+path)
	expect(t, newAsker(t), "file:/etc/passwd/x", Unknown, "cannot look at the file")
	touch(20 * time.Second)
	expect(t, newAsker(t), "file:"+path, Well, "file touched 20")
	expect(t, newAsker(t), "file:"+path+"#age=19s", Sick, "file last touched 20")
	a := newAsker(t)
	touch(31 * time.Second)
	expect(t, a, "file:"+path, Sick, "file last touched 31")
	touch(0)
	expect(t, a, "file:"+path, Well, "file touched ")
	touch(-time.Hour)
	expect(t, a, "file:"+path, Well, "file touched 0s ago")
	os.Remove(path)
	expect(t, a, "file:"+path, Sick, "no such file")
}

// Each step is: a question at this second of our clock, the wall clock then,
// and the file's time on the wall clock; want is the age seen, in seconds.
func TestHeartbeatAge(t *testing.T) {
	f := func(want string, steps ...[3]int) {
		t.Helper()
		var h heartbeat
		var got []string
		begin := time.Now() // with a monotonic reading, as in the product
		for _, s := range steps {
			now := begin.Add(time.Duration(s[0]) * time.Second)
			// see compares the wall clock with the file's time only by their
			// difference, so a wall clock that is wrong is a file that is.
			modified := now.Round(0).Add(time.Duration(s[2]-s[1]) * time.Second)
			if h.modified.Sub(modified).Abs() < time.Millisecond {
				modified = h.modified
			}
			h = h.see(modified, now)
			got = append(got, now.Sub(h.changed).Round(time.Second).String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: got %s, want %s", steps, strings.Join(got, " "), want)
		}
	}
	f("5s", [3]int{0, 100, 95})
	f("5s 7s 9s", [3]int{0, 100, 95}, [3]int{2, 102, 95}, [3]int{4, 104, 95})
	f("5s 1s 3s", [3]int{0, 100, 95}, [3]int{2, 102, 101}, [3]int{4, 104, 101})
	f("0s 2s 40s", [3]int{0, 100, 3700}, [3]int{2, 102, 3700}, [3]int{40, 140, 3700}) // the future is now, and ages
	f("1s 2s", [3]int{0, 100, 99}, [3]int{2, 3702, 101})                              // the wall clock went on by an hour: not older than the last question
	f("1s 0s 2s", [3]int{0, 3700, 3699}, [3]int{2, 102, 3701}, [3]int{4, 104, 3701})  // back by an hour
}
