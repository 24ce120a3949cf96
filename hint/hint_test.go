package hint

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMeant(t *testing.T) {
	f := func(word, want string, known ...string) {
		t.Helper()
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got := Meant(word, known); got != want {
			t.Errorf("%q of %q: got %q, want %q", word, known, got, want)
		}
	}
	f("CHEK", "CHECK", "CHECK_RISE", "CHECK")
	f("stauts", "status", "method", "status")
	f("fal", "fall", "wall", "fall")
	f("xall", "fall", "wall", "fall")
	f("completely", "", "status")
	f("", "", "a")
	f("a", "", "b")
	f(strings.Repeat("x", 1<<20), "", "y")
}

func TestMeantBehind(t *testing.T) {
	if got := MeantBehind("SIDEBEAT_", "SIDEBEAT_XYZZY", []string{"SIDEBEAT_CHECK"}); got != "" {
		t.Errorf("got %q", got)
	}
	if got := MeantBehind("SIDEBEAT_", "SIDEBEAT_CHEK", []string{"SIDEBEAT_CHECK"}); got != "; did you mean SIDEBEAT_CHECK?" {
		t.Errorf("got %q", got)
	}
}

func TestDistance(t *testing.T) {
	if d := distance("kitten", "sitting"); d != 3 {
		t.Errorf("kitten to sitting: %d", d)
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,9}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab := distance(a, b)
		if ab != distance(b, a) || (ab == 0) != (a == b) || ab > distance(a, c)+distance(c, b) || ab > max(len(a), len(b)) {
			t.Fatalf("%q %q %q: %d", a, b, c, ab)
		}
	})
}
