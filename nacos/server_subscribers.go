package nacos

import (
	"context"

	"github.com/sidebeat/sidebeat/registry"
)

// subscribersBody is the answer of service/subscribers.
type subscribersBody struct {
	Subscribers []subscriberBody `json:"subscribers"`
	Count       int              `json:"count"`
}

// subscriberBody is one who is told of changes
// (com.alibaba.nacos.naming.pojo.Subscriber).
type subscriberBody struct {
	Address   string `json:"addrStr"`
	Agent     string `json:"agent"`
	App       string `json:"app"`
	IP        string `json:"ip"`
	Port      uint16 `json:"port"`
	Namespace string `json:"namespaceId"`
	Service   string `json:"serviceName"`
	Cluster   string `json:"cluster"`
}

// How many subscribers a page has when nobody says.
const (
	firstPage       = "1"
	subscribersPage = "1000"
)

// subscriberList tells who is told of the services whose names contain what is
// asked for.
func subscriberList(_ context.Context, s *Server, c *call) (any, error) {
	if err := c.need(paramService); err != nil {
		return nil, err
	}
	all := s.Store.FindSubscribers(c.service)
	from, to := c.lenientPaging(len(all), firstPage, subscribersPage)
	body := subscribersBody{Subscribers: []subscriberBody{}, Count: len(all)}
	for _, one := range all[from:to] {
		body.Subscribers = append(body.Subscribers, toSubscriber(one))
	}
	return body, nil
}

func toSubscriber(s registry.Subscriber) subscriberBody {
	return subscriberBody{
		Address: s.Address.String(), Agent: s.Agent, App: s.App, IP: s.Address.Addr().String(), Port: s.Address.Port(),
		Namespace: s.Namespace, Service: s.Grouped(), Cluster: s.Clusters,
	}
}
