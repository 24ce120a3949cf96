package admin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	patience   = 10 * time.Second // for a call whose context has no deadline
	answerMost = 4 << 20          // bytes of an answer; a status of some thousand targets fits
)

// Get asks the admin endpoint of a program on this machine. An address that
// names no host, or all of them, is asked on loopback. The answer is cut at
// 4 MiB. Without a deadline in the context it gives up after 10 s.
func Get(ctx context.Context, address, path string) (status int, body []byte, err error) {
	return call(ctx, http.MethodGet, address, path)
}

// Post is Get for what changes something; it sends no body.
func Post(ctx context.Context, address, path string) (status int, body []byte, err error) {
	return call(ctx, http.MethodPost, address, path)
}

func call(ctx context.Context, method, address, path string) (int, []byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	status, body, err := send(ctx, method, address, path)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask the admin endpoint at %s: %w", address, err)
	}
	return status, body, nil
}

func send(ctx context.Context, method, address, path string) (int, []byte, error) {
	if address == Off {
		return 0, nil, fmt.Errorf("SIDEBEAT_ADMIN is %s", Off)
	}
	reach, err := reachable(address)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+reach+path, nil)
	if err != nil {
		return 0, nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true} // and no proxy
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerMost))
	return response.StatusCode, body, err
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
