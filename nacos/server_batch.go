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
	IP      string      `json:"ip"`
	Port    json.Number `json:"port"` // or text
	Cluster string      `json:"clusterName"`
}

// setBatch lays metadata over many instances of a service.
func setBatch(ctx context.Context, s *Server, c *call) (any, error) {
	return s.batch(c, func(of []registry.Key) ([]registry.Key, error) {
		for _, k := range of { // one call after the other would add up
			o, _ := s.Store.Overlay(k)
			all := maps.Clone(c.metadata)
			maps.Copy(all, o.Metadata)
			maps.Copy(all, c.metadata)
			if err := c.bounds.checkMetadata(all); err != nil {
				return nil, err
			}
		}
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
	meant, err := s.meant(c)
	if err != nil {
		return nil, err
	}
	if len(meant) == 0 {
		return body, nil
	}
	changed, err := change(meant)
	for _, k := range changed {
		body.Updated = append(body.Updated, datumKey(k))
	}
	return body, err
}

// meant gives the instances of a batch: those that the call lists, whatever kind
// it names, or, when it lists none but names a kind, all of that kind.
func (s *Server) meant(c *call) ([]registry.Key, error) {
	listed, err := readBatch(c.form.text(paramInstances))
	kind := c.form.text(paramConsistency)
	if err != nil || kind == "" && len(listed) == 0 {
		return nil, err
	}
	var meant []registry.Key
	for _, i := range s.Store.All(c.service) {
		if len(listed) == 0 && i.Ephemeral == (kind != kindPersistent) ||
			listed[batchInstance{i.IP, json.Number(strconv.Itoa(int(i.Port))), i.Cluster}] {
			meant = append(meant, i.Key)
		}
	}
	return meant, nil
}

// readBatch reads a list of instances. What is no list means none of them, where
// a controller of Nacos that gets so far would mean all.
func readBatch(text string) (map[batchInstance]bool, error) {
	if text == "" {
		return nil, nil
	}
	var list []batchInstance
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, badRequest("Param 'instances' is illegal, it should be a list of ip, port and clusterName in JSON")
	}
	named := make(map[batchInstance]bool, len(list))
	for _, i := range list {
		if i.Cluster == "" {
			i.Cluster = registry.DefaultCluster
		}
		named[i] = true
	}
	return named, nil
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
