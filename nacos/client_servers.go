package nacos

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// defaultServerPort is where a Nacos server listens (server.port).
const defaultServerPort = 8848

// serverURL is where a registry answers: http(s)://host:port/context.
type serverURL struct {
	scheme  string // "http" or "https"
	host    string // name or address, an IPv6 address without brackets
	port    uint16
	context string // "/nacos"; never ends in a slash
}

// String gives the address as a URL, an IPv6 address in brackets.
func (a serverURL) String() string {
	host := a.host
	if strings.Contains(host, ":") {
		host = "[" + strings.Replace(host, "%", "%25", 1) + "]"
	}
	return a.scheme + "://" + host + ":" + strconv.Itoa(int(a.port)) + a.context
}

// endpoint gives host:port as the transport dials it.
func (a serverURL) endpoint() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// CheckServers tells what is wrong with the registries that the setting name
// gives: [http(s)://]host[:port][/context] each, one at least.
func CheckServers(name string, servers []string) error {
	if _, err := parseServers(servers); err != nil {
		return fmt.Errorf("cannot use %s: %w", name, err)
	}
	return nil
}

// parseServers reads a list of registries. Each word may itself be a list
// separated by commas. What is given twice is asked once. All faults are
// joined; none of them repeats a password that stands in a URL.
func parseServers(words []string) ([]serverURL, error) {
	var list []serverURL
	var faults []error
	for word := range strings.SplitSeq(strings.Join(words, ","), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		a, err := parseServer(word)
		if err != nil {
			faults = append(faults, err)
		} else if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("no registry given: write http://host:8848, several separated by commas"))
	}
	return list, errors.Join(faults...)
}

// parseServer reads [scheme://]host[:port][/context]. Left out, the scheme is
// http, the port 8848 (for https too) and the context /nacos; a lone slash
// counts as left out. An IPv6 address may stand in brackets or bare; bare it
// has no port, since 2001:db8::1:8848 is an address as a whole.
func parseServer(word string) (serverURL, error) {
	scheme, rest, found := strings.Cut(word, "://")
	if !found {
		scheme, rest = "http", word
	}
	scheme = strings.ToLower(scheme)
	authority, context := rest, ""
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		authority, context = rest[:slash], strings.TrimRight(rest[slash:], "/")
	}
	if strings.Contains(authority, "@") {
		return serverURL{}, errors.New("cannot take a registry with a user in its URL: give user and password by their own settings")
	}
	if scheme != "http" && scheme != "https" {
		return serverURL{}, serverFault(word, "the scheme must be http or https")
	}
	if context == "" {
		context = DefaultContext
	}
	if u, err := url.Parse(context); err != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != context ||
		strings.HasPrefix(context, "//") || strings.ContainsAny(context, "?#{}\\ ") {
		return serverURL{}, serverFault(word, "after the port only a context path such as /nacos may follow")
	}
	host, port, err := splitHostPort(authority)
	if err != nil {
		return serverURL{}, serverFault(word, err.Error())
	}
	return serverURL{scheme: scheme, host: host, port: port, context: context}, nil
}

func serverFault(word, why string) error {
	return fmt.Errorf("cannot take %.100q as a registry: %s", word, why)
}

func splitHostPort(authority string) (host string, port uint16, err error) {
	host, tail := authority, ""
	switch {
	case strings.HasPrefix(authority, "["):
		inside, after, closed := strings.Cut(authority[1:], "]")
		if !closed || after != "" && after[0] != ':' {
			return "", 0, errors.New("an IPv6 address in brackets is [2001:db8::1]:8848")
		}
		host, tail = strings.Replace(inside, "%25", "%", 1), after
	case strings.Count(authority, ":") == 1:
		colon := strings.IndexByte(authority, ':')
		host, tail = authority[:colon], authority[colon:]
	}
	if err := checkHost(host, strings.HasPrefix(authority, "[")); err != nil {
		return "", 0, err
	}
	if tail == "" {
		return host, defaultServerPort, nil
	}
	n, err := strconv.ParseUint(tail[1:], 10, 16)
	if err != nil || n == 0 || tail[1] == '+' {
		return "", 0, fmt.Errorf("the port must be a number from 1 to 65535, not %.20q", tail[1:])
	}
	return host, uint16(n), nil
}

// checkHost takes an address or a name of letters, digits, dashes, underscores
// and dots (RFC 1123, and the underscore that Docker and SRV names have).
func checkHost(host string, bracketed bool) error {
	if bracketed || strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is6() {
			return fmt.Errorf("%.60q is no IPv6 address; with a port it is [2001:db8::1]:8848", host)
		}
		return checkName(a.Zone())
	}
	if host == "" {
		return errors.New("the host is missing: http://host:8848")
	}
	return checkName(host)
}

func checkName(name string) error {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._", r) {
			return fmt.Errorf("%q cannot stand in a host name", r)
		}
	}
	return nil
}
