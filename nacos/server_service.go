package nacos

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// serviceConfig reads what create and update have in common.
func (c *call) serviceConfig(threshold float64) (registry.ServiceConfig, error) {
	selector := c.form.text(paramSelector)
	if _, err := readSelector(selector); err != nil {
		return registry.ServiceConfig{}, err
	}
	return registry.ServiceConfig{
		Service: c.service, ProtectThreshold: threshold, Metadata: c.metadata, Selector: selector,
	}, nil
}

// needBySpring is need with the words of Spring, which looks at some
// parameters in place of Nacos.
func (c *call) needBySpring(names ...string) error {
	for _, name := range names {
		if !c.form.given(name) {
			return missing(name)
		}
	}
	return nil
}

func createService(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramService); err != nil {
		return nil, err
	}
	threshold, err := c.threshold()
	if err != nil {
		return nil, err
	}
	config, err := c.serviceConfig(threshold)
	if err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.CreateService(ctx, config)
}

// threshold reads protectThreshold, 0 when there is none, with the words of
// Spring when it is no number.
func (c *call) threshold() (float64, error) {
	text := c.form.text(paramThreshold)
	if text == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(text, 32)
	if err != nil {
		cause := `For input string: "` + text + `"`
		return 0, &fault{status: http.StatusInternalServerError, text: "caused: Failed to convert value of type " +
			"'java.lang.String' to required type 'float'; nested exception is java.lang.NumberFormatException: " +
			cause + ";caused: " + cause + ";"}
	}
	return shortest(f), nil
}

// shortest gives the double that is written like the float f, so that 0.3
// reads back as 0.3.
func shortest(f float64) float64 {
	d, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64) // ours: it parses
	return d
}

func updateService(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.need(paramService, paramThreshold); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(c.form.text(paramThreshold), 32)
	if err != nil {
		f = 0 // NumberUtils.toFloat
	}
	config, err := c.serviceConfig(shortest(f))
	if err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.UpdateService(ctx, config)
}

func deleteService(ctx context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramService); err != nil {
		return nil, err
	}
	if err := s.durable(); err != nil {
		return nil, err
	}
	return done{}, s.Store.DeleteService(ctx, c.service)
}

// serviceBody is the answer of GET /service.
type serviceBody struct {
	Namespace string            `json:"namespaceId"`
	Group     string            `json:"groupName"`
	Name      string            `json:"name"`
	Threshold decimal           `json:"protectThreshold"`
	Metadata  map[string]string `json:"metadata"`
	Selector  selectorBody      `json:"selector"`
	Clusters  []clusterBody     `json:"clusters"`
}

type clusterBody struct {
	Name     string            `json:"name"`
	Checker  checkerBody       `json:"healthChecker"`
	Metadata map[string]string `json:"metadata"`
}

func getService(_ context.Context, s *Server, c *call) (any, error) {
	if err := c.needBySpring(paramService); err != nil {
		return nil, err
	}
	info, err := s.Store.Describe(c.service)
	if err != nil {
		text := "service not found, namespace: " + c.service.Namespace + ", serviceName: " + c.service.Grouped()
		return nil, badRequest(text)
	}
	body := serviceBody{
		Namespace: info.Namespace, Group: info.Group, Name: info.Name, Threshold: decimal(info.ProtectThreshold),
		Metadata: notNil(info.Metadata), Selector: shownSelector(info.Selector), Clusters: []clusterBody{},
	}
	for _, cluster := range info.Clusters {
		body.Clusters = append(body.Clusters, clusterBody{
			Name: cluster.Name, Checker: toChecker(cluster.Checker), Metadata: notNil(cluster.Metadata),
		})
	}
	return body, nil
}

// namesBody is the answer of /service/list.
type namesBody struct {
	Count int      `json:"count"`
	Names []string `json:"doms"`
}

func listServices(_ context.Context, s *Server, c *call) (any, error) {
	all := s.Store.Services(c.service.Namespace, c.service.Group)
	if err := c.need(paramPageNo, paramPageSize); err != nil {
		return nil, err
	}
	from, to := c.lenientPaging(len(all), "", "")
	body := namesBody{Count: len(all), Names: []string{}}
	for _, service := range all[from:to] {
		body.Names = append(body.Names, service.Name)
	}
	return body, nil
}

// selectorBody is a selector as it is shown
// (com.alibaba.nacos.api.selector.AbstractSelector).
type selectorBody struct {
	Type       string `json:"type"`
	Context    string `json:"contextType"`
	Expression string `json:"expression,omitempty"`
}

// Types of selectors (com.alibaba.nacos.api.selector.SelectorType).
const (
	selectNone  = "none"
	selectLabel = "label"
)

var noSelector = selectorBody{Type: selectNone, Context: "NONE"}

// readSelector reads a selector; blank text is none. 2.5.1 answers status 101
// to broken JSON, which no client understands.
func readSelector(text string) (selectorBody, error) {
	if text == "" {
		return noSelector, nil
	}
	var given struct{ Type, Expression string }
	err := json.Unmarshal([]byte(text), &given)
	if err != nil { // encoded twice, as clients of 1.x do
		if plain, undone := url.QueryUnescape(text); undone == nil {
			err = json.Unmarshal([]byte(plain), &given)
		}
	}
	if err != nil {
		return selectorBody{}, badRequest("cannot read the selector: " + err.Error())
	}
	switch given.Type {
	case selectNone:
		return noSelector, nil
	case selectLabel:
		if !isLabels(given.Expression) {
			return selectorBody{}, &fault{status: http.StatusInternalServerError, text: "Selector parses failed: parse expression failed!"}
		}
		return selectorBody{Type: selectLabel, Context: "CMDB", Expression: given.Expression}, nil
	}
	return selectorBody{}, badRequest("not match any type of selector!")
}

// labels is one term of a label selector, or several
// (com.alibaba.nacos.naming.selector.interpreter.ExpressionInterpreter).
var labels = regexp.MustCompile(`^CONSUMER\.label\.([^=&]+)=PROVIDER\.label\.([^=&]+)(?:&|$)`)

// isLabels tells whether an expression compares labels with themselves, as all
// do. What such a selector selects is up to a plugin of Nacos that knows the
// labels; without one, as here, it selects everybody.
func isLabels(expression string) bool {
	rest := strings.Join(strings.Fields(expression), "")
	for rest != "" {
		term := labels.FindStringSubmatch(rest)
		if term == nil || term[1] != term[2] {
			return false
		}
		rest = rest[len(term[0]):]
	}
	return true
}

// shownSelector is readSelector of what was read before.
func shownSelector(text string) selectorBody {
	b, _ := readSelector(text) // was refused when it came, if it is bad
	return b
}
