package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

// Heart-beat metadata of Nacos and its defaults, in milliseconds
// (com.alibaba.nacos.api.naming.PreservedMetadataKeys, Constants).
const (
	metaBeat    = "preserved.heart.beat.interval"
	metaSilence = "preserved.heart.beat.timeout"
	metaDelete  = "preserved.ip.delete.timeout"

	defaultBeat    = 5 * time.Second
	defaultSilence = 15 * time.Second
	defaultDelete  = 30 * time.Second
)

const (
	// metaBy names who writes the health of a persistent instance; a prober
	// that finds it observes.
	metaBy = "sidebeat.by"
	byUs   = "agent"
)

const (
	weightMost   = 10000            // com.alibaba.nacos.api.common.Constants
	drainLongest = 10 * time.Minute // no orchestrator waits longer for a pod
	paceMost     = time.Hour
	metadataMost = 1024                   // characters of keys and values, Nacos 2.3 and later (ParamCheckRule)
	paceLeast    = 100 * time.Millisecond // more often is no check but a load
)

// DrainMost bounds every drain, whatever its settings.
const DrainMost = drainLongest + 2*callTime + parting

// plan is one app as it was declared, all texts parsed.
type plan struct {
	service   registry.Service
	cluster   string
	ephemeral bool
	host      string // "" until it is resolved
	port      uint16
	loopback  bool // may be a loopback address

	specs             []check.Spec // none: TCP on the registered address
	need              int          // so many must be well; 0: all
	interval, timeout time.Duration
	rise, fall        uint8
	grace             time.Duration

	onDown                        OnDown
	drain                         time.Duration
	weight                        float64
	metadata                      map[string]string
	beatEvery, silence, deleteAll time.Duration // what the metadata says, else the defaults of Nacos
}

// faults collects complaints about the words of one app.
type faults struct {
	name func(word string) string // how the reader wrote the word
	all  []error
}

func (f *faults) add(word string, value any, right string, more ...any) {
	f.all = append(f.all, fmt.Errorf("cannot use %s=%v: %s", f.name(word), show(value), fmt.Sprintf(right, more...)))
}

func show(value any) string {
	if s, ok := value.(string); ok {
		return strconv.Quote(s[:min(len(s), 200)])
	}
	return fmt.Sprint(value)
}

// parse turns the texts into a plan; name says how the reader wrote a word.
func (a App) parse(name func(word string) string) (plan, error) {
	f := &faults{name: name}
	p := plan{
		service:   registry.Service{Namespace: cmp.Or(a.Namespace, registry.DefaultNamespace), Group: cmp.Or(a.Group, registry.DefaultGroup), Name: a.Service},
		cluster:   cmp.Or(a.Cluster, registry.DefaultCluster),
		ephemeral: a.Ephemeral, loopback: a.AllowLoopback,
		interval: a.CheckInterval, timeout: a.CheckTimeout, grace: a.StartGrace,
		onDown: a.OnDown, drain: a.Drain, weight: a.Weight,
	}
	f.names(a)
	f.address(a, &p)
	f.pace(a, &p)
	f.checks(a, &p)
	f.policy(a)
	f.metadata(a, &p)
	return p, errors.Join(f.all...)
}

// What Nacos 2.5.1 accepts as names (ParamCheckRule); a service name has no
// blank, no Chinese character, no "@@", and does not start with "@".
var (
	namespacePattern = regexp.MustCompile(`^[\w-]{1,64}$`)
	groupPattern     = regexp.MustCompile(`^[a-zA-Z0-9-_:.]{1,128}$`)
	clusterPattern   = regexp.MustCompile(`^[0-9a-zA-Z-]{1,64}$`)
)

func (f *faults) names(a App) {
	if strings.TrimSpace(a.Service) == "" {
		f.add("service", a.Service, "give the name of the service")
	} else if why := badServiceName(a.Service); why != "" {
		f.add("service", a.Service, "%s", why)
	}
	if !namespacePattern.MatchString(cmp.Or(a.Namespace, registry.DefaultNamespace)) {
		f.add("namespace", a.Namespace, "give the id of the namespace: letters, digits, _ and -, at most 64")
	}
	if !groupPattern.MatchString(cmp.Or(a.Group, registry.DefaultGroup)) {
		f.add("group", a.Group, "use letters, digits and - _ : ., at most 128")
	}
	if !clusterPattern.MatchString(cmp.Or(a.Cluster, registry.DefaultCluster)) {
		f.add("cluster", a.Cluster, "use letters, digits and -, at most 64")
	}
}

func badServiceName(name string) string {
	switch {
	case len(name) > 512:
		return "a service name has at most 512 bytes"
	case strings.HasPrefix(name, "@") || strings.Contains(name, "@@"):
		return `a service name has no "@@" and no "@" in front; the group has a setting of its own`
	}
	for _, r := range name {
		if r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' {
			return fmt.Sprintf("the character %U (%q) is not allowed in a service name; use printable ASCII without blanks", r, r)
		}
	}
	return ""
}

func (f *faults) address(a App, p *plan) {
	if strings.TrimSpace(a.Address) == "" {
		f.add("address", a.Address, "give what is to be registered, as :8080 or 10.0.0.7:8080")
		return
	}
	host, port, err := splitAddress(a.Address, a.AllowLoopback)
	if err != nil {
		f.add("address", a.Address, "%v", err)
	}
	p.host, p.port = host, port
}

