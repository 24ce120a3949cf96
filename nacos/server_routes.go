package nacos

import (
	"maps"
	"net/http"
)

// routes is the table of all that the server answers; the context path stands
// in front of each path.
func (s *Server) routes() map[string]route {
	placed := map[string]route{}
	for _, table := range []map[string]route{routesV1(), routesOperator(pathOperator), routesOperator(pathOps), routesConsole(), routesV2(), routesV3()} {
		for path, there := range table {
			there = s.bounds.bounded(path, maps.Clone(there))
			if get, ok := there[http.MethodGet]; ok {
				there[http.MethodHead] = get // fasthttp leaves the body out
			}
			placed[s.context()+path] = s.guarded(path, there)
		}
	}
	return placed
}

// routesV1 is the naming API of Nacos 1.x and 2.x.
func routesV1() map[string]route {
	return map[string]route{
		pathInstance: {
			http.MethodPost:   naming(register),
			http.MethodDelete: naming(deregister),
			http.MethodPut:    naming(update),
			http.MethodPatch:  naming(patch),
			http.MethodGet:    naming(detail),
		},
		pathInstanceList:   {http.MethodGet: naming(consumers)},
		pathBeat:           {http.MethodPut: beatV1, http.MethodPost: beatV1},
		pathCluster:        {http.MethodPut: naming(setCluster)},
		pathHealth:         {http.MethodPut: naming(setHealth)},
		pathHealthInstance: {http.MethodPut: naming(setHealth)},
		pathService: {
			http.MethodPost:   naming(createService),
			http.MethodGet:    naming(getService),
			http.MethodPut:    naming(updateService),
			http.MethodDelete: naming(deleteService),
		},
		pathBatch:         {http.MethodPut: naming(setBatch), http.MethodDelete: naming(dropBatch)},
		pathStatuses:      {http.MethodGet: naming(statuses)},
		pathServiceList:   {http.MethodGet: naming(listServices)},
		pathServiceNames:  {http.MethodGet: naming(serviceNames)},
		pathSubscribers:   {http.MethodGet: naming(subscriberList)},
		pathSelectorTypes: {http.MethodGet: naming(selectorTypes)},
		pathCheckers:      {http.MethodGet: naming(checkers)},
		pathHello:         {http.MethodGet: naming(hello)},
		pathCatInstances:  {http.MethodGet: naming(catalogInstances)},
		pathCatService:    {http.MethodGet: naming(catalogService)},
		pathCatServices:   {http.MethodGet: naming(catalogServices)},
	}
}

// routesOperator is what operators ask, under either of its names.
func routesOperator(path string) map[string]route {
	return map[string]route{
		path + "/switches":      {http.MethodGet: naming(switches), http.MethodPut: naming(setSwitch)},
		path + "/metrics":       {http.MethodGet: naming(metrics)},
		path + "/distro/client": {http.MethodGet: naming(responsible)},
		path + "/log":           {http.MethodPut: naming(logLevel)},
		path + "/push/state":    {http.MethodGet: naming(pushState)},
	}
}

// routesConsole is what the console and the core of Nacos 1.x and 2.x answer,
// and our own additions.
func routesConsole() map[string]route {
	return map[string]route{
		pathNamespaces: {
			http.MethodGet:    open(namespaces),
			http.MethodPost:   open(createNamespace),
			http.MethodPut:    open(updateNamespace),
			http.MethodDelete: open(deleteNamespace),
		},
		pathNodes:       {http.MethodGet: open(clusterNodes)},
		pathSelf:        {http.MethodGet: open(clusterSelf)},
		pathServerState: {http.MethodGet: open(serverState)},
		pathLiveness:    {http.MethodGet: open(alive)},
		pathReadiness:   {http.MethodGet: open(alive)},
		pathActuator:    {http.MethodGet: open(actuator)},
		pathLogin:       {http.MethodPost: open(logIn)},
		pathUsersLogin:  {http.MethodPost: open(logIn)},

		pathSidebeatInstances: {http.MethodGet: open(pageOfPersistent)},
		pathSidebeatInstance:  {http.MethodGet: naming(oneInstance)},
	}
}
