package nacos

import (
	"context"
	"errors"

	"github.com/sidebeat/sidebeat/registry"
)

// pageOfPersistent gives a page of the persistent instances with their true
// health and revision: what a prober needs.
func pageOfPersistent(ctx context.Context, s *Server, c *call) (any, error) {
	if c.truth(false, paramEphemeral) {
		return nil, badRequest("cannot list ephemeral instances: ask with ephemeral=false")
	}
	page, err := s.Store.List(ctx, c.form.text(paramFrom))
	if err != nil {
		return nil, err
	}
	return toPageJSON(page), nil
}

// oneInstance gives an instance with all the registry knows, whatever cluster
// it is in when the call does not say.
func oneInstance(ctx context.Context, s *Server, c *call) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	key.Cluster = c.form.text(paramCluster, paramClusterAlias)
	i, err := s.Store.Get(ctx, key)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, notFound(noMatchedIP)
	}
	if err != nil {
		return nil, err
	}
	return tagged{toInstanceJSON(i), i.Revision}, nil
}
