package nacos

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/sidebeat/sidebeat/registry"
)

// spokenV3 is the version of Nacos that v3 follows.
const spokenV3 = "3.0.3"

// routesV3 is what clients of Nacos 3.x use and the admin API for naming.
func routesV3() map[string]route {
	table := map[string]route{
		pathRegisterOrBeat: {
			http.MethodPost:   v3(registerOrBeat, paramService, paramIP, paramPort),
			http.MethodDelete: v3(deregister, paramService, paramIP, paramPort),
		},
		"/v3/client/ns/instance/list":    {http.MethodGet: v3(listV3, paramService)},
		"/v3/admin/core/state":           {http.MethodGet: enveloped(stateV3)},
		"/v3/admin/core/state/liveness":  {http.MethodGet: enveloped(aliveNow)},
		"/v3/admin/core/state/readiness": {http.MethodGet: enveloped(aliveNow)},
		"/v3/admin/core/namespace/list":  {http.MethodGet: enveloped(namespacesV3)},
		"/v3/admin/core/namespace/check": {http.MethodGet: askedV3(countNamespaces, paramNamespace)},
		"/v3/admin/core/namespace": {
			http.MethodGet:    askedV3(oneNamespace, paramNamespace),
			http.MethodPost:   enveloped(createNamespaceV3),
			http.MethodPut:    enveloped(updateNamespaceV2),
			http.MethodDelete: askedV3(dropNamespace, paramNamespace),
		},
		"/v3/admin/core/cluster/node/list": {http.MethodGet: enveloped(clusterNodes)},
		"/v3/admin/core/cluster/node/self": {http.MethodGet: enveloped(selfNode)},
		"/v3/auth/user/login":              {http.MethodPost: open(logIn)},
	}
	maps.Copy(table, routesAdmin())
	return table
}

// routesAdmin is what operators ask. Nacos wants a token here even while auth
// is off.
func routesAdmin() map[string]route {
	const admin = "/v3/admin/ns"
	return map[string]route{
		admin + "/instance": {
			http.MethodPost:   v3(registerNameless, paramService, paramIP, paramPort),
			http.MethodDelete: v3(deregister, paramService, paramIP, paramPort),
			http.MethodPut:    v3(updateV3, paramService, paramIP, paramPort),
			http.MethodGet:    v3(detailV3, paramService, paramIP, paramPort),
		},
		admin + "/instance/list":    {http.MethodGet: v3(membersV3, paramService)},
		admin + "/instance/partial": {http.MethodPut: v3(patchV3, paramService, paramIP, paramPort)},
		admin + "/instance/metadata/batch": {
			http.MethodPut:    v3(setBatch, paramService, paramMetadata),
			http.MethodDelete: v3(dropBatch, paramService, paramMetadata),
		},
		admin + "/service": {
			http.MethodPost:   serviceV3(createKind),
			http.MethodPut:    serviceV3(updateKind),
			http.MethodDelete: serviceV3(deleteService),
			http.MethodGet:    serviceV3(describeV3),
		},
		admin + "/service/list":           {http.MethodGet: v3(servicesV3)},
		admin + "/service/subscribers":    {http.MethodGet: v3(subscribersV3, paramService)},
		admin + "/service/selector/types": {http.MethodGet: v3(selectorTypes)},
		admin + "/cluster": {http.MethodPut: v3(
			setClusterV3, paramService, paramCluster, paramCheckPort, paramUseInstance, paramChecker)},
		admin + "/health/instance":                {http.MethodPut: v3(setHealth, paramService, paramIP, paramPort, paramHealthy)},
		admin + "/health/checkers":                {http.MethodGet: v3(checkers)},
		admin + "/ops/metrics":                    {http.MethodGet: v3(metricsV3)},
		admin + "/ops/switches":                   {http.MethodGet: v3(switchesV3), http.MethodPut: v3(setSwitch, paramEntry, paramValue)},
		admin + "/ops/log":                        {http.MethodPut: askedV3(logLevel, paramLogName, paramLogLevel)},
		admin + "/client/list":                    {http.MethodGet: v3(clients)},
		admin + "/client":                         {http.MethodGet: askedV3(clientV3, paramClientID)},
		admin + "/client/publish/list":            {http.MethodGet: askedV3(publishedV3, paramClientID)},
		admin + "/client/subscribe/list":          {http.MethodGet: askedV3(subscribedV3, paramClientID)},
		admin + "/client/distro":                  {http.MethodGet: askedV3(responsible, paramIP, paramPort)},
		admin + "/client/service/publisher/list":  {http.MethodGet: v3(publishersV3, paramService)},
		admin + "/client/service/subscriber/list": {http.MethodGet: v3(hearersV3, paramService)},
	}
}

