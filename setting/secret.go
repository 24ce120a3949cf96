package setting

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// fileSuffix makes the name of a secret's twin, the path of a file.
	fileSuffix = "_FILE"
	// secretMost bounds what is read of a secret's file: longer than any
	// password or token, short enough that a wrong path costs nothing.
	secretMost = 64 << 10
	// restless is how long after a change a file is read each time: two changes
	// within one tick of the file system's clock look like one.
	restless = 2 * time.Second
)

// Secret is a setting that is never shown. A field Password reads
// SIDEBEAT_PASSWORD, or the file named by SIDEBEAT_PASSWORD_FILE, which is read
// again when it changes. Copies share what they know. The zero value is "none".
type Secret struct{ source *source }

type source struct {
	plain string // the value, when no file is given

	name, path string // the variable and the file
	mu         sync.Mutex
	last       os.FileInfo // the file as it was when content was read
	content    string
}

// NewSecret returns a secret with a fixed value.
func NewSecret(value string) Secret { return Secret{&source{plain: value}} }

// Set takes the value from a variable. It never fails, because an error would
// carry the value.
func (s *Secret) Set(value string) error {
	*s = NewSecret(value)
	return nil
}

func (s *Secret) at(name, path string) { *s = Secret{&source{name: name, path: path}} }

// Value gives the secret, "" when there is none. It reads the file again when
// that was replaced or changed since, and trims line ends at its end; errors
// name the file and never what is in it.
func (s Secret) Value() (string, error) {
	if s.source == nil || s.source.path == "" {
		return s.plain(), nil
	}
	return s.source.read()
}

func (s Secret) plain() string {
	if s.source == nil {
		return ""
	}
	return s.source.plain
}

func (s *source) read() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := os.Stat(s.path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", s.name, err)
	}
	if s.last != nil && same(s.last, now) && time.Since(now.ModTime()) > restless {
		return s.content, nil
	}
	content, err := readSecret(s.path, now)
	if err != nil {
		return "", fmt.Errorf("cannot read %s=%s: %w", s.name, s.path, err)
	}
	s.last, s.content = now, content
	return content, nil
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func readSecret(path string, info os.FileInfo) (string, error) {
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("it is no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, secretMost+1))
	if err != nil {
		return "", err
	}
	if len(raw) > secretMost {
		return "", fmt.Errorf("it is longer than %d bytes", secretMost)
	}
	content := strings.TrimRight(string(raw), "\r\n")
	if content == "" {
		return "", fmt.Errorf("it is empty")
	}
	return content, nil
}

// String gives "***", or "" when there is no secret.
func (s Secret) String() string {
	if s.source == nil || s.source.plain == "" && s.source.path == "" {
		return ""
	}
	return "***"
}

// GoString gives String, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText gives String, for JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
