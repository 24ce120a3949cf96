package check

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// redirect gives the next hop where the answer is a redirect, or says why it is
// not followed. Neither: it is no redirect.
func (x *exchange) redirect(response *http.Response) (*hop, Answer) {
	location := response.Header.Get("Location")
	switch response.StatusCode {
	case 301, 302, 303, 307, 308:
	default:
		return nil, Answer{}
	}
	if location == "" {
		return nil, Answer{}
	}
	next, err := x.follow(location)
	if err != nil {
		return nil, Answer{Kind: Sick, Reason: fmt.Sprintf("redirect to %s not followed: %v", location, err)}
	}
	if code := response.StatusCode; code == 303 || code < 303 && next.method == "POST" {
		if next.method != "HEAD" {
			next.method = "GET" // RFC 9110, 15.4
		}
	}
	return next, Answer{}
}

// follow resolves a Location by RFC 3986 against what was asked.
func (x *exchange) follow(location string) (*hop, error) {
	base, err := url.Parse(x.scheme + "://" + x.hop.authority() + x.target)
	if err != nil {
		return nil, err
	}
	ref, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	to := base.ResolveReference(ref)
	if to.Scheme != "http" && to.Scheme != "https" || to.Opaque != "" {
		return nil, fmt.Errorf("not an http address")
	}
	next := hop{scheme: to.Scheme, host: x.host, port: x.port, method: x.method, target: strings.ReplaceAll(to.RequestURI(), " ", "%20"), headers: x.headers, name: x.name}
	if to.Host == base.Host && to.Scheme == base.Scheme {
		return &next, nil
	}
	return &next, x.leave(&next, to)
}

// leave sets where another authority or scheme lives. Headers, which may hold
// credentials, and the TLS name go along only to the same host, and headers
// never from https to http.
func (x *exchange) leave(next *hop, to *url.URL) error {
	host, err := parseHost(to.Hostname())
	if err != nil || host == "" {
		return fmt.Errorf("no usable host")
	}
	next.port = 0
	if port := to.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("bad port %q", port)
		}
		next.port = uint16(n)
	}
	downgrade := x.scheme == "https" && next.scheme == "http"
	same := strings.EqualFold(host, x.hostname())
	if downgrade || !same {
		next.headers = nil
	}
	if !same {
		next.host, next.name = host, ""
	}
	return nil
}
