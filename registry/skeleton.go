package registry

import (
	"context"
	"io"
	"time"
)

// Run expires silent instances and cleans up empty services until ctx ends.
func (s *Store) Run(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// Apply takes one command of the log. It returns nil or an error. A damaged
// command stops the store: see Damaged.
func (s *Store) Apply(index uint64, command []byte) any { return nil }

// Damaged tells whether the store met a command that it cannot apply; the
// process must not go on then.
func (s *Store) Damaged() error { return nil }

// Snapshot copies the durable part; write may be called later and at any time.
func (s *Store) Snapshot() (write func(io.Writer) error, err error) {
	return func(io.Writer) error { return nil }, nil
}

// Restore replaces the durable part by a snapshot.
func (s *Store) Restore(r io.Reader) error { return nil }

// Register adds an instance or replaces what its client published before.
func (s *Store) Register(ctx context.Context, i Instance) error { return nil }

// Beat is a light beat: ErrNotFound when no such ephemeral instance is known.
// The duration is the pace that the instance should keep.
func (s *Store) Beat(ctx context.Context, i Instance) (time.Duration, error) {
	return 5 * time.Second, nil
}

// Mark is Register that never creates: ErrNotFound when unknown.
func (s *Store) Mark(ctx context.Context, i Instance) error { return nil }

// Deregister removes an instance; one that is unknown is no error.
func (s *Store) Deregister(ctx context.Context, k Key) error { return nil }

// Get gives the true state of an instance with the overlay applied. A Cluster
// in the key must match; "" is any.
func (s *Store) Get(ctx context.Context, k Key) (Instance, error) { return Instance{}, ErrNotFound }

// List gives a page of the persistent instances with their true health.
func (s *Store) List(ctx context.Context, from string) (Page, error) { return Page{}, nil }

// SetHealth changes the health of an instance and nothing else, if it has not
// changed since it was seen (Revision 0: whatever it is). ErrStale: it has.
// ErrNotFound: gone.
func (s *Store) SetHealth(ctx context.Context, seen Instance, healthy bool) error { return nil }

// Refresh is the beat of the wire: Beat without allocations. The cluster plays
// no part, as in 2.x.
func (s *Store) Refresh(namespace, group, name, ip []byte, port uint16) (interval time.Duration, known bool) {
	return 5 * time.Second, true
}

// Override lays an operator's word over an instance; what is nil stays as it is
// (PATCH). ErrNotFound when the instance is unknown.
func (s *Store) Override(ctx context.Context, k Key, o Overlay) error { return nil }

// Update sets the whole overlay of an instance, which need not exist while its
// service does (PUT).
func (s *Store) Update(ctx context.Context, k Key, weight float64, enabled bool, metadata map[string]string) error {
	return nil
}

// Overlay gives what operators set on an instance.
func (s *Store) Overlay(k Key) (o Overlay, exists bool) { return Overlay{}, false }

// View gives what consumers see.
func (s *Store) View(service Service, q Query) View { return View{} }

// All gives the true state of all instances of a service, disabled ones too.
func (s *Store) All(service Service) []Instance { return nil }

// CreateService makes a service with metadata.
func (s *Store) CreateService(ctx context.Context, c ServiceConfig) error { return nil }

// UpdateService replaces threshold, metadata and selector of a service; the
// kind stays.
func (s *Store) UpdateService(ctx context.Context, c ServiceConfig) error { return nil }

// DeleteService removes a service without instances.
func (s *Store) DeleteService(ctx context.Context, service Service) error { return nil }

// Describe tells what is known of a service.
func (s *Store) Describe(service Service) (ServiceInfo, error) { return ServiceInfo{}, ErrNotFound }

// SetCluster configures a cluster of a service, which need not have instances.
func (s *Store) SetCluster(ctx context.Context, c ClusterConfig) error { return nil }

// Cluster gives the configuration of a cluster, if somebody set one.
func (s *Store) Cluster(c Cluster) (config ClusterConfig, exists bool) { return ClusterConfig{}, false }

// Services lists the services of a namespace, sorted; group "" is all groups.
func (s *Store) Services(namespace, group string) []Service { return nil }

// Namespaces lists the namespaces that have services, sorted.
func (s *Store) Namespaces() []string { return nil }

// Counts sums up.
func (s *Store) Counts() Counts { return Counts{} }

// Watch tells which services changed until ctx ends: the first change at once,
// then at most one batch each 100 ms. tell runs in the caller's goroutine with
// no lock held; while it runs, changes gather and none is lost. What changed
// before the call is not told.
func (s *Store) Watch(ctx context.Context, tell func(changed []Service)) error {
	<-ctx.Done()
	return ctx.Err()
}
