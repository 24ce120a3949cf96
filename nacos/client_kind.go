package nacos

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// codeUnknownV3 is what a 3.x server answers to the beat of an instance it does
// not know (com.alibaba.nacos.api.model.v2.ErrorCode.INSTANCE_NOT_FOUND).
const codeUnknownV3 = 21003

// kind is what a server is, as its server state says.
type kind struct {
	ours   bool // a Sidebeat registry
	old    bool // Nacos 1.x: keeps the health it knows when an instance registers again
	inside bool // a prober runs inside
}

// kindOf asks a server what it is, once, and remembers it until the server
// fails, does not know a path any more, or a new connection to it is opened.
func (c *Client) kindOf(ctx context.Context, s *server) (kind, error) {
	if k, ok := c.pool.known(s, time.Now()); ok {
		return k, nil
	}
	a, err := c.send(ctx, s, request{method: http.MethodGet, path: pathServerState})
	if err != nil {
		return kind{}, err
	}
	k, err := readKind(a)
	if err != nil {
		return kind{}, err
	}
	c.pool.learned(s, k, time.Now())
	return k, nil
}

// readKind takes a state without our words, or no state at all (3.x keeps it
// on its console port, and may want a permission for it), as a Nacos that is
// not ours.
func readKind(a answer) (kind, error) {
	switch a.status {
	case http.StatusNotFound, http.StatusGone, http.StatusNotImplemented, http.StatusForbidden, http.StatusUnauthorized:
		return kind{}, nil
	}
	if err := a.fault(false); err != nil {
		return kind{}, err
	}
	var state map[string]any // values may be null or of any kind
	if err := a.decode(&state); err != nil {
		return kind{}, err
	}
	word := func(name string) string { s, _ := state[name].(string); return s }
	_, ours := state[stateSidebeat]
	if word(stateVersion) == "" && !ours {
		return kind{}, a.failed("a server state names a version")
	}
	return kind{
		ours:   ours,
		old:    !ours && strings.HasPrefix(word(stateVersion), "1."),
		inside: ours && word(stateProber) == stateProberInside,
	}, nil
}

// ProberInside tells whether the registry says that a prober runs inside it.
// A registry that is not ours never says so.
func (c *Client) ProberInside(ctx context.Context) (inside bool, err error) {
	err = c.try(ctx, task{what: "ask for the state of", on: "the registry"}, func(ctx context.Context, s *server) error {
		k, err := c.kindOf(ctx, s)
		inside = k.inside
		return err
	})
	return inside, err
}