func (f *faults) pace(a App, p *plan) {
	f.between("check_interval", a.CheckInterval, paceLeast, paceMost)
	f.between("check_timeout", a.CheckTimeout, time.Millisecond, paceMost)
	f.between("start_grace", a.StartGrace, 0, 24*time.Hour)
	f.between("drain", a.Drain, 0, drainLongest)
	if a.CheckTimeout >= a.CheckInterval && a.CheckInterval >= paceLeast {
		f.add("check_timeout", a.CheckTimeout, "it must be shorter than %s=%v", f.name("check_interval"), a.CheckInterval)
	}
	p.rise, p.fall = f.row("check_rise", a.CheckRise), f.row("check_fall", a.CheckFall)
}

func (f *faults) between(word string, d, least, most time.Duration) {
	if d < least || d > most {
		f.add(word, d, "give %v to %v", least, most)
	}
}

func (f *faults) row(word string, n int) uint8 {
	if n < 1 || n > 255 {
		f.add(word, n, "give 1 to 255")
		return 1
	}
	return uint8(n)
}

func (f *faults) checks(a App, p *plan) {
	if strings.TrimSpace(string(a.Check)) != "" {
		specs, err := check.ParseSpecs(string(a.Check))
		if err != nil {
			f.all = append(f.all, fmt.Errorf("cannot use %s: %w", f.name("check"), err)) // the value may hold a secret
		}
		p.specs = specs
	}
	for _, s := range p.specs {
		if err := s.CheckFiles(); err != nil { // while somebody reads what is said (TwiN/gatus#541)
			f.add("check", s.Label(), "%v", err)
		}
		if s.Portless() {
			f.add("check", s.Label(), "a tcp check needs a port: tcp://host:port")
		}
		if s.Timeout() >= a.CheckInterval && s.Timeout() > 0 {
			f.add("check", s.Label(), "its timeout must be shorter than %s=%v", f.name("check_interval"), a.CheckInterval)
		}
	}
	count := max(len(p.specs), 1)
	switch n, err := strconv.Atoi(a.CheckMode); {
	case a.CheckMode == "all":
		p.need = count
	case a.CheckMode == "any":
		p.need = 1
	case err != nil || n < 1 || n > count:
		f.add("check_mode", a.CheckMode, "give all, any, or a number from 1 to %d (the number of checks)", count)
	default:
		p.need = n
	}
}

func (f *faults) policy(a App) {
	switch a.OnDown {
	case Unhealthy, Deregister, Disable, Silent:
	default:
		f.add("on_down", string(a.OnDown), "give unhealthy, deregister, disable or silent")
	}
	if !(a.Weight >= 0 && a.Weight <= weightMost) { // so that NaN is refused
		f.add("weight", a.Weight, "give 0 to %d", weightMost)
	}
}

func (f *faults) metadata(a App, p *plan) {
	m, err := parseMetadata(a.Metadata)
	if err != nil {
		f.all = append(f.all, fmt.Errorf("cannot use %s: %w", f.name("metadata"), err))
		return
	}
	length := 0
	for k, v := range m {
		length += len(k) + len(v)
	}
	if length > metadataMost {
		f.all = append(f.all, fmt.Errorf("cannot use %s: its keys and values have %d bytes, a registry takes at most %d", f.name("metadata"), length, metadataMost))
	}
	p.metadata = maps.Clone(m)
	p.beatEvery = f.beatTime(m, metaBeat, defaultBeat)
	p.silence = f.beatTime(m, metaSilence, defaultSilence)
	p.deleteAll = f.beatTime(m, metaDelete, defaultDelete)
	if p.beatEvery >= p.silence || p.silence > p.deleteAll {
		f.all = append(f.all, fmt.Errorf("cannot use %s: %s=%d, %s=%d, %s=%d (milliseconds): the interval must be below the timeout, and the timeout not above the delete timeout",
			f.name("metadata"), metaBeat, p.beatEvery.Milliseconds(), metaSilence, p.silence.Milliseconds(), metaDelete, p.deleteAll.Milliseconds()))
	}
}

// beatTime reads one of the three times; they are milliseconds, and whoever
// writes 15 means seconds (alibaba/nacos#1567).
func (f *faults) beatTime(m map[string]string, key string, otherwise time.Duration) time.Duration {
	text, ok := m[key]
	if !ok {
		return otherwise
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms < 1000 {
		f.all = append(f.all, fmt.Errorf("cannot use %s: %s=%q: give whole milliseconds, at least 1000", f.name("metadata"), key, text))
		return otherwise
	}
	return time.Duration(ms) * time.Millisecond
}

// instance is what is registered while all is well.
func (p plan) instance() registry.Instance {
	in := registry.Instance{
		Key:     registry.Key{Service: p.service, Cluster: p.cluster, IP: p.host, Port: p.port, Ephemeral: p.ephemeral},
		Weight:  p.weight,
		Enabled: true, Healthy: true,
		Metadata: maps.Clone(p.metadata),
	}
	if !p.ephemeral {
		if in.Metadata == nil {
			in.Metadata = map[string]string{}
		}
		in.Metadata[metaBy] = byUs
	}
	return in
}
