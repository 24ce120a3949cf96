package registry

import "strconv"

// Overlay is what an operator set on an instance, apart from what its client
// published. It wins over that whenever the instance is read, outlives a
// registration and, for 60 s, a deregistration. nil: not set.
type Overlay struct {
	Weight   *float64          // 0 to 10000
	Enabled  *bool             // false: hidden from consumers
	Metadata map[string]string // laid over the published keys
}

// Query chooses what a View shows.
type Query struct {
	Clusters    []string // names; none: all clusters
	HealthyOnly bool
}

// View is what consumers of a service get.
type View struct {
	Instances []Instance // enabled ones, ordered by address; the metadata maps are shared and must not be changed
	Protected bool       // too few are healthy: all are shown healthy
	Exists    bool       // false: no such service
	Ephemeral bool       // kind of the service, when it exists
}

// ServiceConfig is what an operator says about a service as a whole.
type ServiceConfig struct {
	Service
	Ephemeral        bool    // kind; fixed when the service is created
	ProtectThreshold float64 // 0 to 1: share of healthy instances at or below which all are shown healthy
	Metadata         map[string]string
	Selector         string // JSON as it was given; "" = none
}

// ClusterConfig is what an operator says about one cluster of a service.
type ClusterConfig struct {
	Cluster
	Checker  Checker
	Metadata map[string]string
}

// ServiceInfo describes a service.
type ServiceInfo struct {
	ServiceConfig
	Clusters    []ClusterConfig // those with instances, by name; with DefaultChecker where none was set
	Instances   int
	Healthy     int
	HasMetadata bool // somebody created, updated or configured it: protection is armed
}

// DefaultChecker is how a cluster without a configuration is checked
// (com.alibaba.nacos.naming.core.v2.metadata.ClusterMetadata).
var DefaultChecker = Checker{Type: "TCP", Port: 80, UseInstancePort: true}

// Counts sums up the store.
type Counts struct {
	Services   int
	Ephemeral  int    // instances
	Persistent int    // instances
	Unhealthy  int    // instances of both kinds
	Beats      uint64 // taken since start
	Expiries   uint64 // instances deleted for their silence since start
}

// InstanceID forms the id of an instance as Nacos does by default:
// ip#port#cluster#group@@service
// (com.alibaba.nacos.api.naming.spi.generator.InstanceIdGenerator, "simple").
func InstanceID(k Key) string {
	return k.IP + "#" + strconv.Itoa(int(k.Port)) + "#" + k.Cluster + "#" + k.Grouped()
}
