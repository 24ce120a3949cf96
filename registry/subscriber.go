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
	// HealthyOnly: it wants to hear of no others.
	HealthyOnly bool
}

// subscribers holds who asked and until when that holds.
type subscribers struct {
	mu      sync.RWMutex
	all     map[Service]map[netip.AddrPort]Subscriber
	clients map[netip.AddrPort]*subscribing
	count   int
	each    map[netip.Addr]int // how many subscriptions are whose
}

// subscribing is one client, by the address that it is told at.
type subscribing struct {
	until stamp
	to    map[Service]struct{}
}

// Bounds of the subscriptions, so that nobody can fill the memory by asking.
// What is over is not told of changes and has to ask.
const (
	mostSubscriptions = 200_000
	mostOfAddress     = 20_000
	mostOfService     = 50_000
)

// Subscribe notes a subscriber; another one of the same address for the same
// service is replaced. It holds for the given time, and so do from now on all
// others of that address: in Nacos too it is the client that expires
// (com.alibaba.nacos.naming.core.v2.client.impl.IpPortBasedClient). fresh: there
// was none. Not taken: there are too many. Without Run nobody is ever forgotten.
func (s *Store) Subscribe(sub Subscriber, lasting time.Duration) (fresh, taken bool) {
	sub.Service = sub.Service.normal()
	until := s.clock.now() + stamp(lasting.Milliseconds())
	b := &s.subscribers
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.all[sub.Service][sub.Address]
	if !known && !b.admit(sub) {
		return false, false
	}
	b.all[sub.Service][sub.Address] = sub
	b.clients[sub.Address].until = until
	return !known, true
}

// admit makes a place for a new subscription, if there is one.
func (b *subscribers) admit(sub Subscriber) bool {
	ip := sub.Address.Addr()
	if b.count >= mostSubscriptions || b.each[ip] >= mostOfAddress || len(b.all[sub.Service]) >= mostOfService {
		return false
	}
	if b.all == nil {
		b.all, b.each = map[Service]map[netip.AddrPort]Subscriber{}, map[netip.Addr]int{}
		b.clients = map[netip.AddrPort]*subscribing{}
	}
	if b.all[sub.Service] == nil {
		b.all[sub.Service] = map[netip.AddrPort]Subscriber{}
	}
	if b.clients[sub.Address] == nil {
		b.clients[sub.Address] = &subscribing{to: map[Service]struct{}{}}
	}
	b.clients[sub.Address].to[sub.Service] = struct{}{}
	b.count++
	b.each[ip]++
	return true
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
	if b.each[address.Addr()]--; b.each[address.Addr()] == 0 {
		delete(b.each, address.Addr())
	}
	client := b.clients[address]
	if delete(client.to, service); len(client.to) == 0 {
		delete(b.clients, address)
	}
	if delete(of, address); len(of) == 0 {
		delete(b.all, service)
	}
}

// forget drops the clients whose time is over.
func (b *subscribers) forget(now stamp) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for address, client := range b.clients {
		if client.until >= now {
			continue
		}
		for service := range client.to {
			b.drop(service, address)
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
		to = append(to, one)
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

// SubscribedBy lists the subscriptions of one address, by service.
func (s *Store) SubscribedBy(address netip.AddrPort) []Subscriber {
	b := &s.subscribers
	b.mu.RLock()
	defer b.mu.RUnlock()
	client := b.clients[address]
	if client == nil {
		return nil
	}
	var found []Subscriber
	for _, service := range slices.SortedFunc(maps.Keys(client.to), Service.Compare) {
		found = append(found, b.all[service][address])
	}
	return found
}

// SubscribingClients lists the addresses that subscribed to something.
func (s *Store) SubscribingClients() []netip.AddrPort {
	s.subscribers.mu.RLock()
	defer s.subscribers.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.subscribers.clients), netip.AddrPort.Compare)
}

// CountSubscribers counts subscriptions.
func (s *Store) CountSubscribers() int {
	s.subscribers.mu.RLock()
	defer s.subscribers.mu.RUnlock()
	return s.subscribers.count
}
