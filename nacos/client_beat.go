package nacos

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// beatLeast is the shortest pace a registry can ask for.
const beatLeast = time.Second

// Beat says that an ephemeral instance is alive and gives the time until the
// next beat, as the registry wants it: never under a second, and never so long
// that three of them would not fit into the time after which the registry calls
// the instance unhealthy (unless its own metadata says so).
//
// A beat is light. Where the server wants full ones they are sent, but not for
// an instance that is disabled or unhealthy: a server that lost it would bring
// it back as enabled and healthy.
func (c *Client) Beat(ctx context.Context, i registry.Instance) (next time.Duration, err error) {
	light := keyQuery(i.Key)
	full := i.Ephemeral && i.Enabled && i.Healthy && c.pool.anyFull()
	err = c.write(ctx, "beat", i.Key, full, func(ctx context.Context, s *server) error {
		ask := request{method: http.MethodPut, path: pathBeat, query: light}
		if full && c.pool.wantsFull(s) {
			body, err := fullBeat(i)
			if err != nil {
				return err
			}
			ask.form = url.Values{paramBeat: {body}}
		}
		a, err := c.send(ctx, s, ask)
		if err != nil {
			return err
		}
		said, err := beatSaid(a)
		if err != nil {
			return err
		}
		c.pool.setFull(s, !said.Light)
		next = clampPace(said.Interval, i.Metadata)
		return nil
	})
	return next, err
}

// beatSaid takes nothing for a success but code 10200.
func beatSaid(a answer) (beatAnswer, error) {
	if err := a.fault(false); err != nil {
		return beatAnswer{}, err
	}
	var said beatAnswer
	if err := a.decode(&said); err != nil {
		return beatAnswer{}, err
	}
	switch said.Code {
	case codeOK:
		return said, nil
	case codeNotFound, codeUnknownV3:
		return beatAnswer{}, a.refused(registry.ErrNotFound)
	}
	return beatAnswer{}, a.failed("a beat that counts is answered code 10200")
}

// clampPace turns the interval a registry answered, ms, into the time to wait.
func clampPace(interval int64, metadata map[string]string) time.Duration {
	own := millis(metadata, metaInterval, defaultInterval)
	most := max(millis(metadata, metaTimeout, defaultTimeout)/3, own)
	if interval <= 0 {
		interval = own
	}
	interval = min(interval, most, int64(24*time.Hour/time.Millisecond))
	return max(time.Duration(interval)*time.Millisecond, beatLeast)
}

// fullBeat says all that a server needs to register the instance from the
// beat. The name in it must be grouped: 2.x refreshes what it names.
func fullBeat(i registry.Instance) (string, error) {
	cluster := i.Cluster
	if cluster == "" {
		cluster = registry.DefaultCluster
	}
	b, err := encode(beatBody{
		Cluster: cluster, IP: i.IP, Port: i.Port, Service: grouped(i.Service),
		Metadata: i.Metadata, Weight: decimal(i.Weight),
	})
	return string(b), err
}
