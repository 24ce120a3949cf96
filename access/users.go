package access

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// Level is how much a role allows; each holds those before it.
type Level uint8

// The levels.
const (
	None  Level = iota
	Read        // lists and reads
	Write       // registers, beats, marks, deregisters; services and clusters too
	Admin       // the namespace itself; everywhere: switches, figures, namespaces
)

var levels = map[string]Level{"read": Read, "write": Write, "admin": Admin}

// everywhere is the namespace of a role that holds in all.
const everywhere = "*"

// User is one line of the users file.
type User struct {
	name  string
	hash  []byte // bcrypt
	cost  int    // of the hash
	least Level  // in every namespace
	roles map[string]Level
}

// Name is what the user logs in by.
func (u *User) Name() string { return u.name }

// May tells whether the user has the level in the namespace; without a name, in
// all of them.
func (u *User) May(level Level, namespace []byte) bool {
	return u.least >= level || u.roles[string(namespace)] >= level // no role is for ""
}

// Somewhere tells whether the user has the level in any namespace.
func (u *User) Somewhere(level Level) bool {
	for _, has := range u.roles {
		if has >= level {
			return true
		}
	}
	return u.least >= level
}

// table are the users of one reading of the file.
type table struct {
	byName map[string]*User
	cost   int // the highest of all hashes: what each login costs
}

// Limits of the users file.
const (
	fileMost = 1 << 20 // bytes
	nameMost = 64      // bytes
	// A hash of a lower cost is found too quickly by who steals it, one of a
	// higher takes seconds of the registry's time.
	costLeast = 10
	costMost  = 14
	// passwordMost is what bcrypt looks at, bytes.
	passwordMost = 72
)

var (
	namePattern      = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)
	hashPattern      = regexp.MustCompile(`^\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}$`)
	namespacePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
)

// parseUsers reads the lines of a users file: NAME HASH ROLES, the hash by
// bcrypt, the roles as read, write or admin, each with @NAMESPACE behind it or
// for all namespaces, separated by commas. Blank lines and lines that begin
// with # are nothing. Errors name the line and never what is in it.
func parseUsers(text []byte) (*table, error) {
	t := &table{byName: map[string]*User{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, fileMost+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		u, err := parseUser(line)
		if err == nil && t.byName[u.name] != nil {
			err = errors.New("this user stands in a line before")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		t.byName[u.name] = u
		t.cost = max(t.cost, u.cost)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t.byName) == 0 {
		return nil, errors.New("it holds no user")
	}
	return t, nil
}

func parseUser(line string) (*User, error) {
	words := strings.Fields(line)
	if len(words) != 3 {
		return nil, fmt.Errorf("it has %d words; give three: name, bcrypt hash, roles", len(words))
	}
	u := &User{name: words[0], hash: []byte(words[1]), roles: map[string]Level{}}
	if !namePattern.MatchString(u.name) {
		return nil, errors.New("the name must be 1 to 64 letters, digits, or . _ @ -")
	}
	hash := hashPattern.FindStringSubmatch(words[1])
	if hash == nil {
		return nil, errors.New("the second word is no bcrypt hash; sidebeat-registry user NAME makes one")
	}
	u.cost, _ = strconv.Atoi(hash[1]) // two digits
	if u.cost < costLeast || u.cost > costMost {
		return nil, fmt.Errorf("the hash has cost %d; give %d to %d", u.cost, costLeast, costMost)
	}
	for role := range strings.SplitSeq(words[2], ",") {
		if err := u.grant(role); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *User) grant(role string) error {
	word, namespace, at := strings.Cut(role, "@")
	level := levels[word]
	switch {
	case level == None:
		return errors.New("a role is read, write or admin, with @NAMESPACE or for all namespaces, separated by commas")
	case !at || namespace == everywhere:
		u.least = max(u.least, level)
	case !namespacePattern.MatchString(namespace):
		return errors.New("a namespace is 1 to 128 letters, digits, or . _ -, or *")
	default:
		u.roles[namespace] = max(u.roles[namespace], level)
	}
	return nil
}

// Line gives the line of a users file for a name, a password and roles.
func Line(name, password, roles string) (string, error) {
	if len(password) > passwordMost {
		return "", fmt.Errorf("cannot take this password: it is longer than %d bytes", passwordMost)
	}
	if password == "" {
		return "", errors.New("cannot take this password: it is empty")
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), costLeast)
	if err != nil {
		return "", fmt.Errorf("cannot make a hash: %w", err)
	}
	line := name + " " + string(hash) + " " + roles
	if _, err := parseUser(line); err != nil {
		return "", fmt.Errorf("cannot make a line for %q with the roles %q: %w", name, roles, err)
	}
	return line, nil
}

// CheckUsers tells whether a users file can be used: it is for the start of a
// program, where a wrong one is a wrong setting.
func CheckUsers(path string) error {
	_, _, err := (&usersFile{path: path}).read()
	return err
}

// usersFile is read by one goroutine at a time.
type usersFile struct {
	path string
	last []byte // content, when there is one
	why  string // why it could not be read, as it was found last
}

// read gives the users, and whether what it found is not what it found last.
// It looks at the content each time: a change within one tick of the file
// system's clock is a change.
func (f *usersFile) read() (users *table, changed bool, err error) {
	text, err := readFile(f.path)
	if err != nil {
		changed = f.why != err.Error()
		f.last, f.why = nil, err.Error()
		return nil, changed, err
	}
	if f.last != nil && bytes.Equal(text, f.last) {
		return nil, false, nil
	}
	f.last, f.why = text, ""
	users, err = parseUsers(text)
	return users, true, err
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would hold us up
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fileMost+1))
	if err != nil {
		return nil, err
	}
	if len(text) > fileMost {
		return nil, fmt.Errorf("it is longer than %d bytes", fileMost)
	}
	return append([]byte{}, text...), nil
}
