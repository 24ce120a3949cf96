package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

const (
	patience   = 10 * time.Second // for a call whose context has no deadline
	answerMost = 4 << 20          // bytes of an answer; a status of some thousand targets fits
	// rotation is after how long a program is asked again whose certificate is
	// not the one in its file: it looks at that once a second.
	rotation = 1100 * time.Millisecond
)

// Client asks the admin endpoint of a program on this machine.
type Client struct {
	Address string
	TLS     *tls.Config            // nil: plain HTTP
	Token   func() (string, error) // sent with a POST; nil or "": there is none
}

// Get asks for a path. An address that names no host, or all of them, is asked
// on loopback. The answer is cut at 4 MiB. Without a deadline in the context it
// gives up after 10 s.
func (c Client) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	return c.call(ctx, http.MethodGet, path)
}

// Post is Get for what changes something; it sends no body.
func (c Client) Post(ctx context.Context, path string) (status int, body []byte, err error) {
	return c.call(ctx, http.MethodPost, path)
}

// Get is Client.Get over plain HTTP.
func Get(ctx context.Context, address, path string) (status int, body []byte, err error) {
	return Client{Address: address}.Get(ctx, path)
}

// Post is Client.Post over plain HTTP and without a token.
func Post(ctx context.Context, address, path string) (status int, body []byte, err error) {
	return Client{Address: address}.Post(ctx, path)
}

func (c Client) call(ctx context.Context, method, path string) (int, []byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	status, body, err := c.send(ctx, method, path)
	if _, other := errors.AsType[*tls.CertificateVerificationError](err); other && run.Wait(ctx, rotation) == nil {
		status, body, err = c.send(ctx, method, path)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask the admin endpoint at %s: %w%s", c.Address, err, c.hint(err))
	}
	return status, body, nil
}

// hint tells what most often is the matter.
func (c Client) hint(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return " (does it run, and with this SIDEBEAT_ADMIN?)"
	case c.TLS == nil && errors.Is(err, io.EOF):
		return " (does it speak TLS? then set its SIDEBEAT_TLS_CERT_FILE and SIDEBEAT_TLS_KEY_FILE here too)"
	}
	return ""
}

func (c Client) send(ctx context.Context, method, path string) (int, []byte, error) {
	request, err := c.request(ctx, method, path)
	if err != nil {
		return 0, nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: c.TLS} // and no proxy
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerMost))
	return response.StatusCode, body, err
}

func (c Client) request(ctx context.Context, method, path string) (*http.Request, error) {
	if c.Address == Off {
		return nil, fmt.Errorf("SIDEBEAT_ADMIN is %s", Off)
	}
	reach, err := reachable(c.Address)
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, method, scheme+reach+path, nil)
	if err != nil || method == http.MethodGet || c.Token == nil {
		return request, err
	}
	token, err := c.Token()
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, err
}

func reachable(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() && !ip.Is4In6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port), nil
}
