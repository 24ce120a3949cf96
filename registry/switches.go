package registry

import "context"

// Switches are what operators set for the whole registry: the switches of Nacos
// 2.5.1 (com.alibaba.nacos.naming.misc.SwitchDomain), with its defaults. Those
// that steer what Sidebeat does not have (masters, distro, the synchronisation
// between nodes) are kept and shown only. The value is a copy; its slices, maps
// and pointers are shared and must not be changed.
type Switches struct {
	Masters             []string // nil: never set
	PushCacheMillis     int64    // how long clients that are pushed to may keep a list
	ClientBeatInterval  int64    // ms, for instances that set no preserved.heart.beat.interval
	CacheMillis         int64    // how long other clients may keep a list
	DistroThreshold     float32
	HealthCheckEnabled  bool // entry check; false: silence has no consequence for 3 minutes, nothing is probed
	AutoChangeHealth    bool // autoChangeHealthCheckEnabled
	DistroEnabled       bool // distro
	EnableStandalone    bool
	PushEnabled         bool // false: nobody is told of changes; reads stay live
	CheckTimes          int  // entry healthCheckTimes: answers in a row that change a prober's mind
	HTTPHealth          HealthParams
	TCPHealth           HealthParams
	MySQLHealth         HealthParams
	ServerStatusMillis  int64 // serverStatusSynchronizationPeriodMillis
	ServiceStatusMillis int64 // serviceStatusSynchronizationPeriodMillis
	DisableAddIP        bool  // true: no new instances; those that are known may register again
	SendBeatOnly        bool
	LightBeatEnabled    bool           // what beats are answered
	LimitedURLs         map[string]int // path: status that is answered instead; limitedUrlMap
	DistroExpiredMillis int64          // distroServerExpiredMillis
	PushVersions        PushVersions
	OverriddenStatus    *string // overriddenServerStatus; nil: never set, "": set to null
	EphemeralByDefault  bool    // defaultInstanceEphemeral: kind of instances that name none
}

// HealthParams say how often a target is asked: at first each Min ms, then by
// how quickly it answers, at most each Max ms.
type HealthParams struct {
	Max, Min int32
	Factor   float32
}

// PushVersions are the least versions of clients that are pushed to.
type PushVersions struct{ Go, Java, Python, C, CSharp string }

var (
	httpParams  = HealthParams{5000, 500, 0.85}
	tcpParams   = HealthParams{5000, 1000, 0.75}
	mysqlParams = HealthParams{3000, 2000, 0.65}
)

func defaultSwitches() Switches {
	return Switches{
		PushCacheMillis: 10000, ClientBeatInterval: DefaultBeatInterval.Milliseconds(), CacheMillis: 3000,
		DistroThreshold: 0.7, HealthCheckEnabled: true, AutoChangeHealth: true, DistroEnabled: true,
		EnableStandalone: true, PushEnabled: true, CheckTimes: 3,
		HTTPHealth: httpParams, TCPHealth: tcpParams, MySQLHealth: mysqlParams,
		ServerStatusMillis: 2000, ServiceStatusMillis: 5000, LightBeatEnabled: true, DistroExpiredMillis: 10000,
		PushVersions:       PushVersions{Go: "0.1.0", Java: "0.1.0", Python: "0.4.3", C: "1.0.12", CSharp: "0.9.0"},
		EphemeralByDefault: true,
	}
}

// Switches gives the switches as they are now.
func (s *Store) Switches() Switches { return *s.switches.Load() }

// SetSwitch sets one switch for good. An unknown entry is no error and changes
// nothing; a value that Nacos refuses is a *Refusal with its text.
func (s *Store) SetSwitch(ctx context.Context, entry, value string) error {
	now := s.Switches()
	if err := now.set(entry, value); err != nil {
		return err
	}
	if !knownSwitch(entry) {
		return nil
	}
	return s.submit(ctx, command{op: opSwitch, name: entry, text: value})
}

// TrySwitch is SetSwitch for this process only, until it ends (debug=true of
// Nacos). A later SetSwitch of another entry leaves it.
func (s *Store) TrySwitch(entry, value string) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	return s.turn(entry, value)
}

// turn sets a switch in memory.
func (s *Store) turn(entry, value string) error {
	next := s.Switches()
	if err := next.set(entry, value); err != nil {
		return err
	}
	s.switches.Store(&next)
	return nil
}

func (s *Store) applySwitch(m command) error {
	if err := s.saved.set(m.name, m.text); err != nil {
		return err
	}
	return s.turn(m.name, m.text)
}
