package nacos

import (
	"context"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// catalogBody is the answer of catalog/instances: the true state, disabled
// ones included.
type catalogBody struct {
	List  []hostBody `json:"list"`
	Count int        `json:"count"`
}

func catalogInstances(_ context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramService, paramCluster, paramPageNo, paramPageSize); err != nil {
		return nil, err
	}
	if _, err := s.Store.Describe(c.service); err != nil {
		return nil, notFound("service " + c.service.Grouped() + " is not found!")
	}
	var here []registry.Instance
	for _, i := range s.Store.All(c.service) {
		if i.Cluster == c.form.text(paramCluster) {
			here = append(here, i)
		}
	}
	if len(here) == 0 {
		return nil, notFound("cluster " + c.form.text(paramCluster) + " is not found!")
	}
	from, to, err := c.paging(len(here))
	if err != nil {
		return nil, err
	}
	return catalogBody{toHosts(here[from:to]), len(here)}, nil
}

// catalogServiceBody is the answer of catalog/service.
type catalogServiceBody struct {
	Service  catalogServiceHead `json:"service"`
	Clusters []catalogCluster   `json:"clusters"`
}

type catalogServiceHead struct {
	Name      string            `json:"name"`
	Group     string            `json:"groupName"`
	Threshold decimal           `json:"protectThreshold"`
	Selector  selectorBody      `json:"selector"`
	Metadata  map[string]string `json:"metadata"`
}

type catalogCluster struct {
	Service     string            `json:"serviceName"`
	Name        string            `json:"name"`
	Checker     checkerBody       `json:"healthChecker"`
	DefaultPort uint16            `json:"defaultPort"` // 80, whatever the instances have
	CheckPort   uint16            `json:"defaultCheckPort"`
	UseInstance bool              `json:"useIPPort4Check"`
	Metadata    map[string]string `json:"metadata"`
}

func catalogService(_ context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramService); err != nil {
		return nil, err
	}
	info, err := s.Store.Describe(c.service)
	if err != nil {
		return nil, notFound("service " + c.service.Grouped() + " is not found!")
	}
	body := catalogServiceBody{
		Service: catalogServiceHead{
			info.Name, info.Group, decimal(info.ProtectThreshold), shownSelector(info.Selector), notNil(info.Metadata),
		},
		Clusters: []catalogCluster{},
	}
	for _, k := range info.Clusters {
		body.Clusters = append(body.Clusters, catalogCluster{
			info.Grouped(), k.Name, toChecker(k.Checker), registry.DefaultChecker.Port,
			k.Checker.Port, k.Checker.UseInstancePort, notNil(k.Metadata),
		})
	}
	return body, nil
}

// summariesBody is the answer of catalog/services without instances.
type summariesBody struct {
	Count    int       `json:"count"`
	Services []summary `json:"serviceList"`
}

type summary struct {
	Name      string `json:"name"`
	Group     string `json:"groupName"`
	Clusters  int    `json:"clusterCount"`
	Instances int    `json:"ipCount"`
	Healthy   int    `json:"healthyInstanceCount"`
	Protected string `json:"triggerFlag"` // "true" or "false"
}

// catalogServices lists services with figures or, with withInstances, with
// all their instances: the only bulk dump that v1 has.
func catalogServices(_ context.Context, s *Server, c *call) (any, error) {
	chosen := s.chosen(c)
	from, to, err := c.paging(len(chosen))
	if err != nil {
		return nil, err
	}
	if c.truth(false, paramWithInstances) {
		return s.dump(chosen[from:to]), nil
	}
	body := summariesBody{Count: len(chosen), Services: []summary{}}
	for _, info := range s.describe(chosen[from:to]) {
		body.Services = append(body.Services, summarise(info))
	}
	return body, nil
}

// describe leaves out what went meanwhile.
func (s *Server) describe(services []registry.Service) (infos []registry.ServiceInfo) {
	for _, service := range services {
		if info, err := s.Store.Describe(service); err == nil {
			infos = append(infos, info)
		}
	}
	return infos
}

// chosen gives the services whose name and group contain what the call asks
// for; with hasIpCount only those that have instances.
func (s *Server) chosen(c *call) []registry.Service {
	name, group := c.form.text(paramServiceFilter), c.form.text(paramGroupFilter)
	all := s.Store.Services(c.service.Namespace, "")
	if c.truth(false, paramHasIPCount, paramIgnoreEmpty) {
		all = s.Store.Inhabited(c.service.Namespace)
	}
	if name == "" && group == "" {
		return all
	}
	var chosen []registry.Service
	for _, service := range all {
		if strings.Contains(service.Name, name) && strings.Contains(service.Group, group) {
			chosen = append(chosen, service)
		}
	}
	return chosen
}

func summarise(info registry.ServiceInfo) summary {
	protected := "false"
	if info.Instances > 0 && float64(info.Healthy)/float64(info.Instances) <= info.ProtectThreshold {
		protected = "true"
	}
	return summary{info.Name, info.Group, len(info.Clusters), info.Instances, info.Healthy, protected}
}

// dumpBody is one service in catalog/services with instances; what is always
// null there is null here.
type dumpBody struct {
	Namespace any                    `json:"namespace"`
	Name      string                 `json:"serviceName"`
	Group     string                 `json:"groupName"`
	Clusters  map[string]dumpCluster `json:"clusterMap"`
	Metadata  map[string]string      `json:"metadata"`
	Threshold decimal                `json:"protectThreshold"`
	Selector  any                    `json:"selector"`
	Ephemeral any                    `json:"ephemeral"`
}

type dumpCluster struct {
	Name     any        `json:"clusterName"`
	Checker  any        `json:"healthChecker"`
	Metadata any        `json:"metadata"`
	Hosts    []dumpHost `json:"hosts"`
}

type dumpHost struct {
	Valid    bool              `json:"valid"`
	Metadata map[string]string `json:"metadata"`
	Port     uint16            `json:"port"`
	IP       string            `json:"ip"`
	Weight   decimal           `json:"weight"`
	Enabled  bool              `json:"enabled"`
}

func (s *Server) dump(services []registry.Service) []dumpBody {
	body := []dumpBody{}
	for _, info := range s.describe(services) {
		clusters := map[string]dumpCluster{}
		for _, i := range s.Store.All(info.Service) {
			k := clusters[i.Cluster]
			k.Hosts = append(k.Hosts, dumpHost{i.Healthy, notNil(i.Metadata), i.Port, i.IP, decimal(i.Weight), i.Enabled})
			clusters[i.Cluster] = k
		}
		body = append(body, dumpBody{
			Name: info.Name, Group: info.Group, Clusters: clusters, Metadata: notNil(info.Metadata),
			Threshold: decimal(info.ProtectThreshold),
		})
	}
	return body
}
