package nacos

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// Limits bound what one client, or all of them together, can take of a
// registry. What is refused for one of them is counted, see Refused. Zero
// stands for the default.
type Limits struct {
	Body      int `split_words:"true" default:"1048576" desc:"bytes of the body of a request, 16384 to 67108864; more: 413"`
	Header    int `split_words:"true" default:"16384" desc:"bytes of request line and headers, 4096 to 1048576; each connection holds as much; more: 431"`
	Parameter int `split_words:"true" default:"4096" desc:"bytes of a parameter, 512 to 1048576; more: 400; metadata and beats, which are JSON, may take 16 KiB, and a list of instances the whole body"`
	Metadata  int `split_words:"true" default:"1024" desc:"characters of the metadata of an instance or a service, names and values together, 1 to 65536; more: 400"`
	Name      int `split_words:"true" default:"512" desc:"characters of a name, 16 to 512; of a group 128 at most, of a namespace or a cluster 64; more: 400"`

	Instances int `split_words:"true" default:"20000" desc:"instances of a service, 1 to 10000000; one more: 400"`
	Services  int `split_words:"true" default:"200000" desc:"services of a namespace, 1 to 10000000; one more: 400"`

	Connections          int `split_words:"true" default:"20000" desc:"connections in all, 16 to 1000000; one more: 503"`
	ConnectionsOfAddress int `split_words:"true" default:"5000" desc:"connections from one address, or of one /64 of IPv6, 1 to 1000000; one more: 429"`
	Requests             int `split_words:"true" default:"1000" desc:"requests at the same time, 1 to 100000; one more: 503; beats and the lists of consumers do not count"`

	ReadTime  time.Duration `split_words:"true" default:"10s" desc:"how long a request may take to arrive, 1s to 5m; longer: 408"`
	WriteTime time.Duration `split_words:"true" default:"10s" desc:"how long an answer may take to be taken, 1s to 5m; longer: the connection ends"`
}

// DefaultLimits are the limits as the settings have them.
var DefaultLimits = Limits{
	Body: 1 << 20, Header: 16 << 10, Parameter: 4 << 10, Metadata: 1024, Name: maxService,
	Instances: 20_000, Services: 200_000, Connections: 20_000, ConnectionsOfAddress: 5_000, Requests: 1_000,
	ReadTime: 10 * time.Second, WriteTime: 10 * time.Second,
}

// Validate joins what is out of range.
func (l *Limits) Validate() error {
	var faults []error
	f := func(name string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_LIMIT_%s=%d: give %d to %d", name, value, least, most))
		}
	}
	f("BODY", l.Body, smallBody, 64<<20)
	f("HEADER", l.Header, 4<<10, 1<<20)
	f("PARAMETER", l.Parameter, 512, 1<<20)
	f("METADATA", l.Metadata, 1, 64<<10)
	f("NAME", l.Name, 16, maxService)
	f("INSTANCES", l.Instances, 1, 10_000_000)
	f("SERVICES", l.Services, 1, 10_000_000)
	f("CONNECTIONS", l.Connections, 16, 1_000_000)
	f("CONNECTIONS_OF_ADDRESS", l.ConnectionsOfAddress, 1, 1_000_000)
	f("REQUESTS", l.Requests, 1, 100_000)
	for name, d := range map[string]time.Duration{"READ_TIME": l.ReadTime, "WRITE_TIME": l.WriteTime} {
		if d < time.Second || d > 5*time.Minute {
			faults = append(faults, fmt.Errorf("cannot use SIDEBEAT_LIMIT_%s=%v: give 1s to 5m", name, d))
		}
	}
	return errors.Join(faults...)
}

// limit is one of Limits, for counting.
type limit uint8

const (
	limitNone limit = iota
	limitBody
	limitHeader
	limitParameter
	limitMetadata
	limitName
	limitInstances
	limitServices
	limitConnections
	limitConnectionsOfAddress
	limitRequests
	limitReadTime
	limitWriteTime
	limitCount
)

var limitNames = [limitCount]string{
	"", "body", "header", "parameter", "metadata", "name", "instances", "services",
	"connections", "connections_of_address", "requests", "read_time", "write_time",
}

// limitOf gives the limit that an error is about.
func limitOf(err error) limit {
	var f *fault
	var r *registry.Refusal
	switch {
	case errors.As(err, &f):
		return f.limit
	case !errors.As(err, &r):
	case r.Reason == registry.TooManyInstances:
		return limitInstances
	case r.Reason == registry.TooManyServices:
		return limitServices
	}
	return limitNone
}

// bounds are the limits of one server, with what they refused and what is
// taken of them.
type bounds struct {
	Limits
	refused     [limitCount]atomic.Uint64
	connections atomic.Int64
	requests    atomic.Int64
	held        atomic.Uint64 // answers, see atone
	bodies      bodies
	answers     answers
	places      *places
}

// noBounds hold for a call that no server handles.
var noBounds = &bounds{Limits: DefaultLimits}

func (b *bounds) refuse(l limit) {
	if l != limitNone {
		b.refused[l].Add(1)
	}
}

// orDefault fills in what is zero.
func (l Limits) orDefault() Limits {
	d := DefaultLimits
	return Limits{
		Body: cmp.Or(l.Body, d.Body), Header: cmp.Or(l.Header, d.Header), Parameter: cmp.Or(l.Parameter, d.Parameter),
		Metadata: cmp.Or(l.Metadata, d.Metadata), Name: cmp.Or(l.Name, d.Name),
		Instances: cmp.Or(l.Instances, d.Instances), Services: cmp.Or(l.Services, d.Services),
		Connections: cmp.Or(l.Connections, d.Connections), ConnectionsOfAddress: cmp.Or(l.ConnectionsOfAddress, d.ConnectionsOfAddress),
		Requests: cmp.Or(l.Requests, d.Requests), ReadTime: cmp.Or(l.ReadTime, d.ReadTime), WriteTime: cmp.Or(l.WriteTime, d.WriteTime),
	}
}

// Refused tells how often each limit refused something, by the name of its
// setting in small letters.
func (s *Server) Refused() map[string]uint64 {
	all := map[string]uint64{}
	for l := limitNone + 1; l < limitCount; l++ {
		all[limitNames[l]] = s.bounds.refused[l].Load()
	}
	return all
}

// Held tells how many answers were held back for a second, because their
// address got more than 100 errors a second.
func (s *Server) Held() uint64 { return s.bounds.held.Load() }

// Load tells how many connections are open that Bound let in, and how many
// requests are at work, without beats and lists of consumers.
func (s *Server) Load() (connections, requests int) {
	return int(s.bounds.connections.Load()), int(s.bounds.requests.Load())
}
