package registry

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Subscriber is a client that wants to be told of a service.
type Subscriber struct {
	Service
	Address  netip.AddrPort // where pushes go; with the service it names the subscription
	Clusters string         // as the client gave them, comma separated
	Agent    string         // what the client calls itself
	App      string
}

// subscribers holds who asked and until when that holds.
type subscribers struct {
	mu    sync.RWMutex
	all   map[Service]map[netip.AddrPort]subscription
	count int
}

type subscription struct {
	Subscriber
	until stamp
}

// Subscribe notes a subscriber or renews it for the given time; another one of
// the same address for the same service is replaced. It tells whether that is a
// new one. Without Run nobody is ever forgotten.
func (s *Store) Subscribe(sub Subscriber, lasting time.Duration) (fresh bool) {
	sub.Service = sub.Service.normal()
	until := s.clock.now() + stamp(lasting.Milliseconds())
	b := &s.subscribers
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[Service]map[netip.AddrPort]subscription{}
	}
	of := b.all[sub.Service]
	if of == nil {
		of = map[netip.AddrPort]subscription{}
		b.all[sub.Service] = of
	}
	if _, known := of[sub.Address]; !known {
		fresh = true
		b.count++
	}
	of[sub.Address] = subscription{sub, until}
	return fresh
}

// Unsubscribe forgets a subscriber.
func (s *Store) Unsubscribe(service Service, address netip.AddrPort) {
	b := &s.subscribers
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(service.normal(), address)
}

func (b *subscribers) drop(service Service, address netip.AddrPort) {
	of := b.all[service]
	if _, known := of[address]; !known {
		return
	}
	b.count--
	if delete(of, address); len(of) == 0 {
		delete(b.all, service)
	}
}

// forget drops those whose time is over.
func (b *subscribers) forget(now stamp) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for service, of := range b.all {
		for address, one := range of {
			if one.until < now {
				b.drop(service, address)
			}
		}
	}
}

// Subscribers lists who is to be told of a service, by address.
func (s *Store) Subscribers(service Service) []Subscriber {
	b := &s.subscribers
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.of(nil, service.normal())
}

func (b *subscribers) of(to []Subscriber, service Service) []Subscriber {
	from := len(to)
	for _, one := range b.all[service] {
		to = append(to, one.Subscriber)
	}
	slices.SortFunc(to[from:], func(a, b Subscriber) int { return a.Address.Compare(b.Address) })
	return to
}

// FindSubscribers lists the subscribers of all services of the namespace whose
// group and name contain those given, as Nacos searches; by service and address.
func (s *Store) FindSubscribers(like Service) []Subscriber {
	like.Namespace = cmp.Or(like.Namespace, DefaultNamespace)
	b := &s.subscribers
	b.mu.RLock()
	defer b.mu.RUnlock()
	var found []Subscriber
	for _, service := range slices.SortedFunc(maps.Keys(b.all), Service.Compare) {
		if service.Namespace == like.Namespace && strings.Contains(service.Group, like.Group) && strings.Contains(service.Name, like.Name) {
			found = b.of(found, service)
		}
	}
	return found
}

// CountSubscribers counts subscriptions.
func (s *Store) CountSubscribers() int {
	s.subscribers.mu.RLock()
	defer s.subscribers.mu.RUnlock()
	return s.subscribers.count
}
