package nacos

// Names of parameters that only v2 and v3 have.
const (
	paramHeartBeat   = "heartBeat"
	paramIgnoreEmpty = "ignoreEmptyService"
	paramClientID    = "clientId"
)
