package check

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxTimeout bounds what an option timeout may ask for.
const maxTimeout = 10 * time.Minute

// ParseSpecs parses check URLs separated by blanks. All faults are reported at
// once. No URL at all is no error.
func ParseSpecs(raw string) ([]Spec, error) {
	var specs []Spec
	var faults []error
	for word := range strings.FieldsSeq(raw) {
		s, err := ParseSpec(word)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		specs = append(specs, s)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return specs, nil
}

// ParseSpec parses one check URL:
//
//	http://host:port/path  https://host:port/path
//	    method=GET  header=name:value (*)  status=200-399,401  (default 200-399)
//	    headerfile=name:/path (*)  (the value is in a file, read each time)
//	    body=text (*)  match=RE2 expression (*)  json=path==value (*)
//	    redirects=0 to 20 (default 0)  insecure  ca=/path  servername=name
//	tcp://host:port        full (a whole connection, which the app sees)
//	exec:/path?arg=a&arg=b&env=NAME&env=NAME=value
//	    output=0 to 65536 bytes that are kept (default 4096)
//	file:/path             age=30s, up to 24h
//	push:name              ttl=30s, up to 24h
//	none:
//
// Options stand in the fragment, as in #status=200&timeout=800ms; those with
// (*) may come several times and must all hold; timeout goes with every kind,
// up to 10m. An empty host is loopback. The path of an HTTP check is sent byte
// for byte; values are percent-decoded, see Escape. Of a body the first 64 KiB
// count.
//
// The error says what is wrong and what would be right; it quotes nothing of
// the query or the options but the faulty part.
func ParseSpec(raw string) (Spec, error) {
	s, err := parse(raw)
	if err != nil {
		shown, _, _ := strings.Cut(raw, "#")
		shown, _, _ = strings.Cut(shown, "?")
		return Spec{}, fmt.Errorf("cannot use check %q: %w", shown, err)
	}
	return s, nil
}

func parse(raw string) (Spec, error) {
	if i := strings.IndexFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f || unicode.IsSpace(r) }); i >= 0 {
		return Spec{}, fmt.Errorf("byte %d is %q: write a blank as %%20, other bytes alike", i, raw[i])
	}
	front, fragment, _ := strings.Cut(raw, "#")
	scheme, rest, found := strings.Cut(front, ":")
	s := Spec{scheme: strings.ToLower(scheme)}
	if _, known := kinds[s.scheme]; !found || !known {
		return Spec{}, errors.New("it must begin with http://, https://, tcp://, exec:/, file:/, push: or none:")
	}
	if err := s.parseTarget(rest); err != nil {
		return Spec{}, err
	}
	if err := s.parseFragment(fragment); err != nil {
		return Spec{}, err
	}
	return s, nil
}

func (s *Spec) parseTarget(rest string) error {
	switch s.scheme {
	case "http", "https":
		return s.parseHTTP(rest)
	case "tcp":
		return s.parseTCP(rest)
	case "exec":
		return s.parseExec(rest)
	case "file":
		return s.parseFile(rest)
	case "push":
		return s.parsePush(rest)
	}
	if rest != "" {
		return fmt.Errorf("%q after none: is too much", rest)
	}
	return nil
}

