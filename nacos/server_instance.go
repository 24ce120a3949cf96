package nacos

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"
	"strconv"

	"github.com/sidebeat/sidebeat/registry"
)

// instance reads an instance as register and deregister give it.
func (c *call) instance() (registry.Instance, error) {
	key, err := c.key()
	if err != nil {
		return registry.Instance{}, err
	}
	weight, err := c.weight()
	if err != nil {
		return registry.Instance{}, err
	}
	return registry.Instance{
		Key: key, Weight: weight, Metadata: c.metadata,
		Enabled: c.truth(true, paramEnabled, paramEnabledAlias),
		Healthy: c.truth(true, paramHealthy),
	}, nil
}

// register takes an instance. With If-Match "*", Sidebeat's own addition, it
// only changes one that is there and never creates: 404 when it is gone.
func register(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := c.instance()
	if err != nil {
		return nil, err
	}
	if string(c.ctx.Request.Header.Peek("If-Match")) != "*" {
		return done{}, s.register(ctx, i)
	}
	if err := s.durableFor(i.Key); err != nil {
		return nil, err
	}
	err = s.Store.Mark(ctx, i)
	if errors.Is(err, registry.ErrNotFound) {
		err = notFound(noMatchedIP)
	}
	return done{}, err
}

func (s *Server) register(ctx context.Context, i registry.Instance) error {
	switch i.Metadata[metaGenerator] {
	case "", generatorSimple, generatorSnowflake:
	default:
		return &fault{status: http.StatusInternalServerError, text: "caused: The InstanceIdGenerator type is not found ;"}
	}
	if err := s.durableFor(i.Key); err != nil {
		return err
	}
	return s.Store.Register(ctx, i)
}

func deregister(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := c.instance()
	if err != nil {
		return nil, err
	}
	if err := s.durableFor(i.Key); err != nil {
		return nil, err
	}
	err = s.Store.Deregister(ctx, anyCluster(i.Key))
	if errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return done{}, err
}

// anyCluster is the key as the 2.x model knows it: one instance per ip:port.
func anyCluster(k registry.Key) registry.Key {
	k.Cluster = ""
	return k
}

// update is the operator's PUT: all of weight, enabled and metadata, for an
// instance that need not exist.
func update(ctx context.Context, s *Server, c *call) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	weight, err := c.weight()
	if err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	enabled := c.truth(true, paramEnabled, paramEnabledAlias)
	return done{}, s.Store.Update(ctx, anyCluster(key), weight, enabled, c.metadata)
}

// patch is the operator's PATCH: what is given, for an instance that exists.
func patch(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := s.found(ctx, c)
	if err != nil {
		return nil, err
	}
	var overlay registry.Overlay
	if c.form.text(paramWeight) != "" {
		weight, err := c.weight()
		if err != nil {
			return nil, err
		}
		overlay.Weight = &weight
	}
	if c.form.text(paramEnabled, paramEnabledAlias) != "" {
		enabled := c.truth(true, paramEnabled, paramEnabledAlias)
		overlay.Enabled = &enabled
	}
	if c.form.text(paramMetadata) != "" {
		overlay.Metadata = c.metadata
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.Override(ctx, i.Key, overlay)
}

// found gives the instance that the call names, of whichever kind it is.
func (s *Server) found(ctx context.Context, c *call) (registry.Instance, error) {
	key, err := c.key()
	if err != nil {
		return registry.Instance{}, err
	}
	for _, key.Ephemeral = range []bool{true, false} {
		i, err := s.Store.Get(ctx, key)
		if !errors.Is(err, registry.ErrNotFound) {
			return i, err
		}
	}
	info, err := s.Store.Describe(key.Service)
	if err != nil || info.Instances == 0 {
		return registry.Instance{}, notFound("no ips found for cluster " + key.Cluster + " in service " + key.Grouped())
	}
	return registry.Instance{}, notFound(noMatchedIP)
}

const noMatchedIP = "no matched ip found!"

// detail shows the true health, protection or not.
func detail(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := s.found(ctx, c)
	if err != nil {
		return nil, err
	}
	return tagged{detailBody{
		Service: i.Grouped(), IP: i.IP, Port: i.Port, Cluster: i.Cluster, Weight: decimal(i.Weight),
		Healthy: i.Healthy, ID: instanceID(i), Metadata: notNil(i.Metadata),
	}, i.Revision}, nil
}

// consumers is what consumers see: enabled instances, under protection.
func consumers(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.need(paramService); err != nil {
		return nil, err
	}
	clusters := c.form.text(paramClusters)
	if err := s.push.subscribe(c, clusters, c.form.text(paramClientIP), c.form.text(paramUDPPort)); err != nil {
		return nil, err
	}
	return s.list(ctx, c, clusters)
}

// list is the list of the call's service in the clusters, separated by commas;
// in all when there are none.
func (s *Server) list(ctx context.Context, c *call, clusters string) (any, error) {
	return s.lists.get(ctx, s.Store, listKey{c.service, clusters, c.truth(false, paramHealthyOnly)}, c.guest())
}

func toHosts(instances []registry.Instance) []hostBody {
	hosts := make([]hostBody, len(instances))
	for n, i := range instances {
		hosts[n] = toHost(i)
	}
	return hosts
}

func toHost(i registry.Instance) hostBody {
	return hostBody{
		ID: instanceID(i), IP: i.IP, Port: i.Port, Weight: decimal(i.Weight), Healthy: i.Healthy,
		Enabled: i.Enabled, Ephemeral: i.Ephemeral, Cluster: i.Cluster, Service: i.Grouped(),
		Metadata:  notNil(i.Metadata),
		Interval:  millis(i.Metadata, metaInterval, defaultInterval),
		Timeout:   millis(i.Metadata, metaTimeout, defaultTimeout),
		Delete:    millis(i.Metadata, metaDelete, defaultDelete),
		Generator: generator(i.Metadata),
	}
}

func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// Ways to form the id of an instance
// (com.alibaba.nacos.api.naming.spi.generator).
const (
	generatorSimple    = "simple"
	generatorSnowflake = "snowflake"
)

// generator is shown only when the metadata is empty or names one, as
// Instance.getInstanceIdGenerator has it.
func generator(m map[string]string) string {
	if len(m) == 0 {
		return generatorSimple
	}
	return m[metaGenerator]
}

// instanceID gives the id of an instance. Where a number is wanted it is one
// that belongs to the address, so that every read shows the same. What came by
// v2 or v3 has none, "".
func instanceID(i registry.Instance) string {
	if i.NoID {
		return ""
	}
	if i.Metadata[metaGenerator] != generatorSnowflake {
		return registry.InstanceID(i.Key)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(i.Namespace + "#" + registry.InstanceID(i.Key))) // never fails
	return strconv.FormatUint(h.Sum64()>>1, 10) + "#" + i.Cluster + "#" + i.Grouped()
}
