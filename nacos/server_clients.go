package nacos

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// A client, for Nacos, is whoever publishes from or listens at one ip:port; one
// that listens by UDP is of the ephemeral kind
// (com.alibaba.nacos.naming.core.v2.client.impl.IpPortBasedClient).

// clients lists the ids of all.
func clients(_ context.Context, s *Server, _ *call) (any, error) {
	ids := []string{}
	for _, one := range s.Store.Clients() {
		ids = append(ids, one.String())
	}
	for _, at := range s.Store.SubscribingClients() {
		ids = append(ids, listener(at).String())
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func listener(at netip.AddrPort) registry.Client {
	return registry.Client{IP: at.Addr().String(), Port: at.Port(), Ephemeral: true}
}

// parseClient reads an id.
func parseClient(id string) (c registry.Client, ok bool) {
	place, kind, found := strings.Cut(id, "#")
	colon := strings.LastIndexByte(place, ':')
	if !found || colon < 0 {
		return c, false
	}
	port, err := strconv.ParseUint(place[colon+1:], 10, 16)
	ephemeral, noKind := strconv.ParseBool(kind)
	c = registry.Client{IP: place[:colon], Port: uint16(port), Ephemeral: ephemeral}
	return c, err == nil && noKind == nil && c.String() == id
}

// known is what there is of the client that the call names.
type known struct {
	registry.Client
	published  []registry.Instance
	subscribed []registry.Subscriber
}

func (s *Server) client(c *call) (known, error) {
	id := c.form.text(paramClientID)
	var k known
	if client, ok := parseClient(id); ok {
		k = known{Client: client, published: s.Store.Published(client)}
		if address, err := netip.ParseAddr(client.IP); err == nil && client.Ephemeral {
			k.subscribed = s.Store.SubscribedBy(netip.AddrPortFrom(address, client.Port))
		}
	}
	if k.published == nil && k.subscribed == nil {
		return k, &coded{http.StatusNotFound, codeNoResource, "clientId [ " + id + " ] not exist"}
	}
	return k, nil
}

// clientBody is what v2 tells of a client, clientV3Body what v3 does
// (com.alibaba.nacos.api.naming.pojo.maintainer.ClientSummaryInfo): of one
// without a connection it leaves most out.
type clientBody struct {
	ID        string `json:"clientId"`
	Ephemeral bool   `json:"ephemeral"`
	Updated   int64  `json:"lastUpdatedTime"`
	Type      string `json:"clientType"`
	IP        string `json:"clientIp"`
	Port      string `json:"clientPort"`
}

type clientV3Body struct {
	ID          string  `json:"clientId"`
	Ephemeral   bool    `json:"ephemeral"`
	Updated     int64   `json:"lastUpdatedTime"`
	Type        string  `json:"clientType"`
	ConnectType *string `json:"connectType"`
	App         *string `json:"appName"`
	Version     *string `json:"version"`
	IP          *string `json:"clientIp"`
	Port        int     `json:"clientPort"`
}

// byAddress is the type of every client without a connection of its own.
const byAddress = "ipPort"

func client(_ context.Context, s *Server, c *call) (any, error) {
	k, err := s.client(c)
	if err != nil {
		return nil, err
	}
	return clientBody{k.String(), k.Ephemeral, time.Now().UnixMilli(), byAddress, k.IP, strconv.Itoa(int(k.Port))}, nil
}

func clientV3(_ context.Context, s *Server, c *call) (any, error) {
	k, err := s.client(c)
	if err != nil {
		return nil, err
	}
	return clientV3Body{ID: k.String(), Ephemeral: k.Ephemeral, Updated: time.Now().UnixMilli(), Type: byAddress}, nil
}

// publishedBody is one instance of a client.
type publishedBody struct {
	Namespace string    `json:"namespace"`
	Group     string    `json:"group"`
	Service   string    `json:"serviceName"`
	Instance  placeBody `json:"registeredInstance"`
}

type placeBody struct {
	IP      string `json:"ip"`
	Port    uint16 `json:"port"`
	Cluster string `json:"cluster"`
	Client  string `json:"clientId,omitempty"`
}

func published(_ context.Context, s *Server, c *call) (any, error) {
	k, err := s.client(c)
	if err != nil {
		return nil, err
	}
	body := []publishedBody{}
	for _, i := range k.published {
		body = append(body, publishedBody{i.Namespace, i.Group, i.Name, placeBody{i.IP, i.Port, i.Cluster, ""}})
	}
	return body, nil
}

// subscribedBody is one service that a client listens to.
type subscribedBody struct {
	Namespace  string         `json:"namespace"`
	Group      string         `json:"group"`
	Service    string         `json:"serviceName"`
	Subscriber subscriberInfo `json:"subscriberInfo"`
}

type subscriberInfo struct {
	App     string `json:"app"`
	Agent   string `json:"agent"`
	Address string `json:"addr"`
}

func subscriptions(_ context.Context, s *Server, c *call) (any, error) {
	k, err := s.client(c)
	if err != nil {
		return nil, err
	}
	body := []subscribedBody{}
	for _, one := range k.subscribed {
		body = append(body, subscribedBody{one.Namespace, one.Group, one.Name, subscriberInfo{one.App, one.Agent, one.Address.String()}})
	}
	return body, nil
}

// clientServiceV3 is one service of a client in v3
// (com.alibaba.nacos.api.naming.pojo.maintainer.ClientServiceInfo).
type clientServiceV3 struct {
	Namespace  string        `json:"namespaceId"`
	Group      string        `json:"groupName"`
	Service    string        `json:"serviceName"`
	Publisher  *publisherV3  `json:"publisherInfo"`
	Subscriber *listenerBody `json:"subscriberInfo"`
}

type publisherV3 struct {
	Client  *string `json:"clientId"`
	IP      string  `json:"ip"`
	Port    uint16  `json:"port"`
	Cluster string  `json:"clusterName"`
}

type listenerBody struct {
	Client  *string `json:"clientId"`
	App     string  `json:"appName"`
	Agent   string  `json:"agent"`
	Address string  `json:"address"`
}

func publishedV3(_ context.Context, s *Server, c *call) (any, error) {
	k, err := s.client(c)
	if err != nil {
		return nil, err
	}
	body := []clientServiceV3{}
	for _, i := range k.published {
		body = append(body, clientServiceV3{i.Namespace, i.Group, i.Name, &publisherV3{nil, i.IP, i.Port, i.Cluster}, nil})
	}
	return body, nil
}

func subscribedV3(_ context.Context, s *Server, c *call) (any, error) {
	k, err := s.client(c)
	if err != nil {
		return nil, err
	}
	body := []clientServiceV3{}
	for _, one := range k.subscribed {
		body = append(body, clientServiceV3{
			one.Namespace, one.Group, one.Name, nil, &listenerBody{nil, one.App, one.Agent, one.Address.String()},
		})
	}
	return body, nil
}

// fits tells whether a place is the one that the call asks for, by ip or port or
// both; any is when it asks for none.
func (c *call) fits(ip string, port uint16) bool {
	wantIP, wantPort := c.form.text(paramIP), c.number(paramPort, 0)
	return (wantIP == "" || wantIP == ip) && (wantPort == 0 || wantPort == int(port))
}

// publishers lists the clients of a service. Nacos 2.5.1 finds one only when ip
// and port are both given.
func publishers(_ context.Context, s *Server, c *call) (any, error) {
	body := []placeBody{}
	for _, i := range s.Store.All(c.service) {
		if i.Ephemeral == c.truth(true, paramEphemeral) && c.fits(i.IP, i.Port) {
			body = append(body, placeBody{i.IP, i.Port, i.Cluster, i.Client().String()})
		}
	}
	return body, nil
}

func publishersV3(_ context.Context, s *Server, c *call) (any, error) {
	body := []publisherV3{}
	for _, i := range s.Store.All(c.service) {
		if id := i.Client().String(); c.fits(i.IP, i.Port) {
			body = append(body, publisherV3{&id, i.IP, i.Port, i.Cluster})
		}
	}
	return body, nil
}

// hearerBody is a client that listens to a service.
type hearerBody struct {
	Client string `json:"clientId"`
	IP     string `json:"ip"`
	Port   uint16 `json:"port"`
}

func hearers(_ context.Context, s *Server, c *call) (any, error) {
	body := []hearerBody{}
	for _, one := range s.Store.Subscribers(c.service) {
		if ip, port := one.Address.Addr().String(), one.Address.Port(); c.fits(ip, port) {
			body = append(body, hearerBody{listener(one.Address).String(), ip, port})
		}
	}
	return body, nil
}

func hearersV3(_ context.Context, s *Server, c *call) (any, error) {
	body := []listenerBody{}
	for _, one := range s.Store.Subscribers(c.service) {
		if c.fits(one.Address.Addr().String(), one.Address.Port()) {
			id := listener(one.Address).String()
			body = append(body, listenerBody{&id, one.App, one.Agent, one.Address.String()})
		}
	}
	return body, nil
}
