package prober

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/sidebeat/sidebeat/netpolicy"
	"github.com/sidebeat/sidebeat/setting"
)

// Config is what a prober reads from SIDEBEAT_* variables.
type Config struct {
	Probe

	Nacos    setting.List   `split_words:"true" default:"http://127.0.0.1:8848" desc:"registries, [http(s)://]host[:port][/context], comma separated"`
	Username string         `split_words:"true" desc:"login at the registry"`
	Password setting.Secret `split_words:"true" desc:"login at the registry"`
	Admin    string         `split_words:"true" default:"127.0.0.1:9181" desc:"own HTTP: health, status, metrics, targets; off: none"`

	setting.RegistryTLS
	setting.Listeners
}

// Probe is the pace and the scope of probing: the settings that a registry
// with the prober inside has too.
type Probe struct {
	ProbeInterval time.Duration `split_words:"true" default:"20s" desc:"from one question to the next of a target, 1s to 24h"`
	ProbeTimeout  time.Duration `split_words:"true" default:"3.2s" desc:"how long an answer may take, at least 50ms and shorter than the interval; 3.2s leaves room for three lost SYN packets"`
	ProbeRise     int           `split_words:"true" default:"2" desc:"good answers in a row until a target is up, 1 to 255"`
	ProbeFall     int           `split_words:"true" default:"3" desc:"bad answers in a row until a target is down, 1 to 255"`

	ProbeInclude setting.List `split_words:"true" desc:"what is probed: patterns namespace/group/service with *, comma separated; unset: all"`
	ProbeExclude setting.List `split_words:"true" desc:"what is not: patterns as above; they win over those"`

	ProbeAllowLoopback bool           `split_words:"true" default:"false" desc:"may contact loopback addresses"`
	ProbeAllow         netpolicy.List `split_words:"true" desc:"the only addresses that may be contacted: CIDRs with or without ports, as 10.0.0.0/8 or [fd00::/8]:1-1023, comma separated; unset: all that are not special"`
	ProbeDeny          netpolicy.List `split_words:"true" desc:"addresses never contacted, written as above; they win over those"`

	ProbeInFlight  int `split_words:"true" default:"2000" desc:"questions at the same time, 1 to 100000; each needs a socket"`
	ProbeWriteRate int `split_words:"true" default:"200" desc:"health writes a second at most, 1 to 100000"`
}

// Policy says what may be contacted, never what is the program's own.
func (p *Probe) Policy(own func(netip.AddrPort) bool) netpolicy.Policy {
	policy := netpolicy.Prober(p.ProbeAllowLoopback)
	policy.Allow, policy.Deny, policy.Own = p.ProbeAllow, p.ProbeDeny, own
	return policy
}

// Bounds of the pace. A day is far beyond any sensible pace and keeps sums of
// durations small.
const (
	intervalLeast = time.Second
	intervalMost  = 24 * time.Hour
	timeoutLeast  = 50 * time.Millisecond
)

// Validate joins what is wrong with the settings of the prober's own.
func (c *Config) Validate() error {
	faults := []error{c.Probe.Validate(), setting.CheckListen("SIDEBEAT_ADMIN", c.Admin, "off")}
	if c.Username == "" && c.Password.String() != "" {
		faults = append(faults, errors.New("cannot use SIDEBEAT_PASSWORD: SIDEBEAT_USERNAME is missing"))
	}
	if c.Username != "" && c.Password.String() == "" {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_USERNAME=%q: SIDEBEAT_PASSWORD_FILE or SIDEBEAT_PASSWORD is missing", c.Username))
	}
	return errors.Join(faults...)
}

// Validate joins what is wrong with the pace and the scope.
func (p *Probe) Validate() error {
	var faults []error
	refuse := func(name string, value any, right string) {
		faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_PROBE_%s=%q: %s", name, fmt.Sprint(value), right))
	}
	between := func(name string, value, least, most int) {
		if value < least || value > most {
			refuse(name, value, fmt.Sprintf("give %d to %d", least, most))
		}
	}
	if p.ProbeInterval < intervalLeast || p.ProbeInterval > intervalMost {
		refuse("INTERVAL", p.ProbeInterval, fmt.Sprintf("give %v to %v", intervalLeast, intervalMost))
	}
	if p.ProbeTimeout < timeoutLeast || p.ProbeTimeout >= p.ProbeInterval {
		refuse("TIMEOUT", p.ProbeTimeout, fmt.Sprintf("give at least %v, and less than the interval of %v", timeoutLeast, p.ProbeInterval))
	}
	between("RISE", p.ProbeRise, 1, 255)
	between("FALL", p.ProbeFall, 1, 255)
	between("IN_FLIGHT", p.ProbeInFlight, 1, 100_000)
	between("WRITE_RATE", p.ProbeWriteRate, 1, 100_000)
	if _, err := parsePatterns(p.ProbeInclude); err != nil {
		refuse("INCLUDE", p.ProbeInclude, err.Error())
	}
	if _, err := parsePatterns(p.ProbeExclude); err != nil {
		refuse("EXCLUDE", p.ProbeExclude, err.Error())
	}
	return errors.Join(faults...)
}
