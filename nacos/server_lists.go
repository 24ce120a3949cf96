package nacos

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// listKey names a list as consumers ask for it.
type listKey struct {
	registry.Service
	clusters    string // separated by commas; "" means all
	healthyOnly bool
}

// lists keeps what consumers are shown, rendered, for as long as nothing in it
// changes: a list is asked for every few seconds by every consumer of a service
// and changes rarely. The zero value is ready.
type lists struct {
	mu     sync.RWMutex
	all    map[listKey]*list
	held   atomic.Int64 // bytes
	places *places      // nil: any number is rendered at once
}

// mostHeld bounds the bytes kept, keys included. What is over begins again
// from nothing: to know which of the lists is asked for least would cost every
// reader more than rendering some again.
const mostHeld = 64 << 20

// list is one list, rendered by one at a time, read by many.
type list struct {
	mu     sync.Mutex
	shown  atomic.Pointer[rendered]
	latest atomic.Int64 // the last lastRefTime that was given out
}

// rendered is a list as JSON, but for its lastRefTime.
type rendered struct {
	version     uint64
	cacheMillis int64
	head, tail  []byte

	// Who takes it, when it is large; the lock of answers guards them.
	readers int
	first   *guest
}

// shownList is a rendered list at a moment. The moments of one list never go
// back, and a list with other contents has a later one, because the Go client
// takes no list whose moment it knows already (nacos-sdk-go v1, host_reactor).
type shownList struct {
	*rendered
	moment int64 // ms since 1970
}

// get gives a list as it is now. A service that is not there is rendered each
// time: anybody may ask for any number of those. It waits for a turn of the
// address that asks, nil when that is no client's.
func (l *lists) get(ctx context.Context, store *registry.Store, key listKey, from *guest) (shownList, error) {
	version := store.Version(key.Service)
	if version == 0 {
		if !l.places.enter(ctx, from) {
			return shownList{}, errNoPlace()
		}
		defer l.places.leave()
		r, err := render(store, key, 0)
		return shownList{r, time.Now().UnixMilli()}, err
	}
	one := l.entry(key)
	r := one.shown.Load()
	if !r.holds(version, store) {
		var err error
		if r, err = l.renew(ctx, store, key, one, from); err != nil {
			return shownList{}, err
		}
	}
	return shownList{r, one.moment(0)}, nil
}

func (r *rendered) holds(version uint64, store *registry.Store) bool {
	return r != nil && r.version == version && r.cacheMillis == store.Switches().PushCacheMillis
}

// moment gives the time, later than the last one by at least so many ms.
func (o *list) moment(later int64) int64 {
	for {
		last := o.latest.Load()
		now := max(time.Now().UnixMilli(), last+later)
		if o.latest.CompareAndSwap(last, now) {
			return now
		}
	}
}

func (l *lists) entry(key listKey) *list {
	l.mu.RLock()
	one := l.all[key]
	l.mu.RUnlock()
	if one != nil {
		return one
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil || l.held.Load() > mostHeld {
		l.all = map[listKey]*list{}
		l.held.Store(0)
	}
	if one = l.all[key]; one == nil {
		one = &list{}
		l.all[key] = one
		l.held.Add(entryBytes + int64(len(key.Namespace)+len(key.Group)+len(key.Name)+len(key.clusters)))
	}
	return one
}

// entryBytes is what a list costs beside its JSON and the names in its key.
const entryBytes = 300

// renew renders a list again, unless somebody else just has.
func (l *lists) renew(ctx context.Context, store *registry.Store, key listKey, one *list, from *guest) (*rendered, error) {
	if !l.places.enter(ctx, from) { // before the lock: who waits for his turn keeps nobody from a list
		return nil, errNoPlace()
	}
	defer l.places.leave()
	one.mu.Lock()
	defer one.mu.Unlock()
	version := store.Version(key.Service)
	before := one.shown.Load()
	if before.holds(version, store) {
		return before, nil
	}
	r, err := render(store, key, version)
	if err != nil {
		return nil, err
	}
	l.held.Add(r.bytes() - before.bytes())
	one.moment(1)
	one.shown.Store(r)
	return r, nil
}

func (r *rendered) bytes() int64 {
	if r == nil {
		return 0
	}
	return int64(cap(r.head))
}

// render writes the list. The version was read before, so that a change in
// between is at worst rendered twice.
func render(store *registry.Store, key listKey, version uint64) (*rendered, error) {
	body := listOf(store, key)
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	const mark = `"lastRefTime":`
	at := bytes.LastIndex(text, []byte(mark)) + len(mark) // after the hosts: nothing that follows is anybody's text
	return &rendered{version: version, cacheMillis: body.CacheMillis, head: text[:at], tail: text[at+len("0"):]}, nil
}

// listOf is the list of a service, its lastRefTime 0.
func listOf(store *registry.Store, key listKey) listBody {
	query := registry.Query{HealthyOnly: key.healthyOnly}
	if key.clusters != "" {
		query.Clusters = strings.Split(key.clusters, ",")
	}
	view := store.View(key.Service, query)
	return listBody{
		Name: key.Grouped(), Group: key.Group, Clusters: key.clusters, CacheMillis: store.Switches().PushCacheMillis,
		Hosts: toHosts(view.Instances), Protected: view.Protected, Valid: true,
	}
}