// inV3 tells whether the path is one of v3, where the framework speaks in other
// words.
func (r *call) inV3(s *Server) bool { return bytes.HasPrefix(r.path, []byte(s.context()+"/v3/")) }

func v3(op operation, needs ...string) handler {
	return endpoint{op: op, needs: needs, v3: true}.handler()
}

// askedV3 is one whose parameters Spring reads one by one.
func askedV3(op operation, needs ...string) handler {
	return endpoint{op: op, needs: needs, spring: true, v3: true}.handler()
}

// serviceV3 is an endpoint about a service.
func serviceV3(op operation) handler {
	return endpoint{op: op, needs: []string{paramService}, v3: true, ofService: true}.handler()
}

// pathRegisterOrBeat takes beats of v3 beside what is no beat.
const pathRegisterOrBeat = "/v3/client/ns/instance"

// registerOrBeat is register or, with heartBeat=true, a beat that never
// registers: an unknown instance has to do that itself. The cluster plays no
// part.
func registerOrBeat(ctx context.Context, s *Server, c *call) (any, error) {
	if !c.truth(false, paramHeartBeat) {
		return registerNameless(ctx, s, c)
	}
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	key.Ephemeral = true
	_, err = s.Store.Beat(ctx, registry.Instance{Key: key})
	if errors.Is(err, registry.ErrNotFound) {
		err = &coded{status: http.StatusOK, code: codeNoInstance}
	}
	return done{}, err
}

// listV3 is the list for consumers. Clusters other than the default one have
// to be named; healthyOnly is of no account.
func listV3(_ context.Context, s *Server, c *call) (any, error) {
	key := listKey{c.service, c.form.or(paramCluster, registry.DefaultCluster), false}
	return listOf(s.Store, key).Hosts, nil
}

// membersV3 is the list for operators: the true state of one cluster, disabled
// instances included.
func membersV3(_ context.Context, s *Server, c *call) (any, error) {
	if _, err := s.Store.Describe(c.service); err != nil {
		return nil, gone("service " + c.service.Grouped())
	}
	wanted := c.cluster()
	var members []registry.Instance
	exists := false
	for _, i := range s.Store.All(c.service) {
		if i.Cluster != wanted {
			continue
		}
		exists = true
		if i.Healthy || !c.truth(false, paramHealthyOnly) {
			members = append(members, i)
		}
	}
	if !exists {
		return nil, gone("cluster " + wanted)
	}
	return toHosts(members), nil
}

func gone(what string) error {
	return &coded{http.StatusNotFound, codeServer, what + " is not found!"}
}

func detailV3(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := s.found(ctx, c)
	if err != nil {
		return nil, err
	}
	return toHost(i), nil
}

// updateV3 is update; an unknown service is the fault of the instance here.
func updateV3(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := update(ctx, s, c)
	if errors.Is(err, registry.ErrNotFound) {
		err = invalid(codeInstance, err.Error())
	}
	return outcome, err
}

