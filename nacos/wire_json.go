package nacos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// decimal is a number as Java writes it: 1.0 where Go would write 1, "NaN" in
// quotes (Jackson). Reading takes either way of writing.
type decimal float64

// MarshalJSON writes the number as Double.toString does.
func (d decimal) MarshalJSON() ([]byte, error) {
	f := float64(d)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.AppendQuote(nil, javaSpecial(f)), nil
	}
	return []byte(javaDecimal(f)), nil
}

// UnmarshalJSON reads a number or a number in quotes.
func (d *decimal) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil {
		return fmt.Errorf("cannot read the number %.40q: %w", b, err)
	}
	*d = decimal(f)
	return nil
}

func javaSpecial(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case f > 0:
		return "Infinity"
	default:
		return "-Infinity"
	}
}

// javaDecimal writes f as java.lang.Double.toString: plain between 1e-3 and
// 1e7, else with an exponent, and always with a digit after the point.
func javaDecimal(f float64) string {
	abs := math.Abs(f)
	if abs == 0 || abs >= 1e-3 && abs < 1e7 {
		return withFraction(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent) // ours: FormatFloat wrote it
	return withFraction(mantissa) + "E" + strconv.Itoa(n)
}

func withFraction(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}

// beatAnswer is the body of an answer to a beat.
type beatAnswer struct {
	Interval int64 `json:"clientBeatInterval"` // ms until the next beat
	Code     int   `json:"code"`
	Light    bool  `json:"lightBeatEnabled"`
}

// beatBody is the parameter beat of a full beat, as the Java client writes it
// (com.alibaba.nacos.client.naming.beat.BeatInfo).
type beatBody struct {
	Cluster   string            `json:"cluster"`
	IP        string            `json:"ip"`
	Metadata  map[string]string `json:"metadata"`
	Port      uint16            `json:"port"`
	Scheduled bool              `json:"scheduled"`
	Service   string            `json:"serviceName"` // grouped: 2.x refreshes what this names
	Stopped   bool              `json:"stopped"`
	Weight    decimal           `json:"weight"`
}

// hostBody is an instance in a list
// (com.alibaba.nacos.api.naming.pojo.Instance).
type hostBody struct {
	ID        string            `json:"instanceId,omitempty"`
	IP        string            `json:"ip"`
	Port      uint16            `json:"port"`
	Weight    decimal           `json:"weight"`
	Healthy   bool              `json:"healthy"`
	Enabled   bool              `json:"enabled"`
	Ephemeral bool              `json:"ephemeral"`
	Cluster   string            `json:"clusterName"`
	Service   string            `json:"serviceName"`
	Metadata  map[string]string `json:"metadata"`
	Interval  int64             `json:"instanceHeartBeatInterval"`
	Timeout   int64             `json:"instanceHeartBeatTimeOut"`
	Delete    int64             `json:"ipDeleteTimeout"`
	Generator string            `json:"instanceIdGenerator,omitempty"`
}

// listBody is the answer of /instance/list
// (com.alibaba.nacos.api.naming.pojo.ServiceInfo, 2.x).
type listBody struct {
	Name        string     `json:"name"`
	Group       string     `json:"groupName"`
	Clusters    string     `json:"clusters"`
	CacheMillis int64      `json:"cacheMillis"`
	Hosts       []hostBody `json:"hosts"`
	LastRefTime int64      `json:"lastRefTime"`
	Checksum    string     `json:"checksum"`
	AllIPs      bool       `json:"allIPs"`
	Protected   bool       `json:"reachProtectionThreshold"`
	Valid       bool       `json:"valid"`
}

// detailBody is the answer of GET /instance: no enabled, no ephemeral.
type detailBody struct {
	Service  string            `json:"service"`
	IP       string            `json:"ip"`
	Port     uint16            `json:"port"`
	Cluster  string            `json:"clusterName"`
	Weight   decimal           `json:"weight"`
	Healthy  bool              `json:"healthy"`
	ID       string            `json:"instanceId,omitempty"`
	Metadata map[string]string `json:"metadata"`
}

// loginBody is the answer of a login.
type loginBody struct {
	Token       string `json:"accessToken"`
	TTL         int64  `json:"tokenTtl"` // seconds
	GlobalAdmin bool   `json:"globalAdmin"`
	Username    string `json:"username"`
}

// instanceJSON is an instance with everything, on the paths only a Sidebeat
// registry answers.
type instanceJSON struct {
	Namespace string            `json:"namespace"`
	Group     string            `json:"group"`
	Service   string            `json:"service"`
	Cluster   string            `json:"cluster"`
	IP        string            `json:"ip"`
	Port      uint16            `json:"port"`
	Ephemeral bool              `json:"ephemeral"`
	Weight    decimal           `json:"weight"`
	Enabled   bool              `json:"enabled"`
	Healthy   bool              `json:"healthy"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Revision  uint64            `json:"revision"`
}

// checkerJSON is the checker of a cluster on a page.
type checkerJSON struct {
	Namespace       string `json:"namespace"`
	Group           string `json:"group"`
	Service         string `json:"service"`
	Cluster         string `json:"cluster"`
	Type            string `json:"type"`
	Path            string `json:"path,omitempty"`
	Headers         string `json:"headers,omitempty"`
	Port            uint16 `json:"port,omitempty"`
	UseInstancePort bool   `json:"useInstancePort"`
}

// serviceJSON names a service.
type serviceJSON struct {
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	Service   string `json:"service"`
}

// pageJSON is a registry.Page.
type pageJSON struct {
	Instances []instanceJSON `json:"instances"`
	Checkers  []checkerJSON  `json:"checkers,omitempty"`
	Next      string         `json:"next,omitempty"`
	Failed    []serviceJSON  `json:"failed,omitempty"`
}

func toInstanceJSON(i registry.Instance) instanceJSON {
	return instanceJSON{
		Namespace: i.Namespace, Group: i.Group, Service: i.Name, Cluster: i.Cluster,
		IP: i.IP, Port: i.Port, Ephemeral: i.Ephemeral, Weight: decimal(i.Weight),
		Enabled: i.Enabled, Healthy: i.Healthy, Metadata: i.Metadata, Revision: i.Revision,
	}
}

func (j instanceJSON) instance() registry.Instance {
	service := registry.Service{Namespace: j.Namespace, Group: j.Group, Name: j.Service}
	key := registry.Key{Service: service, Cluster: j.Cluster, IP: j.IP, Port: j.Port, Ephemeral: j.Ephemeral}
	return registry.Instance{
		Key: key, Weight: float64(j.Weight), Enabled: j.Enabled, Healthy: j.Healthy,
		Metadata: j.Metadata, Revision: j.Revision,
	}
}

func toPageJSON(p registry.Page) pageJSON {
	out := pageJSON{Instances: make([]instanceJSON, 0, len(p.Instances)), Next: p.Next}
	for _, i := range p.Instances {
		out.Instances = append(out.Instances, toInstanceJSON(i))
	}
	for cluster, c := range p.Checkers {
		out.Checkers = append(out.Checkers, checkerJSON{
			Namespace: cluster.Namespace, Group: cluster.Group, Service: cluster.Service.Name, Cluster: cluster.Name,
			Type: c.Type, Path: c.Path, Headers: c.Headers, Port: c.Port, UseInstancePort: c.UseInstancePort,
		})
	}
	for _, s := range p.Failed {
		out.Failed = append(out.Failed, serviceJSON{Namespace: s.Namespace, Group: s.Group, Service: s.Name})
	}
	return out
}

func (j pageJSON) page() registry.Page {
	p := registry.Page{Next: j.Next}
	for _, i := range j.Instances {
		p.Instances = append(p.Instances, i.instance())
	}
	for _, c := range j.Checkers {
		service := registry.Service{Namespace: c.Namespace, Group: c.Group, Name: c.Service}
		if p.Checkers == nil {
			p.Checkers = map[registry.Cluster]registry.Checker{}
		}
		p.Checkers[registry.Cluster{Service: service, Name: c.Cluster}] = registry.Checker{
			Type: c.Type, Path: c.Path, Headers: c.Headers, Port: c.Port, UseInstancePort: c.UseInstancePort,
		}
	}
	for _, s := range j.Failed {
		p.Failed = append(p.Failed, registry.Service{Namespace: s.Namespace, Group: s.Group, Name: s.Service})
	}
	return p
}

// encode writes v as JSON the way Jackson does: no escapes for <, > and &.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot write JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
