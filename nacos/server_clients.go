package nacos

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/sidebeat/sidebeat/registry"
)

// clientID names whoever publishes an instance: one ip:port of a kind
// (com.alibaba.nacos.naming.core.v2.client.impl.IpPortBasedClient).
func clientID(k registry.Key) string {
	return k.IP + ":" + strconv.Itoa(int(k.Port)) + "#" + strconv.FormatBool(k.Ephemeral)
}

// everyInstance calls yield with each instance of the registry.
func (s *Server) everyInstance(yield func(registry.Instance)) {
	for _, namespace := range s.Store.Namespaces() {
		for _, service := range s.Store.Services(namespace, "") {
			for _, i := range s.Store.All(service) {
				yield(i)
			}
		}
	}
}

// clients lists who publishes.
func clients(_ context.Context, s *Server, _ *call) (any, error) {
	ids := []string{}
	s.everyInstance(func(i registry.Instance) { ids = append(ids, clientID(i.Key)) })
	slices.Sort(ids)
	return slices.Compact(ids), nil
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
}

func published(_ context.Context, s *Server, c *call) (any, error) {
	of, err := s.publishedBy(c)
	if err != nil {
		return nil, err
	}
	body := make([]publishedBody, len(of))
	for n, i := range of {
		body[n] = publishedBody{i.Namespace, i.Group, i.Name, placeBody{i.IP, i.Port, i.Cluster}}
	}
	return body, nil
}

// publishedBy gives the instances of the client that the call names.
func (s *Server) publishedBy(c *call) ([]registry.Instance, error) {
	id := c.form.text(paramClientID)
	var of []registry.Instance
	s.everyInstance(func(i registry.Instance) {
		if clientID(i.Key) == id {
			of = append(of, i)
		}
	})
	if of == nil {
		return nil, &coded{http.StatusNotFound, codeNoResource, "clientId [ " + id + " ] not exist"}
	}
	return of, nil
}

// publisherBody is a client of a service.
type publisherBody struct {
	Client string `json:"clientId"`
	IP     string `json:"ip"`
	Port   uint16 `json:"port"`
}

// publishers lists the clients of a service; with ip or port only those there.
func publishers(_ context.Context, s *Server, c *call) (any, error) {
	ip, port := c.form.text(paramIP), c.number(paramPort, 0)
	body := []publisherBody{}
	for _, i := range s.Store.All(c.service) {
		fits := i.Ephemeral == c.truth(true, paramEphemeral) && (ip == "" || ip == i.IP) &&
			(port == 0 || port == int(i.Port))
		if fits {
			body = append(body, publisherBody{clientID(i.Key), i.IP, i.Port})
		}
	}
	return body, nil
}