// patchV3 is patch, except that weight and enabled are set in any case: to 1
// and true where the call does not say.
func patchV3(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := s.found(ctx, c)
	if err != nil {
		return nil, err
	}
	weight, err := c.weight()
	if err != nil {
		return nil, err
	}
	enabled := c.truth(true, paramEnabled)
	overlay := registry.Overlay{Weight: &weight, Enabled: &enabled}
	if c.form.text(paramMetadata) != "" {
		overlay.Metadata = c.metadata
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.Override(ctx, i.Key, overlay)
}

// setClusterV3 is setCluster with the words of v3.
func setClusterV3(ctx context.Context, s *Server, c *call) (any, error) {
	if _, err := readChecker(c.form.text(paramChecker)); err != nil {
		return nil, illegal(paramChecker, err.Error())
	}
	if _, err := s.Store.Describe(c.service); err != nil {
		return nil, badRequest("service not found groupName: " + c.service.Group + ",serviceName: " + c.service.Name)
	}
	return setCluster(ctx, s, c)
}

// metricsV3 is metrics without what v3 does not tell.
func metricsV3(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := metrics(ctx, s, c)
	if m, long := outcome.(metricsBody); long {
		outcome = metricsV3Body{
			m.Status, m.Services, m.Instances, m.Subscribers, m.Clients, m.ConnectionClients, m.EphemeralClients,
			m.PersistentClients, m.ResponsibleClientCount,
		}
	}
	return outcome, err
}

// metricsV3Body is metricsBody without figures of the machine.
type metricsV3Body struct {
	Status                 string `json:"status"`
	Services               int    `json:"serviceCount"`
	Instances              int    `json:"instanceCount"`
	Subscribers            int    `json:"subscribeCount"`
	Clients                int    `json:"clientCount"`
	ConnectionClients      int    `json:"connectionBasedClientCount"`
	EphemeralClients       int    `json:"ephemeralIpPortClientCount"`
	PersistentClients      int    `json:"persistentIpPortClientCount"`
	ResponsibleClientCount int    `json:"responsibleClientCount"`
}

func stateV3(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := serverState(ctx, s, c)
	if state, ok := outcome.(stateBody); ok {
		state.Version = spokenV3
		outcome = state
	}
	return outcome, err
}

// namespacesV3 lists namespaces; the public one has its name for an id.
func namespacesV3(_ context.Context, s *Server, _ *call) (any, error) {
	list := []namespaceBody{}
	for _, n := range s.Store.CreatedNamespaces() {
		body := toNamespace(n)
		body.ID = n.ID
		list = append(list, body)
	}
	return list, nil
}

// switchesV3Body is switchesBody with other names for some.
type switchesV3Body struct {
	switchesBody
	Go     string `json:"pushVersionOfGo"`
	Java   string `json:"pushVersionOfJava"`
	Python string `json:"pushVersionOfPython"`
	C      string `json:"pushVersionOfC"`
	CSharp string `json:"pushVersionOfCsharp"`

	// These hide the names of v1.
	NoGo     string `json:"pushGoVersion,omitempty"`
	NoJava   string `json:"pushJavaVersion,omitempty"`
	NoPython string `json:"pushPythonVersion,omitempty"`
	NoC      string `json:"pushCVersion,omitempty"`
	NoCSharp string `json:"pushCSharpVersion,omitempty"`
}

func switchesV3(_ context.Context, s *Server, _ *call) (any, error) {
	w := s.Store.Switches()
	v := w.PushVersions
	return switchesV3Body{
		switchesBody: toSwitches(w), Go: v.Go, Java: v.Java, Python: v.Python, C: v.C, CSharp: v.CSharp,
	}, nil
}

// aliveNow is alive, in an envelope.
func aliveNow(context.Context, *Server, *call) (any, error) { return done{}, nil }

// selfNode is the one of clusterNodes that answers.
func selfNode(_ context.Context, s *Server, c *call) (any, error) { return s.node(c), nil }

// pageBody is a page of v3 (com.alibaba.nacos.api.model.Page).
type pageBody[T any] struct {
	Total int `json:"totalCount"`
	No    int `json:"pageNumber"`
	Pages int `json:"pagesAvailable"`
	Items []T `json:"pageItems"`
}

// pageSizeV3 is how long a page is if nobody says.
const pageSizeV3 = 100

// pageOf cuts out the page that the call asks for and shows its items.
func pageOf[T, B any](c *call, all []T, show func(T) B) (any, error) {
	no, size := c.number(paramPageNo, 1), c.number(paramPageSize, pageSizeV3)
	for _, n := range []struct {
		name  string
		value int
	}{{paramPageNo, no}, {paramPageSize, size}} {
		if n.value <= 0 {
			return nil, notPositive(n.name, n.value)
		}
	}
	body := pageBody[B]{Total: len(all), No: no, Pages: (len(all) + size - 1) / size, Items: []B{}}
	from, to := cutPage(no, size, len(all))
	for _, one := range all[from:to] {
		body.Items = append(body.Items, show(one))
	}
	return body, nil
}

// servicesV3 lists services with figures or, with withInstances, with all their
// instances.
func servicesV3(_ context.Context, s *Server, c *call) (any, error) {
	chosen := s.chosen(c)
	if !c.truth(false, paramWithInstances) {
		return pageOf(c, chosen, described(s, summarise))
	}
	return pageOf(c, chosen, described(s, s.inhabited))
}

// described shows a service by what is known of it; of one that went meanwhile
// that is its name.
func described[B any](s *Server, show func(registry.ServiceInfo) B) func(registry.Service) B {
	return func(service registry.Service) B {
		info, err := s.Store.Describe(service)
		if err != nil {
			info.Service = service
		}
		return show(info)
	}
}

// subscriberV3 is com.alibaba.nacos.api.naming.pojo.maintainer.SubscriberInfo.
type subscriberV3 struct {
	Namespace string `json:"namespaceId"`
	Group     string `json:"groupName"`
	Service   string `json:"serviceName"`
	IP        string `json:"ip"`
	Port      uint16 `json:"port"`
	Agent     string `json:"agent"`
	App       string `json:"appName"`
}

func subscribersV3(_ context.Context, s *Server, c *call) (any, error) {
	return pageOf(c, s.Store.Subscribers(c.service), func(one registry.Subscriber) subscriberV3 {
		return subscriberV3{
			one.Namespace, one.Group, one.Name, one.Address.Addr().String(), one.Address.Port(), one.Agent, one.App,
		}
	})
}

// serviceV3Body is a service as v3 shows it
// (com.alibaba.nacos.api.naming.pojo.maintainer.ServiceDetailInfo); in a list
// what was not looked up is null.
type serviceV3Body struct {
	Namespace *string              `json:"namespaceId"`
	Name      string               `json:"serviceName"`
	Group     string               `json:"groupName"`
	Clusters  map[string]clusterV3 `json:"clusterMap"`
	Metadata  map[string]string    `json:"metadata"`
	Threshold decimal              `json:"protectThreshold"`
	Selector  *selectorBody        `json:"selector"`
	Ephemeral *bool                `json:"ephemeral"`
}

type clusterV3 struct {
	Name        *string           `json:"clusterName"`
	Checker     *checkerBody      `json:"healthChecker"`
	CheckPort   uint16            `json:"healthyCheckPort"`
	UseInstance bool              `json:"useInstancePortForCheck"`
	Metadata    map[string]string `json:"metadata"`
	Hosts       []hostBody        `json:"hosts"` // in a list only
}

func describeV3(_ context.Context, s *Server, c *call) (any, error) {
	info, err := s.Store.Describe(c.service)
	if err != nil {
		return nil, err
	}
	selector := shownSelector(info.Selector)
	body := withoutClusters(info)
	body.Namespace, body.Selector, body.Ephemeral = &info.Namespace, &selector, &info.Ephemeral
	for _, k := range info.Clusters {
		checker := toChecker(k.Checker)
		body.Clusters[k.Name] = clusterV3{
			Name: &k.Name, Checker: &checker, CheckPort: k.Checker.Port, UseInstance: k.Checker.UseInstancePort,
			Metadata: notNil(k.Metadata),
		}
	}
	return body, nil
}

// withoutClusters shows what a list tells of a service itself.
func withoutClusters(info registry.ServiceInfo) serviceV3Body {
	return serviceV3Body{
		Name: info.Name, Group: info.Group, Clusters: map[string]clusterV3{}, Metadata: notNil(info.Metadata),
		Threshold: decimal(info.ProtectThreshold),
	}
}

// inhabited shows a service with its instances.
func (s *Server) inhabited(info registry.ServiceInfo) serviceV3Body {
	body := withoutClusters(info)
	for _, i := range s.Store.All(info.Service) {
		k := body.Clusters[i.Cluster]
		k.CheckPort, k.UseInstance = registry.DefaultChecker.Port, registry.DefaultChecker.UseInstancePort
		k.Hosts = append(k.Hosts, toHost(i))
		body.Clusters[i.Cluster] = k
	}
	return body
}
