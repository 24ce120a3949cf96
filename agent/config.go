package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/setting"
)

// Config is what the agent reads from SIDEBEAT_* variables. The fields of App
// describe the only app, or are the defaults of those in the file Apps.
type Config struct {
	App

	Nacos    setting.List   `split_words:"true" default:"http://127.0.0.1:8848" desc:"registries, [http(s)://]host[:port][/context], comma separated"`
	Username string         `split_words:"true" desc:"login at the registry"`
	Password setting.Secret `split_words:"true" desc:"login at the registry"`
	Apps     string         `split_words:"true" desc:"path of a YAML or JSON file with several apps, in the words of these settings"`
	Admin    string         `split_words:"true" default:"127.0.0.1:9180" desc:"own HTTP: health, status, metrics, drain; off: none"`

	setting.RegistryTLS
	setting.Listeners

	CheckAllow netpolicy.List `split_words:"true" desc:"the only addresses that checks may contact: CIDRs with or without ports, as 127.0.0.0/8 or [fd00::/8]:1-1023, comma separated; unset: all that are not special"`
	CheckDeny  netpolicy.List `split_words:"true" desc:"addresses checks never contact, written as above; they win over those"`

	// PodIP is the variable POD_IP, which Kubernetes fills by the downward API.
	// It is no setting of ours, so whoever loads the settings fills it in.
	PodIP string `ignored:"true"`
}

// App is one app: where it is, how it is asked, what is said of it.
type App struct {
	Service   string `split_words:"true" desc:"service name; required without SIDEBEAT_APPS"`
	Address   string `split_words:"true" desc:"what is registered: :8080, 10.0.0.7:8080 or [2001:db8::7]:8080; without an IP POD_IP, else the address on the way to the registry; required without SIDEBEAT_APPS"`
	Namespace string `split_words:"true" default:"public" desc:"id of the namespace"`
	Group     string `split_words:"true" default:"DEFAULT_GROUP" desc:"group of the service"`
	Cluster   string `split_words:"true" default:"DEFAULT" desc:"cluster of the instance"`
	Ephemeral bool   `split_words:"true" default:"true" desc:"false: a persistent instance, left in place at shutdown"`

	Check         Checks        `split_words:"true" desc:"check URLs separated by blanks; unset: TCP on the registered address"`
	CheckMode     string        `split_words:"true" default:"all" desc:"all, any, or a number: at least so many checks must be well"`
	CheckInterval time.Duration `split_words:"true" default:"2s" desc:"from one question to the next"`
	CheckTimeout  time.Duration `split_words:"true" default:"1s" desc:"how long an answer may take; shorter than the interval"`
	CheckRise     int           `split_words:"true" default:"1" desc:"good answers in a row until it is up, 1 to 255"`
	CheckFall     int           `split_words:"true" default:"3" desc:"bad answers in a row until it is down, 1 to 255"`
	StartGrace    time.Duration `split_words:"true" default:"0s" desc:"bad answers before the first good one do not count, for at most this long after start"`

	OnDown        OnDown        `split_words:"true" default:"unhealthy" desc:"unhealthy, deregister, disable or silent: what is done when the app is down"`
	Drain         time.Duration `split_words:"true" default:"12s" desc:"how long the instance is disabled before it is deregistered; longer than the 10 s for which polling consumers trust their list"`
	Weight        float64       `split_words:"true" default:"1" desc:"share of the traffic, 0 to 10000"`
	Metadata      string        `split_words:"true" desc:"JSON object or k=v,k2=v2"`
	AllowLoopback bool          `split_words:"true" default:"false" desc:"may register a loopback address"`
}

// Checks are check URLs separated by blanks.
type Checks string

// String hides what may be a secret: header values, queries, environments.
func (c Checks) String() string {
	var shown []string
	for word := range strings.FieldsSeq(string(c)) {
		if s, err := check.ParseSpec(word); err == nil {
			word = s.Label()
		} else if end := strings.IndexAny(word, "?#"); end >= 0 {
			word = word[:end+1] + "***"
		}
		shown = append(shown, word)
	}
	return strings.Join(shown, " ")
}

// OnDown says what is done when the app is judged down (design section 5).
type OnDown string

// The values of SIDEBEAT_ON_DOWN.
const (
	Unhealthy  OnDown = "unhealthy"  // marked unhealthy at once, no beats: the registry deletes it after a while
	Deregister OnDown = "deregister" // taken out at once
	Disable    OnDown = "disable"    // hidden from consumers, beats go on
	Silent     OnDown = "silent"     // nothing is sent: the registry finds out by itself
)

// Policy says what checks may contact, never what is the agent's or the
// registry's own.
func (c *Config) Policy(own func(netip.AddrPort) bool) netpolicy.Policy {
	policy := netpolicy.Agent()
	policy.Allow, policy.Deny, policy.Own = c.CheckAllow, c.CheckDeny, own
	return policy
}

// Validate gives all complaints, each with the variable, its value and what
// would be right. It reads the file of apps.
func (c *Config) Validate() error {
	faults := []error{c.validateRegistries(), c.validatePodIP(), setting.CheckListen("SIDEBEAT_ADMIN", c.Admin, "off")}
	if c.Username == "" && c.Password.String() != "" {
		faults = append(faults, errors.New("cannot use SIDEBEAT_PASSWORD: SIDEBEAT_USERNAME is missing"))
	}
	if c.Username != "" && c.Password.String() == "" {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_USERNAME=%q: SIDEBEAT_PASSWORD_FILE or SIDEBEAT_PASSWORD is missing", c.Username))
	}
	_, err := c.declared()
	return errors.Join(append(faults, err)...)
}

func (c *Config) validatePodIP() error {
	if c.PodIP == "" {
		return nil
	}
	if _, err := usable(c.PodIP, c.AllowLoopback); err != nil {
		return fmt.Errorf("cannot use POD_IP=%q: %w", c.PodIP, err)
	}
	return nil
}

func (c *Config) validateRegistries() error {
	if len(c.Nacos) == 0 {
		return errors.New(`cannot use SIDEBEAT_NACOS="": give at least one registry, as http://nacos:8848`)
	}
	return nil
}

// declared gives the apps to look after, of the file or of the environment.
func (c *Config) declared() ([]plan, error) {
	if c.Apps != "" {
		return c.load()
	}
	one, err := c.App.parse(func(word string) string { return "SIDEBEAT_" + strings.ToUpper(word) })
	if err != nil {
		return nil, err
	}
	return []plan{one}, nil
}
