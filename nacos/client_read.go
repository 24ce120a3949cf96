package nacos

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// Get gives what the registry believes of an instance: its own health, not the
// one that protection makes of it. A registry of ours says everything. Of a
// Nacos enabled is read from the list, where disabled instances are missing;
// 3.x, which refuses the single instance, is only asked for the list.
func (c *Client) Get(ctx context.Context, key registry.Key) (found registry.Instance, err error) {
	what := task{what: "read", on: key.String()}
	err = c.try(ctx, what, func(ctx context.Context, s *server) error {
		k, err := c.kindOf(ctx, s)
		if err != nil {
			return err
		}
		if k.ours {
			found, err = c.getOurs(ctx, s, key)
		} else {
			found, err = c.getForeign(ctx, s, key)
		}
		return err
	})
	return found, err
}

func (c *Client) getOurs(ctx context.Context, s *server, key registry.Key) (registry.Instance, error) {
	a, err := c.send(ctx, s, request{method: http.MethodGet, path: pathSidebeatInstance, query: keyQuery(key)})
	if err != nil {
		return registry.Instance{}, err
	}
	if err := a.fault(true); err != nil {
		return registry.Instance{}, err
	}
	var body instanceJSON
	if err := a.decode(&body); err != nil {
		return registry.Instance{}, err
	}
	if body.IP != key.IP || body.Port != key.Port || body.Service != key.Name {
		return registry.Instance{}, a.failed("another instance was asked for")
	}
	return body.instance(), nil
}

func (c *Client) getForeign(ctx context.Context, s *server, key registry.Key) (registry.Instance, error) {
	a, err := c.send(ctx, s, request{method: http.MethodGet, path: pathInstance, query: keyQuery(key)})
	if err != nil {
		return registry.Instance{}, err
	}
	detailed := a.status != http.StatusGone
	listed, err := c.listed(ctx, s, key)
	if err != nil || !detailed {
		return firstOf(listed), unlisted(a, listed, err)
	}
	if err := detailFault(a); err != nil {
		return registry.Instance{}, err
	}
	var body detailBody
	if err := a.decode(&body); err != nil {
		return registry.Instance{}, err
	}
	if body.IP != key.IP || body.Port != key.Port {
		return registry.Instance{}, a.failed("another instance was asked for")
	}
	found := registry.Instance{
		Key: key, Weight: float64(body.Weight), Healthy: body.Healthy, Metadata: body.Metadata,
		Enabled: len(listed) > 0 && listed[0].Enabled,
	}
	return found, nil
}

func firstOf(list []registry.Instance) registry.Instance {
	if len(list) == 0 {
		return registry.Instance{}
	}
	return list[0]
}

func unlisted(a answer, listed []registry.Instance, err error) error {
	if err == nil && len(listed) == 0 {
		return a.refused(registry.ErrNotFound)
	}
	return err
}

// detailFault knows the texts by which 1.4 says with a 500 that an instance is
// not there (InstanceController.detail).
func detailFault(a answer) error {
	if a.status == http.StatusInternalServerError &&
		(a.says("no matched ip found") || a.says("no ips found") || a.says("no service ")) {
		return a.refused(registry.ErrNotFound)
	}
	return a.fault(true)
}

// says looks for a text of Nacos in the body.
func (a answer) says(text string) bool { return strings.Contains(string(a.body), text) }

// listed gives the instance as the list of its service shows it, or nothing.
func (c *Client) listed(ctx context.Context, s *server, key registry.Key) ([]registry.Instance, error) {
	q := keyParameters(key)
	q.add(paramHealthyOnly, "false")
	a, err := c.send(ctx, s, request{method: http.MethodGet, path: pathInstanceList, query: q.String(), most: mostList})
	if err != nil {
		return nil, err
	}
	if err := a.fault(false); err != nil {
		return nil, err
	}
	var body listBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	for _, h := range body.Hosts {
		if h.IP == key.IP && h.Port == key.Port && h.Ephemeral == key.Ephemeral {
			return []registry.Instance{{
				Key: key, Weight: float64(h.Weight), Enabled: h.Enabled, Healthy: h.Healthy, Metadata: h.Metadata,
			}}, nil
		}
	}
	return nil, nil
}

// List gives a page of the persistent instances with their own health, from ""
// on. Only a registry of ours offers it; any other is registry.ErrRefused.
func (c *Client) List(ctx context.Context, from string) (page registry.Page, err error) {
	q := &query{}
	q.add(paramFrom, from)
	q.add(paramEphemeral, "false")
	what := task{what: "list the instances of", on: "the registry"}
	err = c.try(ctx, what, func(ctx context.Context, s *server) error {
		a, err := c.sendOurs(ctx, s, request{method: http.MethodGet, path: pathSidebeatInstances, query: q.String(), most: mostPage})
		if err != nil {
			return err
		}
		if err := a.fault(false); err != nil {
			return err
		}
		var body struct {
			pageJSON
			Instances *[]instanceJSON `json:"instances"` // hides the one above: absent is garbage
		}
		if err := a.decode(&body); err != nil {
			return err
		}
		if body.Instances == nil {
			return a.failed("a page has instances")
		}
		body.pageJSON.Instances = *body.Instances
		page = body.page()
		return nil
	})
	return page, err
}

// SetHealth changes the health of an instance and nothing else, if it is still
// as it was seen: registry.ErrStale when it changed since, registry.ErrNotFound
// when it is gone. Revision 0 writes whatever it has become. Only a registry of
// ours offers it; any other is registry.ErrRefused.
func (c *Client) SetHealth(ctx context.Context, seen registry.Instance, healthy bool) error {
	q := keyParameters(seen.Key)
	q.add(paramHealthy, strconv.FormatBool(healthy))
	ask := request{method: http.MethodPut, path: pathHealthInstance, query: q.String(), match: "*"}
	if seen.Revision > 0 {
		ask.match = `"` + strconv.FormatUint(seen.Revision, 10) + `"`
	}
	return c.write(ctx, "set the health of", seen.Key, false, func(ctx context.Context, s *server) error {
		a, err := c.sendOurs(ctx, s, ask)
		if err != nil {
			return err
		}
		if err := a.fault(true); err != nil {
			return err
		}
		return a.done()
	})
}

// sendOurs is send for what only a registry of ours answers.
func (c *Client) sendOurs(ctx context.Context, s *server, ask request) (answer, error) {
	k, err := c.kindOf(ctx, s)
	if err != nil {
		return answer{}, err
	}
	if !k.ours {
		return answer{}, &failure{word: registry.ErrRefused, text: s.base +
			": this registry does not offer conditional health writes; that comes later"}
	}
	return c.send(ctx, s, ask)
}
