package nacos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-resty/resty/v2"

	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/registry"
)

// Limits of an exchange, bytes; a server that sends more is cut off, so that a
// sidecar of 16 MB survives it. An instance with all the metadata that it may
// have fits into a body, the list of a service of ten thousand instances into a
// list, and 500 instances with all their metadata into a page.
const (
	mostBody   = 256 << 10
	mostList   = 4 << 20
	mostPage   = 32 << 20
	mostHeader = 64 << 10
	// idleTime is below the 20 s after which Tomcat closes an idle connection
	// (server.tomcat.keep-alive-timeout), so that a beat seldom meets one that
	// is just being closed.
	idleTime = 15 * time.Second
)

// request is one HTTP request but for the server it goes to.
type request struct {
	method, path string
	query        string // encoded
	form         url.Values
	match        string // If-Match, or ""
	most         int    // bytes of the answer; 0 is mostBody
}

// newTransport makes the transport that every call of a client goes through.
// It resolves a name with each connection it opens, speaks HTTP/1.1 only, and
// knows a proxy only when one is given.
func newTransport(config ClientConfig, known *pool) *http.Transport {
	dial := config.Dial
	if dial == nil {
		dial = newDialer().DialContext
	}
	open := func(ctx context.Context, network, endpoint string) (net.Conn, error) {
		known.dialed(endpoint)
		conn, err := dial(ctx, network, endpoint)
		if err == nil {
			known.reached(endpoint, conn.RemoteAddr().String())
		}
		return conn, err
	}
	return &http.Transport{
		Proxy:                  config.Proxy,
		DialContext:            open,
		DialTLSContext:         secured(open, config.TLS),
		TLSHandshakeTimeout:    attemptTime, // behind a proxy
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: mostHeader,
		DisableCompression:     true,
	}
}

// nameTime is what one name server gets at most, so that the second of them,
// when the first is dead, is asked within the time of an attempt.
const nameTime = time.Second

func newDialer() *net.Dialer {
	names := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			conn = netpolicy.Hurried(conn, time.Now().Add(nameTime))
		}
		return conn, err
	}}
	return &net.Dialer{Timeout: attemptTime, KeepAlive: idleTime, Resolver: names}
}

// secured opens connections that speak TLS as it is to be spoken now; nil for a
// transport that knows by itself.
func secured(open func(ctx context.Context, network, endpoint string) (net.Conn, error), now func() *tls.Config) func(ctx context.Context, network, endpoint string) (net.Conn, error) {
	if now == nil {
		return nil
	}
	return func(ctx context.Context, network, endpoint string) (net.Conn, error) {
		conn, err := open(ctx, network, endpoint)
		if err != nil {
			return nil, err
		}
		config := now().Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(endpoint) // a transport gives host:port
		}
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		safe := tls.Client(conn, config)
		if err := safe.HandshakeContext(ctx); err != nil {
			conn.Close()
			if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(plain.RecordHeader[:]) == "HTTP/" {
				err = errors.New("http: server gave HTTP response to HTTPS client") // the words of net/http
			}
			return nil, err
		}
		return safe, nil
	}
}

// newResty takes from resty what it does behind one's back: retries, cookies,
// redirects, a proxy from the environment, its own log.
func newResty(transport *http.Transport, version string) *resty.Client {
	r := resty.NewWithClient(&http.Client{Transport: transport}).
		SetRedirectPolicy(resty.NoRedirectPolicy()).
		SetResponseBodyLimit(mostBody).
		SetDisableWarn(true).
		SetLogger(silent{}).
		SetHeader("User-Agent", "Sidebeat-Client:v"+version).
		SetHeader("Client-Version", version).
		SetHeader("Request-Module", "Naming").
		SetHeader("Accept", "application/json, text/plain;q=0.9")
	// An empty list is not sent, but lets net/http make a request again when
	// the server closed the idle connection it went out on. All requests to a
	// registry may be made twice.
	r.Header["Idempotency-Key"] = nil
	return r
}

// silent keeps resty's log lines, which quote URLs, out of the program's log:
// every error comes back to the caller anyway.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// exchange makes one request to one server, with a token or "" for none.
func (c *Client) exchange(ctx context.Context, s *server, q request, token string) (answer, error) {
	r := c.http.R().SetContext(ctx)
	if token != "" {
		// Never in the query: access logs keep that. 1.4.8 takes this header,
		// but not the one named accessToken.
		r.Header["Authorization"] = []string{"Bearer " + token}
	}
	if q.match != "" {
		r.Header["If-Match"] = []string{q.match}
	}
	target := s.base + q.path
	if q.query != "" {
		target += "?" + q.query
	}
	if q.most > 0 {
		r.SetResponseBodyLimit(q.most)
	}
	if q.form != nil {
		r.SetFormDataFromValues(q.form)
	}
	response, err := r.Execute(q.method, target)
	if err != nil {
		return answer{}, c.broken(s, response, err)
	}
	a := answer{
		from: s, status: response.StatusCode(), kind: mediaType(response.Header().Get("Content-Type")),
		body: response.Body(), secret: c.login.secrets(),
	}
	if a.page() {
		return a, a.failed("a web page: is there a proxy or another program at this address?")
	}
	return a, nil
}

// broken explains why there is no answer, without the URL and its query.
func (c *Client) broken(s *server, response *resty.Response, err error) error {
	f := &failure{word: registry.ErrUnavailable, cause: err, blame: true}
	if errors.Is(err, resty.ErrAutoRedirectDisabled) && response != nil {
		f.text = fmt.Sprintf("%s answered %d, a redirect%s: give the address that answers itself",
			s.base, response.StatusCode(), elsewhere(response.Header().Get("Location"), c.login.secrets()))
		return f
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		f.cause = outer.Err
	}
	why := f.cause.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	case errors.Is(err, resty.ErrResponseBodyTooLarge):
		why = "the answer is too large"
	}
	if text := scrub(why, c.login.secrets()); len(text) > mostText || strings.ContainsFunc(text, isControl) {
		why = bounded(text, nil)
	} else {
		why = text
	}
	f.text = s.base + ": " + why
	return f
}

// elsewhere names the host of a Location and not its path or query, which may
// hold what the request held.
func elsewhere(location string, secrets []string) string {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" {
		return ""
	}
	return " to " + bounded(u.Scheme+"://"+u.Host, secrets)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// scrub takes secrets out of a text, as they are and as a URL encodes them.
func scrub(text string, secrets []string) string {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return text
}

// query collects encoded parameters in the order they are added.
type query struct{ strings.Builder }

func (q *query) add(name, value string) {
	if q.Len() > 0 {
		q.WriteByte('&')
	}
	q.WriteString(name)
	q.WriteByte('=')
	q.WriteString(url.QueryEscape(value))
}
