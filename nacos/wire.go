// Package nacos speaks the HTTP wire of Nacos, both ends of it: a server over
// registry.Store and a client that satisfies what agent and prober ask of a
// registry.
//
// Files named wire*.go hold what both ends share: paths, parameter names,
// codes, JSON bodies. The truth about them are the recordings of real servers
// in testdata/golden.
package nacos

// Paths below the context path (DefaultContext).
const (
	pathInstance       = "/v1/ns/instance"
	pathInstanceList   = "/v1/ns/instance/list"
	pathBeat           = "/v1/ns/instance/beat"
	pathCluster        = "/v1/ns/cluster"
	pathHealth         = "/v1/ns/health"
	pathHealthInstance = "/v1/ns/health/instance"
	pathService        = "/v1/ns/service"
	pathServiceList    = "/v1/ns/service/list"
	pathCatInstances   = "/v1/ns/catalog/instances"
	pathCatService     = "/v1/ns/catalog/service"
	pathCatServices    = "/v1/ns/catalog/services"
	pathBatch          = "/v1/ns/instance/metadata/batch"
	pathStatuses       = "/v1/ns/instance/statuses"
	pathServiceNames   = "/v1/ns/service/names"
	pathSubscribers    = "/v1/ns/service/subscribers"
	pathSelectorTypes  = "/v1/ns/service/selector/types"
	pathCheckers       = "/v1/ns/health/checkers"
	pathHello          = "/v1/ns/health/server"
	pathOperator       = "/v1/ns/operator" // and what follows it
	pathOps            = "/v1/ns/ops"      // the same by another name
	pathNamespaces     = "/v1/console/namespaces"
	pathNodes          = "/v1/core/cluster/nodes"
	pathSelf           = "/v1/core/cluster/self"
	pathServerState    = "/v1/console/server/state"
	pathLiveness       = "/v1/console/health/liveness"
	pathReadiness      = "/v1/console/health/readiness"
	pathActuator       = "/actuator/health"
	pathLogin          = "/v1/auth/login"
	pathUsersLogin     = "/v1/auth/users/login"

	// Answered only by a Sidebeat registry.
	pathSidebeatInstances = "/sidebeat/v1/instances"
	pathSidebeatInstance  = "/sidebeat/v1/instance"
)

// DefaultContext is where a Nacos server keeps its API when nobody says
// otherwise (server.servlet.context-path).
const DefaultContext = "/nacos"

// Names of parameters, in the query or in the form body.
const (
	paramNamespace     = "namespaceId"
	paramGroup         = "groupName"
	paramService       = "serviceName"
	paramCluster       = "clusterName"
	paramClusterAlias  = "cluster"
	paramClusters      = "clusters"
	paramClientIP      = "clientIP"
	paramUDPPort       = "udpPort"
	paramApp           = "app"
	paramIP            = "ip"
	paramPort          = "port"
	paramWeight        = "weight"
	paramEnabled       = "enabled"
	paramEnabledAlias  = "enable"
	paramHealthy       = "healthy"
	paramHealthyAlias  = "valid"
	paramEnabledOnly   = "enabledOnly"
	paramHealthyOnly   = "healthyOnly"
	paramEphemeral     = "ephemeral"
	paramMetadata      = "metadata"
	paramBeat          = "beat"
	paramThreshold     = "protectThreshold"
	paramSelector      = "selector"
	paramCheckPort     = "checkPort"
	paramUseInstance   = "useInstancePort4Check"
	paramChecker       = "healthChecker"
	paramPageNo        = "pageNo"
	paramPageSize      = "pageSize"
	paramOnlyStatus    = "onlyStatus"
	paramWithInstances = "withInstances"
	paramServiceFilter = "serviceNameParam"
	paramGroupFilter   = "groupNameParam"
	paramHasIPCount    = "hasIpCount"
	paramUsername      = "username"
	paramPassword      = "password"
	paramToken         = "accessToken" // a header too
	paramExpr          = "expr"
	paramKey           = "key"
	paramKeyword       = "keyword"
	paramLogName       = "logName"
	paramLogLevel      = "logLevel"
	paramConsistency   = "consistencyType"
	paramInstances     = "instances"
	paramEntry         = "entry"
	paramValue         = "value"
	paramNamespaceID   = "namespace" // of the console, when it updates
	paramNamespaceShow = "namespaceShowName"
	paramNamespaceName = "namespaceName"
	paramNamespaceText = "namespaceDesc"
	paramNewNamespace  = "customNamespaceId"
	paramShow          = "show"

	paramNamespaceExists = "checkNamespaceIdExist"

	paramEncoding = "encoding"
	paramDebug    = "debug" // of switches: only until the process ends
	paramFrom     = "from"  // Sidebeat only: where a page starts
)

// Codes in the body of an answer to a beat
// (com.alibaba.nacos.api.naming.NamingResponseCode).
const (
	codeOK       = 10200
	codeNotFound = 20404 // unknown, and the beat did not say enough to register it
)

// bodyOK is the body of every write that succeeded.
const bodyOK = "ok"

// Keys of the server state that only a Sidebeat registry has.
const (
	stateVersion      = "version"
	stateSidebeat     = "sidebeat_version"
	stateProber       = "sidebeat_prober"
	stateProberInside = "inside"
	stateProberNone   = "none"
)

// groupSeparator stands between group and name of a service in one word.
const groupSeparator = "@@"