func (s *Spec) parseHTTP(rest string) error {
	rest, found := strings.CutPrefix(rest, "//")
	if !found {
		return fmt.Errorf("two slashes are missing after %s:", s.scheme)
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	s.target = rest[end:]
	if !strings.HasPrefix(s.target, "/") {
		s.target = "/" + s.target
	}
	return s.parseAuthority(rest[:end])
}

func (s *Spec) parseTCP(rest string) error {
	if err := s.parseAuthority(strings.TrimPrefix(rest, "//")); err != nil {
		return err
	}
	if s.host != "" && s.port == 0 {
		return errors.New("a tcp check needs a port: tcp://host:port")
	}
	return nil
}

func (s *Spec) parseAuthority(text string) error {
	if strings.Contains(text, "@") {
		return errors.New("user and password do not belong into a check URL: use #header=Authorization:...")
	}
	host, port, err := splitHostPort(text)
	if err != nil {
		return err
	}
	if s.host, err = parseHost(host); err != nil {
		return err
	}
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	s.port = uint16(n)
	return nil
}

func splitHostPort(text string) (host, port string, err error) {
	if inside, found := strings.CutPrefix(text, "["); found {
		host, after, closed := strings.Cut(inside, "]")
		port, colon := strings.CutPrefix(after, ":")
		if !closed || host == "" || after != "" && !colon || !strings.Contains(host, ":") {
			return "", "", fmt.Errorf("%q is no address: an IPv6 address is written [2001:db8::7]:8080", text)
		}
		return host, port, nil
	}
	host, port, _ = strings.Cut(text, ":")
	if strings.Contains(port, ":") {
		return "", "", fmt.Errorf("%q has too many colons: an IPv6 address is written [2001:db8::7]:8080", text)
	}
	return host, port, nil
}

// parseHost takes an address or a name of letters, digits, '-', '_' and '.'.
func parseHost(host string) (string, error) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(strings.Replace(host, "%25", "%", 1))
		if err != nil || strings.ContainsAny(addr.Zone(), "%[]/?#@") {
			return "", fmt.Errorf("%q is no IPv6 address", host)
		}
		return addr.String(), nil
	}
	if len(host) > 253 {
		return "", errors.New("a host name has at most 253 bytes")
	}
	for _, r := range host {
		if !nameRune(r) {
			return "", fmt.Errorf("host %q holds %q: only letters, digits, '-', '_' and '.' may stand there", host, r)
		}
	}
	return strings.ToLower(host), nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}

func (s *Spec) parseExec(rest string) error {
	program, query, _ := strings.Cut(rest, "?")
	var err error
	if s.target, err = localPath(program); err != nil {
		return err
	}
	args, err := parseOptions(query)
	if err != nil {
		return err
	}
	for _, o := range args {
		if err := vetArgument(o); err != nil {
			return err
		}
	}
	s.args = joinOptions(args, option.String)
	return nil
}

func vetArgument(o option) error {
	switch {
	case o.name != "arg" && o.name != "env":
		return fmt.Errorf("%q after the question mark: only arg=... and env=... may stand there", o.name)
	case !o.valued || o.name == "env" && (o.value == "" || o.value[0] == '='):
		return fmt.Errorf("%s needs a value", o.name)
	case strings.Contains(o.value, "\x00"):
		return fmt.Errorf("%s holds a NUL byte", o.name)
	case o.name == "env" && secretName(o.value) && !strings.Contains(o.value, "="):
		return fmt.Errorf("env=%s: settings of ours are not passed on to a check", o.value)
	}
	return nil
}

// localPath takes /path and ///path, percent-decoded.
func localPath(raw string) (string, error) {
	if strings.HasPrefix(raw, "///") {
		raw = raw[2:]
	}
	path, err := url.PathUnescape(raw)
	switch {
	case err != nil:
		return "", errors.New("bad escape in the path: write %25 for a percent sign")
	case !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || path == "/":
		return "", errors.New("the path must be absolute, with one slash in front")
	case strings.Contains(path, "\x00"):
		return "", errors.New("the path holds a NUL byte")
	}
	return path, nil
}

func (s *Spec) parseFile(rest string) (err error) {
	s.target, err = localPath(rest)
	return err
}

func (s *Spec) parsePush(rest string) error {
	for _, r := range rest {
		if !nameRune(r) {
			return fmt.Errorf("push name %q holds %q: only letters, digits, '-', '_' and '.' may stand there", rest, r)
		}
	}
	if len(rest) > maxPushName {
		return fmt.Errorf("a push name has at most %d bytes", maxPushName)
	}
	s.target = rest
	return nil
}

func (s *Spec) parseFragment(fragment string) error {
	list, err := parseOptions(fragment)
	if err != nil {
		return err
	}
	if list, err = vet(s.scheme, list); err != nil {
		return err
	}
	var kept []option
	for _, o := range list {
		if o.name != "timeout" {
			kept = append(kept, o)
			continue
		}
		if s.timeout, err = parseDuration(o, maxTimeout); err != nil {
			return err
		}
	}
	s.options = canonical(kept)
	_, err = compile(s.options)
	return err
}

func parseDuration(o option, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(o.value)
	if err != nil || d <= 0 || d > most {
		return 0, fmt.Errorf("option %q is %q: it is a time with a unit, such as 800ms or 5s, over 0 and at most %v", o.name, o.value, most)
	}
	return d, nil
}
