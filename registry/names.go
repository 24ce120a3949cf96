package registry

import (
	"maps"
	"slices"
	"sync"
)

// names keeps the sorted names of all services, so that reading a list by pages
// sorts nothing: what came and went since is put in its place at the next
// reading.
type names struct {
	mu         sync.Mutex // held while shards are read, so never taken under their locks
	all        []Service
	persistent []Service

	noting  sync.Mutex // nothing is locked under it
	changed map[Service]struct{}
	many    bool           // too many to note: all is read anew
	counts  map[string]int // services of each namespace that has some
}

// mostNoted bounds the memory, and is about where reading all anew is no slower.
const mostNoted = 10_000

// note says that a service came (1) or went (-1).
func (n *names) note(service Service, by int) {
	n.noting.Lock()
	defer n.noting.Unlock()
	n.count(service.Namespace, by)
	switch {
	case n.many:
	case len(n.changed) == mostNoted:
		n.changed, n.many = nil, true
	case n.changed == nil:
		n.changed = map[Service]struct{}{service: {}}
	default:
		n.changed[service] = struct{}{}
	}
}

func (n *names) count(namespace string, by int) {
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	if n.counts[namespace] += by; n.counts[namespace] == 0 {
		delete(n.counts, namespace)
	}
}

// in gives how many services a namespace has.
func (n *names) in(namespace string) int {
	n.noting.Lock()
	defer n.noting.Unlock()
	return n.counts[namespace]
}

// take gives what was noted, sorted, and begins anew.
func (n *names) take() (changed []Service, many bool) {
	n.noting.Lock()
	defer n.noting.Unlock()
	changed, many = slices.SortedFunc(maps.Keys(n.changed), Service.Compare), n.many
	n.changed, n.many = nil, false
	return changed, many
}

// sorted gives all services and the persistent ones. The slices are shared.
func (s *Store) sorted() (all, persistent []Service) {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	changed, many := n.take()
	if many {
		n.all, n.persistent = s.sort()
		return n.all, n.persistent
	}
	n.all = patched(n.all, changed, func(one Service) bool {
		_, exists := s.kind(one)
		return exists
	})
	n.persistent = patched(n.persistent, changed, func(one Service) bool {
		ephemeral, exists := s.kind(one)
		return exists && !ephemeral
	})
	return n.all, n.persistent
}

// sort reads all shards.
func (s *Store) sort() (all, persistent []Service) {
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		for name, v := range h.services {
			all = append(all, name)
			if !v.ephemeral {
				persistent = append(persistent, name)
			}
		}
		h.mu.RUnlock()
	}
	slices.SortFunc(all, Service.Compare)
	slices.SortFunc(persistent, Service.Compare)
	return all, persistent
}

// patched gives the list after some services changed, sorted as it is: a new
// one, unless it is the same.
func patched(list, changed []Service, belongs func(Service) bool) []Service {
	var next []Service
	for _, one := range changed {
		at, there := slices.BinarySearchFunc(list, one, Service.Compare)
		if there == belongs(one) {
			continue
		}
		if next == nil {
			next = make([]Service, 0, len(list)+len(changed))
		}
		next = append(next, list[:at]...)
		if there {
			at++
		} else {
			next = append(next, one)
		}
		list = list[at:]
	}
	if next == nil {
		return list
	}
	return append(next, list...)
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

// Inhabited lists the services of a namespace that have instances, sorted. It
// looks at none of them, but at those without: few, because they are cleaned.
// The slice may be shared and must not be changed.
func (s *Store) Inhabited(namespace string) []Service {
	all := s.Services(namespace, "")
	var empty []Service
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.RLock()
		for v := range h.idle {
			if len(v.slots) == 0 {
				empty = append(empty, v.name)
			}
		}
		h.mu.RUnlock()
	}
	slices.SortFunc(empty, Service.Compare)
	return patched(all, empty, func(Service) bool { return false })
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
