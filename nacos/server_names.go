package nacos

import (
	"context"
	"regexp"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// treeBody is the answer of service/names: grouped names by namespace under a
// key that 2.x has by mistake, and dashboards read.
type treeBody struct {
	Names map[string][]string `json:"META-INF/services"`
	Count int                 `json:"count"`
}

// serviceNames gives the names of the services of a namespace, or of all when
// the call names none; expr chooses by a pattern that the name contains.
func serviceNames(ctx context.Context, s *Server, c *call) (any, error) {
	wanted := contains(c.form.text(paramExpr))
	spaces := []string{c.form.text(paramNamespace)}
	if spaces[0] == "" {
		spaces = s.Store.Namespaces()
	}
	body := treeBody{Names: map[string][]string{}}
	for _, space := range spaces {
		names := []string{}
		for _, service := range s.Store.Services(space, "") {
			if name := service.Grouped(); wanted(name) {
				names = append(names, name)
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		body.Names[space] = names
		body.Count += len(names)
	}
	return body, nil
}

// mostPattern bounds a pattern, in bytes: how long one name takes grows with it.
const mostPattern = 128

// contains tells whether a text has a part that the pattern fits; what is no
// pattern, or a longer one, is looked for as it stands.
func contains(pattern string) func(string) bool {
	if pattern == "" {
		return func(string) bool { return true }
	}
	if len(pattern) <= mostPattern {
		if re, err := regexp.Compile(pattern); err == nil {
			return re.MatchString
		}
	}
	return func(s string) bool { return strings.Contains(s, pattern) }
}

// restBody is the frame of the console's answers
// (com.alibaba.nacos.common.model.RestResult).
type restBody struct {
	Code    int     `json:"code"`
	Message *string `json:"message"`
	Data    any     `json:"data"`
}

func restResult(data any) restBody { return restBody{Code: 200, Data: data} }

// selectorTypes lists the selectors there are.
func selectorTypes(context.Context, *Server, *call) (any, error) {
	return restResult([]string{selectLabel, selectNone}), nil
}

// statusesBody is the answer of instance/statuses.
type statusesBody struct {
	IPs []string `json:"ips"` // ip:port_true or ip:port_false
}

// statuses tells the true health of all instances of the service that key
// names: namespace##group@@name.
func statuses(_ context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramKey); err != nil {
		return nil, err
	}
	service := registry.Service{Namespace: registry.DefaultNamespace}
	name := c.form.text(paramKey)
	if space, rest, found := strings.Cut(name, "##"); found {
		service.Namespace, name = space, rest
	}
	var grouped bool
	if service.Group, service.Name, grouped = strings.Cut(name, groupSeparator); !grouped || service.Group == "" || service.Name == "" {
		return nil, badRequest("Param 'serviceName' is illegal, " + badFormat)
	}
	body := statusesBody{IPs: []string{}}
	for _, i := range s.Store.All(service) {
		health := "_false"
		if i.Healthy {
			health = "_true"
		}
		body.IPs = append(body.IPs, i.Address()+health)
	}
	return body, nil
}

// checkersBody lists the kinds of checkers with what they hold when nothing is
// set.
type checkersBody struct {
	TCP   struct{}     `json:"TCP"`
	HTTP  httpChecker  `json:"HTTP"`
	MySQL mysqlChecker `json:"MYSQL"`
	None  struct{}     `json:"NONE"`
}

// mysqlChecker is what a MYSQL checker holds.
type mysqlChecker struct {
	User     *string `json:"user"`
	Password *string `json:"pwd"`
	Command  *string `json:"cmd"`
}

func checkers(context.Context, *Server, *call) (any, error) {
	return checkersBody{HTTP: httpChecker{Expected: 200}}, nil
}
