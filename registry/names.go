package registry

import (
	"slices"
	"sync"
	"sync/atomic"
)

// names keeps the sorted names of all services until one comes or goes, so that
// reading a list by pages does not sort it once a page.
type names struct {
	changes atomic.Uint64

	mu         sync.Mutex
	built      uint64 // changes at which the lists were made, plus one
	all        []Service
	persistent []Service
}

// spoil says that a service came, went or changed its kind.
func (n *names) spoil() { n.changes.Add(1) }

// sorted gives all services and the persistent ones. The slices are shared.
func (s *Store) sorted() (all, persistent []Service) {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.changes.Load() + 1
	if n.built == now {
		return n.all, n.persistent
	}
	n.all, n.persistent = nil, nil
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		for name, v := range h.services {
			n.all = append(n.all, name)
			if !v.ephemeral {
				n.persistent = append(n.persistent, name)
			}
		}
		h.mu.RUnlock()
	}
	slices.SortFunc(n.all, Service.Compare)
	slices.SortFunc(n.persistent, Service.Compare)
	n.built = now
	return n.all, n.persistent
}

// Services lists the services of a namespace, sorted; group "" is all groups.
// The slice is shared and must not be changed.
func (s *Store) Services(namespace, group string) []Service {
	namespace = Service{Namespace: namespace}.normal().Namespace
	all, _ := s.sorted()
	from, _ := slices.BinarySearchFunc(all, Service{Namespace: namespace, Group: group}, Service.Compare)
	to, _ := slices.BinarySearchFunc(all, Service{Namespace: namespace, Group: group}, func(one, of Service) int {
		if one.Namespace == of.Namespace && (of.Group == "" || one.Group == of.Group) {
			return -1 // before the end
		}
		return one.Compare(of)
	})
	return slices.Clip(all[from:to])
}

// Namespaces lists the namespaces that have services, sorted.
func (s *Store) Namespaces() []string {
	all, _ := s.sorted()
	var found []string
	for _, service := range all {
		if n := len(found); n == 0 || found[n-1] != service.Namespace {
			found = append(found, service.Namespace)
		}
	}
	return found
}
