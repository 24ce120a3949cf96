package setting

import (
	"strings"
	"testing"
)

func TestCheckListen(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		err := CheckListen("SIDEBEAT_ADMIN", address, "off")
		if want == "" && err != nil {
			t.Errorf("%q: %v", address, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", address, err, want)
		}
	}
	f("127.0.0.1:9180", "")
	f(":0", "")
	f("[::1]:65535", "")
	f("off", "")
	f("Off", `cannot use SIDEBEAT_ADMIN="Off": give host:port`)
	f("9180", "; or off")
	f("", "give host:port")
	f("::1:9180", "give host:port")
	f(":65536", "the port must be a number")
	f(":09180", "the port must be a number")
	f(":http", "the port must be a number")
	f("http://x:9180", "give host:port")
	f("a b:9180", "without blanks")
	f("a/b:9180", "without blanks")
	if err := CheckListen("SIDEBEAT_LISTEN", "off"); err == nil {
		t.Error("a word that is none was taken")
	}
}
