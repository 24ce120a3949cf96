package nacos

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sidebeat/sidebeat/registry"
)

const (
	// mostLists bounds the lists of one service that one change makes: each
	// other text in clusters is another one, which is rendered and compressed.
	mostLists = 100
	// mostSaid bounds the services that are told of in the log.
	mostSaid = 1000
)

// wanted gives the lists that the subscribers of a service asked for. Of too
// many those go out that most asked for; who is left out has to poll.
func (p *Push) wanted(service registry.Service) map[listKey][]subscriber {
	wanted := map[listKey][]subscriber{}
	for _, s := range p.store.Subscribers(service) {
		key := listKey{s.Service, s.Clusters, s.HealthyOnly}
		wanted[key] = append(wanted[key], subscriber{s.Address, mostBytes(s.Agent)})
	}
	if len(wanted) <= mostLists {
		return wanted
	}
	keys := slices.SortedFunc(maps.Keys(wanted), func(a, b listKey) int {
		return cmp.Or(cmp.Compare(len(wanted[b]), len(wanted[a])), cmp.Compare(a.clusters, b.clusters))
	})
	for _, key := range keys[mostLists:] {
		p.counts.leftOut.Add(uint64(len(wanted[key])))
		delete(wanted, key)
	}
	return wanted
}

// sayTooLarge says once of a service that its list does not fit.
func (p *Push) sayTooLarge(service registry.Service, count int) {
	p.mu.Lock()
	_, said := p.said[service]
	news := !said && len(p.said) < mostSaid
	if news {
		p.said[service] = struct{}{}
	}
	p.mu.Unlock()
	if news {
		p.log.WithField("service", service.String()).WithField("count", count).
			Warn("a list is larger than a datagram that some subscribers can read, they have to poll")
	}
}
