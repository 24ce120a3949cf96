package check

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Spec is one question, parsed from one URL. It is comparable: two Specs are
// equal when they ask the same of the same target in the same words. The zero
// value asks nothing and is answered by Unknown.
type Spec struct {
	scheme  string
	host    string // "": loopback; IPv6 without brackets
	port    uint16 // 0: none given
	target  string // http: path and query as sent; exec: program; file: path; push: name
	args    string // exec: what stood after the question mark, canonical
	options string // fragment without timeout, canonical
	timeout time.Duration
}

// TCP asks whether something accepts connections on host:port; an empty host
// is loopback.
func TCP(host string, port uint16) Spec {
	return Spec{scheme: "tcp", host: host, port: port}
}

// Scheme is "http", "https", "tcp", "exec", "file", "push" or "none".
func (s Spec) Scheme() string { return s.scheme }

// Timeout is the one given with the Spec, over 0 and at most 10 minutes, or 0
// when none was given. Ask keeps to it by itself.
func (s Spec) Timeout() time.Duration { return s.timeout }

// At is the same question asked of this host, and of this port where the Spec
// names none. Questions that go over no network stay as they are.
func (s Spec) At(host string, port uint16) Spec {
	if !s.remote() {
		return s
	}
	s.host = host
	if s.port == 0 {
		s.port = port
	}
	return s
}

// Portless tells of a TCP check that names no port, which nobody can ask before
// At gives it one.
func (s Spec) Portless() bool { return s.scheme == "tcp" && s.port == 0 }

func (s Spec) remote() bool {
	return s.scheme == "http" || s.scheme == "https" || s.scheme == "tcp"
}

// String parses to the same Spec again. It shows header values and
// environments, which may be secrets: Label is for logs and status pages.
func (s Spec) String() string {
	return s.upToFragment(s.target, s.args) + s.fragment(func(o option) string { return o.String() })
}

// Label is String with everything hidden that may be a secret: the query of an
// HTTP check, header values, and values of environment variables.
func (s Spec) Label() string {
	target, args := s.target, s.args
	if path, _, found := strings.Cut(target, "?"); found && s.remote() {
		target = path + "?***"
	}
	if s.scheme == "exec" {
		args = joinOptions(splitOptions(args), option.hidden)
	}
	return s.upToFragment(target, args) + s.fragment(option.hidden)
}

func (s Spec) upToFragment(target, args string) string {
	text := s.scheme + ":"
	switch s.scheme {
	case "http", "https", "tcp":
		return text + "//" + s.authority() + target
	case "exec":
		text += escape(target, "?")
		if args != "" {
			text += "?" + args
		}
		return text
	}
	return text + escape(target, "")
}

func (s Spec) fragment(show func(option) string) string {
	list := splitOptions(s.options)
	if s.timeout > 0 {
		list = append(list, option{name: "timeout", value: s.timeout.String(), valued: true})
	}
	if len(list) == 0 {
		return ""
	}
	return "#" + joinOptions(list, show)
}

// authority is host:port as it stands in a URL.
func (s Spec) authority() string {
	host := strings.ReplaceAll(s.host, "%", "%25")
	if s.port != 0 {
		return net.JoinHostPort(host, strconv.Itoa(int(s.port)))
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func (s Spec) full() bool { return s.options == "full" }
