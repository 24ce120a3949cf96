package setting

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	"pgregory.net/rapid"
)

func TestLogFormats(t *testing.T) {
	f := func(format, want string) {
		t.Helper()
		var out bytes.Buffer
		log := Log{LogLevel: "info", LogFormat: format}.New(&out)
		entry := log.WithFields(logrus.Fields{"service": "orders", "took": 1500 * time.Millisecond, "cause": errors.New("a <b>")})
		entry.Debug("not seen")
		entry.Warn("is down")
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%q: got %s, want %s", format, &out, want)
		}
	}
	const when = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)`
	asText := `^time="?` + when + `"? level=warning msg="is down" cause="a <b>" service=orders took=1.5s\n$`
	asJSON := `^{"cause":"a <b>","level":"warning","msg":"is down","service":"orders","time":"` + when + `","took":"1.5s"}\n$`
	f("text", asText)
	f("json", asJSON)
	f("", asJSON) // a buffer is no terminal
}

func TestLogLevel(t *testing.T) {
	f := func(level string, want logrus.Level, valid bool) {
		t.Helper()
		l := Log{LogLevel: level}
		if got := l.New(os.Stderr).GetLevel(); got != want || (l.Validate() == nil) != valid {
			t.Errorf("%q: got %v and %v", level, got, l.Validate())
		}
	}
	f("debug", logrus.DebugLevel, true)
	f("WARN", logrus.WarnLevel, true)
	f("loud", logrus.InfoLevel, false)
	f("panic", logrus.PanicLevel, false)
}

// Apps and registries say what they like; the terminal of whoever reads the
// log must not obey it, and one entry stays one line.
func TestLogShowsNoControlBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"\x1b[2J", "\u009b2J", "\x7f", "a\nlevel=error", "\u2028", "\u202eabc", "\u2066"})).Draw(t, "text")
		format := rapid.SampledFrom([]string{"text", "json"}).Draw(t, "format")
		var out bytes.Buffer
		Log{LogFormat: format}.New(&out).WithField("cause", text).WithField("key"+text, errors.New(text)).Error(text)
		line, ended := strings.CutSuffix(out.String(), "\n")
		if bad := regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]`).FindString(line); bad != "" || !ended || !utf8.ValidString(line) {
			t.Fatalf("%q within %q", bad, out.String())
		}
		var fields map[string]string
		if format != "json" {
			return
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["cause"] != strings.ToValidUTF8(text, "") && utf8.ValidString(text) {
			t.Fatalf("%s: %v", line, err)
		}
	})
}

func TestLogLeavesTheEntryAlone(t *testing.T) {
	var out bytes.Buffer
	entry := Log{LogFormat: "json"}.New(&out).WithField("took", time.Second)
	entry.Info("one")
	entry.Info("two")
	if got := strings.Count(out.String(), `"took":"1s"`); got != 2 || entry.Data["took"] != time.Second {
		t.Errorf("got %s and %v", &out, entry.Data)
	}
}
