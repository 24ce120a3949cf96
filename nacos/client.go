package nacos

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-resty/resty/v2"
	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// ClientConfig says which registry a Client speaks to, and how.
type ClientConfig struct {
	// Servers are http(s)://host:port/context each, or several of them
	// separated by commas. Scheme http, port 8848 and context /nacos may be
	// left out; an IPv6 address stands in brackets, or bare without a port.
	Servers []string
	// Username logs in; "" sends no token.
	Username string
	// Password is asked at each login, so that it may rotate. It may be nil.
	Password func() (string, error)
	// Budget is how long a call may take, all attempts together; 0 is 4 s. It
	// should be shorter than the period of a beat.
	Budget time.Duration
	// Proxy finds the proxy for a request, such as
	// net/http.ProxyFromEnvironment; nil goes straight to the registry.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is asked before each connection to an https server, so that files may
	// rotate; nil verifies with the system's authorities. Without a ServerName
	// the host of the address has to stand in the certificate.
	TLS func() *tls.Config
	// Dial opens connections, and UDP sockets to find a route; nil is a
	// net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Version goes into the User-Agent.
	Version string
	// Log gets one line when another server is used than before; it may be nil.
	Log *logrus.Logger
}

// Client speaks to a Nacos registry over HTTP, on behalf of an agent and of a
// prober. One is enough for a process: it is safe for concurrent use and runs
// no goroutine of its own.
//
// Every method ends within the budget and returns errors that wrap
// registry.ErrNotFound (unknown there: register again), registry.ErrStale,
// registry.ErrRefused (asking again cannot help) or registry.ErrUnavailable
// (nobody did it now); context.Canceled when the caller gave up. The texts of
// servers in them are bounded and hold no secret.
type Client struct {
	http      *resty.Client
	transport *http.Transport
	pool      *pool
	login     *login
	gate      gate
	budget    time.Duration
	log       *logrus.Logger
	dial      func(ctx context.Context, network, address string) (net.Conn, error) // for routes
}

// NewClient reads the server list; it contacts nobody.
func NewClient(config ClientConfig) (*Client, error) {
	list, err := parseServers(config.Servers)
	if err != nil {
		return nil, err
	}
	c := &Client{
		pool: newPool(list), login: newLogin(config.Username, config.Password),
		budget: config.Budget, log: config.Log, dial: config.Dial,
	}
	if c.dial == nil {
		c.dial = newDialer().DialContext
	}
	if c.budget <= 0 {
		c.budget = budgetTime
	}
	version := config.Version
	if version == "" {
		version = "0"
	}
	c.transport = newTransport(config, c.pool)
	c.http = newResty(c.transport, version)
	return c, nil
}

// Close drops idle connections. Calls under way go on; the client may be used
// again.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Register puts an instance into the registry as it is given, or replaces what
// the registry knows of it.
func (c *Client) Register(ctx context.Context, i registry.Instance) error {
	metadata, err := metadataJSON(i.Metadata)
	if err != nil {
		return task{what: "register", on: i.Key.String()}.failed(err)
	}
	ask := request{method: http.MethodPost, path: pathInstance, query: instanceQuery(i, metadata)}
	return c.write(ctx, "register", i.Key, true, func(ctx context.Context, s *server) error {
		a, err := c.send(ctx, s, ask)
		if err != nil {
			return err
		}
		return a.written()
	})
}

// write is try for a call that changes an instance: it never runs beside a
// deregistration of the same instance.
func (c *Client) write(ctx context.Context, what string, key registry.Key, creates bool, ask func(context.Context, *server) error) error {
	ctx, f, err := c.gate.enter(ctx, key, creates)
	if err != nil {
		return task{what: what, on: key.String()}.failed(err)
	}
	defer c.gate.leave(key, f)
	return c.try(ctx, task{what: what, on: key.String(), stop: f.stop}, func(ctx context.Context, s *server) error {
		err := ask(ctx, s)
		if creates && unanswered(err) {
			c.gate.doubt(key, time.Now())
		}
		return err
	})
}

