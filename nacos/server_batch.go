package nacos

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/sidebeat/sidebeat/registry"
)

// What consistencyType may say: the kind of the instances that are meant.
const (
	kindEphemeral  = "ephemeral"
	kindPersistent = "persist"
)

// updatedBody is the answer of metadata/batch: ip:port:unknown:cluster:kind of
// each instance that was changed.
type updatedBody struct {
	Updated []string `json:"updated"`
}

// batchInstance names one instance of a batch; other fields are of no account.
type batchInstance struct {
	IP      string `json:"ip"`
	Port    uint16 `json:"port"`
	Cluster string `json:"clusterName"`
}

// setBatch lays metadata over many instances of a service.
func setBatch(ctx context.Context, s *Server, c *call) (any, error) {
	return s.batch(c, func(of []registry.Key) ([]registry.Key, error) {
		return s.Store.PutMetadata(ctx, c.service, of, c.metadata)
	})
}

// dropBatch takes keys out of the metadata that operators laid over instances;
// what the clients published stays.
func dropBatch(ctx context.Context, s *Server, c *call) (any, error) {
	return s.batch(c, func(of []registry.Key) ([]registry.Key, error) {
		return s.Store.DropMetadata(ctx, c.service, of, slices.Collect(maps.Keys(c.metadata)))
	})
}

func (s *Server) batch(c *call, change func(of []registry.Key) ([]registry.Key, error)) (any, error) {
	if err := c.need(paramService, paramMetadata); err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	body := updatedBody{Updated: []string{}}
	meant := s.meant(c)
	if len(meant) == 0 {
		return body, nil
	}
	changed, err := change(meant)
	for _, k := range changed {
		body.Updated = append(body.Updated, datumKey(k))
	}
	return body, err
}

// meant gives the instances of a batch: those that the call lists or, when it
// lists none but names a kind, all of that kind.
func (s *Server) meant(c *call) []registry.Key {
	kind := c.form.text(paramConsistency)
	listed := readBatch(c.form.text(paramInstances))
	if kind == "" && len(listed) == 0 {
		return nil
	}
	var meant []registry.Key
	for _, i := range s.Store.All(c.service) {
		if kind != "" && i.Ephemeral == (kind == kindPersistent) {
			continue
		}
		if len(listed) == 0 || listed[batchInstance{i.IP, i.Port, i.Cluster}] {
			meant = append(meant, i.Key)
		}
	}
	return meant
}

// readBatch reads a list of instances; what is no list names none, as in
// Nacos.
func readBatch(text string) map[batchInstance]bool {
	var list []batchInstance
	if text == "" || json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	named := make(map[batchInstance]bool, len(list))
	for _, i := range list {
		if i.Cluster == "" {
			i.Cluster = registry.DefaultCluster
		}
		named[i] = true
	}
	return named
}

// datumKey names an instance as Nacos 1.x stored it
// (com.alibaba.nacos.naming.core.Instance.getDatumKey).
func datumKey(k registry.Key) string {
	kind := kindPersistent
	if k.Ephemeral {
		kind = kindEphemeral
	}
	return k.IP + ":" + strconv.Itoa(int(k.Port)) + ":unknown:" + k.Cluster + ":" + kind
}
