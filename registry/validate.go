package registry

import (
	"fmt"
)

// Texts and rules are those of com.alibaba.nacos.api.naming.utils.NamingUtils
// and com.alibaba.nacos.naming.utils of 2.5.1.

// normal fills in what may be left out.
func (k Key) normal() Key {
	k.Service = k.Service.normal()
	if k.Cluster == "" {
		k.Cluster = DefaultCluster
	}
	return k
}

func (s Service) normal() Service {
	if s.Namespace == "" {
		s.Namespace = DefaultNamespace
	}
	if s.Group == "" {
		s.Group = DefaultGroup
	}
	return s
}

// CheckInstance tells why an instance may not be registered: a *Refusal, or
// nil.
func CheckInstance(i Instance) error {
	p := unclamped(i.Metadata)
	switch {
	case i.Name == "":
		return &Refusal{Incomplete, "Param 'serviceName' is required."}
	case i.IP == "":
		return &Refusal{Incomplete, "Param 'ip' is required."}
	case p.timeout < p.interval || p.expire < p.interval:
		return &Refusal{BadPeriods, "Instance 'heart beat interval' must less than 'heart beat timeout' and 'ip delete timeout'."}
	case !plainCluster(i.Cluster):
		return &Refusal{BadCluster, "Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: " + i.Cluster + ")"}
	}
	return CheckWeight(i.Weight)
}

// CheckWeight refuses weights outside 0 to 10000 and, unlike Nacos, NaN.
func CheckWeight(weight float64) error {
	if !(weight >= 0 && weight <= 10000) {
		return &Refusal{BadWeight, "instance format invalid: The weights range from 0.0 to 10000.0"}
	}
	return nil
}

// unclamped reads the published periods as they stand, for comparing them.
func unclamped(metadata map[string]string) (p struct{ interval, timeout, expire uint64 }) {
	read := func(name string, otherwise uint32) uint64 {
		if ms, plain := plainNumber(metadata[name]); plain {
			return ms
		}
		return uint64(otherwise)
	}
	p.interval = read(KeyBeatInterval, uint32(DefaultBeatInterval.Milliseconds()))
	p.timeout = read(KeyBeatTimeout, defaultPeriods.timeout)
	p.expire = read(KeyDeleteTimeout, defaultPeriods.expire)
	return p
}

// plainCluster matches ^[0-9a-zA-Z-]+$; "" stands for the default cluster.
func plainCluster(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return true
}

func conflict(service Service, ephemeral bool) error {
	is, other := "persistent", "ephemeral"
	if ephemeral {
		is, other = other, is
	}
	return &Refusal{KindConflict, fmt.Sprintf("Current service %s is %s service, can't register %s instance.", service.Grouped(), is, other)}
}

// missing is what Nacos says when it reads an instance that it does not have.
func missing(k Key, inhabited bool) error {
	if inhabited {
		return &Refusal{InstanceUnknown, "no matched ip found!"}
	}
	return &Refusal{InstanceUnknown, fmt.Sprintf("no ips found for cluster %s in service %s", k.normal().Cluster, k.Grouped())}
}