// unanswered tells that a request may have reached a server that did not
// answer it.
func unanswered(err error) bool {
	var f *failure
	var dial *net.OpError
	return errors.As(err, &f) && f.cause != nil && (!errors.As(f.cause, &dial) || dial.Op != "dial")
}

// Mark gives a registered instance another health, weight or enabled. On a
// registry of ours it never creates: registry.ErrNotFound. On a Nacos it
// registers again, which creates an instance that is gone; 1.x, which would
// keep the old health, is asked to patch the instance.
func (c *Client) Mark(ctx context.Context, i registry.Instance) error {
	metadata, err := metadataJSON(i.Metadata)
	if err != nil {
		return task{what: "mark", on: i.Key.String()}.failed(err)
	}
	full := instanceQuery(i, metadata)
	return c.write(ctx, "mark", i.Key, true, func(ctx context.Context, s *server) error {
		k, err := c.kindOf(ctx, s)
		if err != nil {
			return err
		}
		ask := request{method: http.MethodPost, path: pathInstance, query: full}
		if k.ours {
			ask.match = "*"
		} else if k.old {
			ask.method = http.MethodPatch
		}
		a, err := c.send(ctx, s, ask)
		if err != nil {
			return err
		}
		return marked(a, k)
	})
}

func marked(a answer, k kind) error {
	if k.old && a.status == http.StatusBadRequest && a.says("instance not found") {
		return a.refused(registry.ErrNotFound)
	}
	if err := a.fault(k.ours); err != nil {
		return err
	}
	return a.done()
}

// Deregister takes an instance out. Calls under way for it are waited for or
// cancelled first, and none begins meanwhile, so that none of them can bring it
// back. When a server may still be at a request that it never answered, the
// instance is taken out a second time, up to 2.5 s later. An instance that is
// not there is no error.
func (c *Client) Deregister(ctx context.Context, key registry.Key) error {
	open := c.gate.shut(ctx, key)
	defer open()
	if err := c.remove(ctx, key); err != nil {
		return err
	}
	again := c.gate.settle(key, time.Now())
	if again == 0 || run.Wait(ctx, min(again, patienceOf(ctx))) != nil {
		return nil
	}
	return c.remove(ctx, key)
}

func (c *Client) remove(ctx context.Context, key registry.Key) error {
	ask := request{method: http.MethodDelete, path: pathInstance, query: keyQuery(key)}
	return c.try(ctx, task{what: "deregister", on: key.String()}, func(ctx context.Context, s *server) error {
		a, err := c.send(ctx, s, ask)
		if err != nil {
			return err
		}
		return a.written()
	})
}

// keyQuery names an instance. The name of the service is grouped, which every
// version takes, and the group stands apart too, for servers that do not split.
func keyQuery(k registry.Key) string {
	q := keyParameters(k)
	return q.String()
}

func keyParameters(k registry.Key) *query {
	q := &query{}
	q.Grow(192)
	namespace, cluster := k.Namespace, k.Cluster
	if namespace == "" {
		namespace = registry.DefaultNamespace
	}
	if cluster == "" {
		cluster = registry.DefaultCluster
	}
	q.add(paramService, grouped(k.Service))
	q.add(paramGroup, group(k.Service))
	q.add(paramNamespace, namespace)
	q.add(paramCluster, cluster)
	q.add(paramIP, k.IP)
	q.add(paramPort, strconv.Itoa(int(k.Port)))
	q.add(paramEphemeral, strconv.FormatBool(k.Ephemeral))
	return q
}

func group(s registry.Service) string {
	if s.Group == "" {
		return registry.DefaultGroup
	}
	return s.Group
}

func grouped(s registry.Service) string { return group(s) + groupSeparator + s.Name }

// instanceQuery says all of an instance, in the query because 1.4 does not see
// the form of a POST.
func instanceQuery(i registry.Instance, metadata string) string {
	q := keyParameters(i.Key)
	q.add(paramWeight, strconv.FormatFloat(i.Weight, 'f', -1, 64))
	q.add(paramEnabled, strconv.FormatBool(i.Enabled))
	q.add(paramHealthy, strconv.FormatBool(i.Healthy))
	if len(i.Metadata) > 0 {
		q.add(paramMetadata, metadata)
	}
	return q.String()
}
