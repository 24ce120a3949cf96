// Package registry holds the words of a service registry (service, instance,
// page) and the store behind them: who is in, what silence means, who is told.
//
// The words follow the model of Nacos 2.x: a service lives in a group of a
// namespace and is ephemeral or persistent as a whole; an instance is one
// ip:port of a service.
package registry

import (
	"cmp"
	"errors"
	"net"
	"strconv"
)

// Defaults of Nacos (com.alibaba.nacos.api.common.Constants).
const (
	DefaultNamespace = "public"
	DefaultGroup     = "DEFAULT_GROUP"
	DefaultCluster   = "DEFAULT"
)

var (
	// ErrNotFound says that the registry does not know the instance or the
	// service: whoever owns it has to register it again.
	ErrNotFound = errors.New("not found")
	// ErrStale says that the instance was changed since it was read: read it
	// again and decide anew.
	ErrStale = errors.New("changed since it was read")
	// ErrUnavailable says that the registry cannot take the write now (no
	// leader yet, disk nearly full); it is 503 on the wire. Try again later.
	ErrUnavailable = errors.New("registry cannot take writes now")
	// ErrRefused is wrapped by every error that says the request itself is
	// wrong, so that trying again cannot help: a bad weight, the other kind of
	// service, a service that is not empty.
	ErrRefused = errors.New("refused")
)

// Service names a service. Two services are the same when all three parts are
// equal; whether it is ephemeral or persistent is not part of its name.
type Service struct {
	Namespace, Group, Name string
}

// String gives the grouped name that Nacos uses on the wire, group@@name, with
// the namespace in front unless it is the public one.
func (s Service) String() string {
	if s.Namespace == "" || s.Namespace == DefaultNamespace {
		return s.Grouped()
	}
	return s.Namespace + "/" + s.Grouped()
}

// Grouped gives group@@name (com.alibaba.nacos.api.naming.utils.NamingUtils).
func (s Service) Grouped() string { return s.Group + "@@" + s.Name }

// Compare orders services by namespace, group and name.
func (s Service) Compare(o Service) int {
	return cmp.Or(cmp.Compare(s.Namespace, o.Namespace), cmp.Compare(s.Group, o.Group), cmp.Compare(s.Name, o.Name))
}

// Key names an instance. Within a service and a kind ip:port is unique; the
// cluster is needed by Nacos 1.4 and Ephemeral by 2.x, which deletes nothing
// when the kind is wrong.
type Key struct {
	Service
	Cluster   string
	IP        string
	Port      uint16
	Ephemeral bool
}

// Address gives ip:port, an IPv6 address in brackets.
func (k Key) Address() string { return net.JoinHostPort(k.IP, strconv.Itoa(int(k.Port))) }

// String gives service@ip:port for logs and errors.
func (k Key) String() string { return k.Service.String() + "@" + k.Address() }

// Instance is one running copy of a service as the registry lists it.
type Instance struct {
	Key
	Weight   float64 // 0 to 10000, share of the traffic; 1 is usual
	Enabled  bool    // false: hidden from consumers
	Healthy  bool    // false: listed, but not to be called
	Metadata map[string]string
	// NoID: it came by v2 or v3 of Nacos' HTTP, where instances have no id.
	NoID bool
	// Revision grows with each change of the instance; 0: this registry gives none.
	Revision uint64
}

// Cluster names a cluster of a service.
type Cluster struct {
	Service
	Name string
}

// Checker says how the registry wants the persistent instances of a cluster to
// be checked (com.alibaba.nacos.api.naming.pojo.healthcheck). A cluster without
// one is checked by TCP on the instance's own port.
type Checker struct {
	Type            string // TCP, HTTP, MYSQL or NONE
	Path            string // HTTP only
	Headers         string // HTTP only: "name:value|name:value"
	Port            uint16 // asked when UseInstancePort is false
	UseInstancePort bool
	ExpectedStatus  uint32 // HTTP only: kept and shown; Nacos' own checker takes 200 whatever it is. 0: none given
	User            string // MYSQL only
	Password        string // MYSQL only
	Command         string // MYSQL only: SQL
}

// Page is a part of a list of instances.
type Page struct {
	Instances []Instance
	// Checkers holds the checkers of the clusters on this page that have one.
	Checkers map[Cluster]Checker
	Next     string    // where the next page starts; "" after the last one
	Failed   []Service // could not be read; what was known of them stands
}
