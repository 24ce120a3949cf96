package nacos

import (
	"context"
	"fmt"
	"net"
	"time"
)

// helloBody is the answer of health/server.
type helloBody struct {
	Message string `json:"msg"`
}

func hello(_ context.Context, s *Server, c *call) (any, error) {
	n := s.Store.Counts().Services
	return helloBody{fmt.Sprintf("Hello! I am Nacos-Naming and healthy! total services: %d, local port:%s", n, port(c.ctx.LocalAddr()))}, nil
}

// responsibleBody is the answer of operator/distro/client.
type responsibleBody struct {
	Server string `json:"responsibleServer"`
}

// responsible names the node that looks after a client: this one, there is no
// other.
func responsible(_ context.Context, _ *Server, c *call) (any, error) {
	if err := c.needBySpring(paramIP, paramPort); err != nil {
		return nil, err
	}
	return responsibleBody{self(c.ctx.LocalAddr())}, nil
}

// self gives the address at which the server was reached, "" when the
// connection has none.
func self(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.String()
	}
	return ""
}

// logLevel answers operator/log: levels belong to the program's settings, so
// that nothing changes.
func logLevel(_ context.Context, _ *Server, c *call) (any, error) {
	return done{}, c.needBySpring(paramLogName, paramLogLevel)
}

// nodeBody is a member of the cluster (com.alibaba.nacos.core.cluster.Member);
// what belongs to a cluster of several is left out.
type nodeBody struct {
	IP        string      `json:"ip"`
	Port      int         `json:"port"`
	State     string      `json:"state"`
	Extended  nodeDetails `json:"extendInfo"`
	Address   string      `json:"address"`
	Failures  int         `json:"failAccessCnt"`
	Abilities abilities   `json:"abilities"`
	GRPC      bool        `json:"grpcReportEnabled"`
}

type nodeDetails struct {
	Refreshed int64  `json:"lastRefreshTime"` // ms since 1970
	Ready     bool   `json:"readyToUpgrade"`
	Version   string `json:"version"`
}

// abilities are what other nodes may ask of this one: nothing.
type abilities struct {
	Remote struct {
		Connection bool `json:"supportRemoteConnection"`
		GRPC       bool `json:"grpcReportEnabled"`
	} `json:"remoteAbility"`
	Config struct {
		Metrics bool `json:"supportRemoteMetrics"`
	} `json:"configAbility"`
	Naming struct {
		Raft bool `json:"supportJraft"`
	} `json:"namingAbility"`
}

func clusterNodes(_ context.Context, s *Server, c *call) (any, error) {
	node := s.node(c)
	if keyword := c.form.text(paramKeyword); keyword != "" && !contains(keyword)(node.Address) {
		return restResult([]nodeBody{}), nil
	}
	return restResult([]nodeBody{node}), nil
}

// clusterSelf is clusterNodes for this one.
func clusterSelf(_ context.Context, s *Server, c *call) (any, error) {
	return restResult(s.node(c)), nil
}

// node describes this server as the call reached it.
func (s *Server) node(c *call) nodeBody {
	node := nodeBody{State: s.status(), Extended: nodeDetails{time.Now().UnixMilli(), true, spoken}}
	if tcp, ok := c.ctx.LocalAddr().(*net.TCPAddr); ok {
		node.IP, node.Port, node.Address = tcp.IP.String(), tcp.Port, tcp.String()
	}
	return node
}
