package nacos

import (
	"context"
	"net/http"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// routesV2 is the naming API of Nacos 2.2 and later, as 2.5.1 answers it: an
// envelope around each answer, except that of a beat.
func routesV2() map[string]route {
	table := map[string]route{
		"/v2/ns/instance": {
			http.MethodPost:   v2(registerNameless, paramService, paramIP, paramPort),
			http.MethodDelete: v2(deregister, paramService, paramIP, paramPort),
			http.MethodPut:    v2(updateV2, paramService, paramIP, paramPort),
			http.MethodPatch:  patchV2.handler(),
			http.MethodGet:    askedV2(detailV2, paramService, paramIP, paramPort),
		},
		"/v2/ns/instance/list": {http.MethodGet: askedV2(listV2, paramService)},
		"/v2/ns/instance/beat": {http.MethodPut: beatV2},
		"/v2/ns/instance/metadata/batch": {
			http.MethodPut:    v2(setBatch, paramService, paramMetadata),
			http.MethodDelete: v2(dropBatch, paramService, paramMetadata),
		},
		"/v2/ns/service": {
			http.MethodPost:   v2(createKind, paramService),
			http.MethodPut:    v2(updateKind, paramService),
			http.MethodDelete: askedV2(deleteService, paramService),
			http.MethodGet:    askedV2(serviceV2, paramService),
		},
		"/v2/ns/service/list":    {http.MethodGet: askedV2(servicesV2)},
		"/v2/ns/health":          {http.MethodPut: v2(setHealth, paramService, paramIP, paramPort, paramHealthy)},
		"/v2/ns/health/instance": {http.MethodPut: v2(setHealth, paramService, paramIP, paramPort, paramHealthy)},
		"/v2/ns/catalog/instances": {
			http.MethodGet: askedV2(membersV2, paramService, paramPageNo, paramPageSize),
		},
		"/v2/console/health/liveness":  {http.MethodGet: enveloped(aliveNow)},
		"/v2/console/health/readiness": {http.MethodGet: enveloped(aliveNow)},
		"/v2/console/namespace/list":   {http.MethodGet: enveloped(allNamespaces)},
		"/v2/console/namespace": {
			http.MethodGet:    askedV2(oneNamespace, paramNamespace),
			http.MethodPost:   enveloped(createNamespaceV2),
			http.MethodPut:    enveloped(updateNamespaceV2),
			http.MethodDelete: askedV2(dropNamespace, paramNamespace),
		},
		"/v2/core/cluster/node/list":            {http.MethodGet: enveloped(clusterNodes)},
		"/v2/core/cluster/node/self":            {http.MethodGet: enveloped(selfNode)},
		"/v2/core/cluster/node/self/health":     {http.MethodGet: enveloped(selfHealth)},
		"/v2/ns/client/list":                    {http.MethodGet: askedV2(clients)},
		"/v2/ns/client/publish/list":            {http.MethodGet: askedV2(published, paramClientID)},
		"/v2/ns/client":                         {http.MethodGet: askedV2(client, paramClientID)},
		"/v2/ns/client/subscribe/list":          {http.MethodGet: askedV2(subscriptions, paramClientID)},
		"/v2/ns/client/service/publisher/list":  {http.MethodGet: askedV2(publishers, paramService)},
		"/v2/ns/client/service/subscriber/list": {http.MethodGet: askedV2(hearers, paramService)},
	}
	for _, operator := range []string{"/v2/ns/operator", "/v2/ns/ops"} {
		table[operator+"/metrics"] = route{http.MethodGet: askedV2(metricsV2)}
		table[operator+"/switches"] = route{
			http.MethodGet: askedV2(switches),
			http.MethodPut: v2(setSwitch, paramEntry, paramValue),
		}
	}
	return table
}

// v2 is an endpoint whose parameters Nacos reads into a form.
func v2(op operation, needs ...string) handler { return endpoint{op: op, needs: needs}.handler() }

// askedV2 is one whose parameters Spring reads one by one.
func askedV2(op operation, needs ...string) handler {
	return endpoint{op: op, needs: needs, spring: true}.handler()
}

// allNamespaces is namespaces when nothing else is asked.
func allNamespaces(_ context.Context, s *Server, _ *call) (any, error) {
	list := []namespaceBody{}
	for _, n := range s.Store.CreatedNamespaces() {
		list = append(list, toNamespace(n))
	}
	return list, nil
}

// selfHealth tells the state of the node that answers.
func selfHealth(_ context.Context, s *Server, _ *call) (any, error) { return s.status(), nil }

// patchV2 wants all of it, where v1 wants some.
var patchV2 = endpoint{
	op: patchBare, grouped: true, spring: true,
	needs: []string{paramService, paramIP, paramPort, paramWeight, paramEnabled, paramMetadata},
}

// patchBare is patch, answered without an envelope.
func patchBare(ctx context.Context, s *Server, c *call) (any, error) {
	if _, err := patch(ctx, s, c); err != nil {
		return nil, err
	}
	return written{typeText, bodyOK}, nil
}

// beatV2 answers the bare answer of v1; only what is wrong with the request is
// told in the way of v2.
func beatV2(s *Server, c *call) {
	e := endpoint{needs: []string{paramService}, grouped: true, spring: true}
	if err := e.prepare(c); err != nil {
		c.writeCoded(err)
		return
	}
	beatV1(s, c)
}

// registerNameless is register; instances that come this way have no id.
func registerNameless(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := c.instance()
	if err != nil {
		return nil, err
	}
	i.NoID = true
	return done{}, s.register(ctx, i)
}

// detailV2Body is detailBody with the names of v2.
type detailV2Body struct {
	Service  string            `json:"serviceName"`
	IP       string            `json:"ip"`
	Port     uint16            `json:"port"`
	Cluster  string            `json:"clusterName"`
	Weight   decimal           `json:"weight"`
	Healthy  bool              `json:"healthy"`
	ID       *string           `json:"instanceId"`
	Metadata map[string]string `json:"metadata"`
}

func detailV2(ctx context.Context, s *Server, c *call) (any, error) {
	i, err := s.found(ctx, c)
	if err != nil {
		return nil, err
	}
	body := detailV2Body{
		Service: i.Grouped(), IP: i.IP, Port: i.Port, Cluster: i.Cluster, Weight: decimal(i.Weight),
		Healthy: i.Healthy, Metadata: notNil(i.Metadata),
	}
	if id := instanceID(i); id != "" {
		body.ID = &id
	}
	return body, nil
}

// updateV2 is update; that there is no such service is a fault of the instance.
func updateV2(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := update(ctx, s, c)
	if isRefusal(err, registry.ServiceUnknown) {
		err = invalid(codeInstance, err.Error())
	}
	return outcome, err
}

// membersV2Body is the answer of catalog/instances.
type membersV2Body struct {
	Instances *[]hostBody `json:"instances,omitempty"` // not there when the page has none
	Count     int         `json:"count"`
}

// membersV2 is catalogInstances for all clusters, by health or by what is
// enabled if the call says so. The group stands in the service name.
func membersV2(_ context.Context, s *Server, c *call) (any, error) {
	if group, name, grouped := strings.Cut(c.service.Name, groupSeparator); grouped {
		c.service.Group, c.service.Name = group, name
	}
	shows := func(parameter string, value bool) bool {
		return c.form.text(parameter) == "" || c.truth(false, parameter) == value
	}
	var members []registry.Instance
	for _, i := range s.Store.All(c.service) {
		if shows(paramHealthyOnly, i.Healthy) && shows(paramEnabledOnly, i.Enabled) {
			members = append(members, i)
		}
	}
	body := membersV2Body{Count: len(members)}
	if from, to := cutPage(c.number(paramPageNo, 1), c.number(paramPageSize, 0), len(members)); from < len(members) {
		page := toHosts(members[from:to])
		body.Instances = &page
	}
	return body, nil
}

// metricsV2 is metrics without one figure.
func metricsV2(ctx context.Context, s *Server, c *call) (any, error) {
	outcome, err := metrics(ctx, s, c)
	if m, long := outcome.(metricsBody); long {
		m.ResponsibleInstances = nil
		outcome = m
	}
	return outcome, err
}

// listV2 is consumers with clusterName for clusters, ip for clientIP and port for
// udpPort.
func listV2(ctx context.Context, s *Server, c *call) (any, error) {
	clusters := c.form.text(paramCluster)
	if err := s.push.subscribe(c, clusters, c.form.text(paramIP), c.form.text(paramPort)); err != nil {
		return nil, err
	}
	return s.list(ctx, c, clusters)
}

// createKind is createService for either kind: persistent unless the call says
// otherwise.
func createKind(ctx context.Context, s *Server, c *call) (any, error) {
	config, err := c.kindConfig()
	if err != nil {
		return nil, err
	}
	config.Ephemeral = c.truth(false, paramEphemeral)
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.CreateService(ctx, config)
}

func updateKind(ctx context.Context, s *Server, c *call) (any, error) {
	config, err := c.kindConfig()
	if err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.UpdateService(ctx, config)
}

func (c *call) kindConfig() (registry.ServiceConfig, error) {
	threshold, err := c.threshold()
	if err != nil {
		return registry.ServiceConfig{}, err
	}
	config, err := c.serviceConfig(threshold)
	if err != nil && asFault(err).status == http.StatusBadRequest {
		err = invalid(codeSelector, err.Error())
	}
	if err != nil {
		return registry.ServiceConfig{}, err
	}
	return config, nil
}

// serviceV2Body is a service as v2 shows it
// (com.alibaba.nacos.naming.pojo.ServiceDetailInfo).
type serviceV2Body struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"serviceName"`
	Group     string               `json:"groupName"`
	Clusters  map[string]clusterV2 `json:"clusterMap"`
	Metadata  map[string]string    `json:"metadata"`
	Threshold decimal              `json:"protectThreshold"`
	Selector  selectorBody         `json:"selector"`
	Ephemeral bool                 `json:"ephemeral"`
}

type clusterV2 struct {
	Name     string            `json:"clusterName"`
	Checker  checkerBody       `json:"healthChecker"`
	Metadata map[string]string `json:"metadata"`
	Hosts    []hostBody        `json:"hosts"` // always null
}

func serviceV2(_ context.Context, s *Server, c *call) (any, error) {
	info, err := s.Store.Describe(c.service)
	if err != nil {
		return nil, err
	}
	body := serviceV2Body{
		info.Namespace, info.Name, info.Group, map[string]clusterV2{}, notNil(info.Metadata),
		decimal(info.ProtectThreshold), shownSelector(info.Selector), info.Ephemeral,
	}
	for _, k := range info.Clusters {
		body.Clusters[k.Name] = clusterV2{Name: k.Name, Checker: toChecker(k.Checker), Metadata: notNil(k.Metadata)}
	}
	return body, nil
}

// namesV2Body is the answer of v2 service/list.
type namesV2Body struct {
	Count int      `json:"count"`
	Names []string `json:"services"`
}

const (
	pageV2    = 20  // services
	maxPageV2 = 500 // services, whatever was asked for
)

func servicesV2(_ context.Context, s *Server, c *call) (any, error) {
	all := s.Store.Services(c.service.Namespace, c.service.Group)
	body := namesV2Body{Count: len(all), Names: []string{}}
	from, to := cutPage(c.number(paramPageNo, 1), min(c.number(paramPageSize, pageV2), maxPageV2), len(all))
	for _, service := range all[from:to] {
		body.Names = append(body.Names, service.Name)
	}
	return body, nil
}
