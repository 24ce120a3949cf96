package setting

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	"golang.org/x/term"
)

// logTime is RFC 3339 with milliseconds, which Go has no name for.
const logTime = "2006-01-02T15:04:05.000Z07:00"

var (
	logLevels  = []string{"error", "warn", "warning", "info", "debug", "trace"}
	logFormats = []string{"", "text", "json"}
)

// Log is how a program writes its log; embed it in its settings.
type Log struct {
	LogLevel  string `split_words:"true" default:"info" desc:"error, warn, info, debug or trace"`
	LogFormat string `split_words:"true" desc:"text or json; unset: text on a terminal, else json"`
}

// Validate refuses a level or a format that does not exist.
func (l Log) Validate() error {
	if !slices.Contains(logLevels, strings.ToLower(l.LogLevel)) {
		return fmt.Errorf("cannot use SIDEBEAT_LOG_LEVEL=%q: give error, warn, info, debug or trace", shorten(l.LogLevel))
	}
	if !slices.Contains(logFormats, l.LogFormat) {
		return fmt.Errorf("cannot use SIDEBEAT_LOG_FORMAT=%q: give text or json", shorten(l.LogFormat))
	}
	return nil
}

// New returns a logger that writes to w, one line an entry, without colours. A
// level that does not exist counts as info.
func (l Log) New(w io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(w)
	if level, err := logrus.ParseLevel(l.LogLevel); err == nil {
		log.SetLevel(level)
	}
	log.SetFormatter(clean{&logrus.JSONFormatter{TimestampFormat: logTime, DisableHTMLEscape: true}})
	if l.LogFormat == "text" || l.LogFormat == "" && terminal(w) {
		log.SetFormatter(clean{&logrus.TextFormatter{TimestampFormat: logTime, DisableColors: true, FullTimestamp: true}})
	}
	return log
}

func terminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr }) // an *os.File, or what stands before one
	return ok && term.IsTerminal(int(file.Fd()))
}

// clean writes durations with their unit, and makes sure that no control byte
// reaches the terminal of whoever reads the log: texts come from apps and
// registries. What it writes instead is valid within a JSON string.
type clean struct{ logrus.Formatter }

func (c clean) Format(entry *logrus.Entry) ([]byte, error) {
	tidy := *entry
	tidy.Data = make(logrus.Fields, len(entry.Data))
	for key, value := range entry.Data {
		if d, ok := value.(time.Duration); ok {
			value = d.String()
		}
		tidy.Data[key] = value
	}
	line, err := c.Formatter.Format(&tidy)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(string(line), "\n")
	return append(escapeControls(text), '\n'), nil
}

// escapeControls replaces C0, DEL, C1, line separators and direction marks,
// and bytes that are no UTF-8.
func escapeControls(s string) []byte {
	out := make([]byte, 0, len(s)+1)
	for _, r := range s {
		switch {
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
