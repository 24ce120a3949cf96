package registry

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// Metadata keys by which an instance sets its own periods, in milliseconds
// (com.alibaba.nacos.api.naming.PreservedMetadataKeys).
const (
	KeyBeatInterval  = "preserved.heart.beat.interval" // how often it means to beat
	KeyBeatTimeout   = "preserved.heart.beat.timeout"  // silence after which it is unhealthy
	KeyDeleteTimeout = "preserved.ip.delete.timeout"   // silence after which it is deleted
)

// Periods of an instance that sets none (com.alibaba.nacos.api.common.Constants).
const (
	DefaultBeatInterval  = 5 * time.Second
	DefaultBeatTimeout   = 15 * time.Second
	DefaultDeleteTimeout = 30 * time.Second
)

// KeyKeep is the metadata key of an instance or a service by which silence has
// no consequence before ClientTimeout (com.alibaba.nacos.naming.misc
// .UtilsAndCommons.ENABLE_CLIENT_BEAT, which does the reverse of what it says).
const KeyKeep = "enableClientBeat"

// ClientTimeout is the silence after which an instance goes that nothing else
// lets go (nacos.naming.client.expired.time).
const ClientTimeout = 180 * time.Second

// periods says what silence means for an instance; all in ms. Interval 0: the
// instance sets none, and the switch clientBeatInterval counts.
type periods struct{ interval, timeout, expire uint32 }

var defaultPeriods = periods{
	timeout: uint32(DefaultBeatTimeout.Milliseconds()),
	expire:  uint32(DefaultDeleteTimeout.Milliseconds()),
}

// due says when the next thing happens to an instance that was last heard of
// at the given time. A delete timeout below the beat timeout deletes a healthy
// one, as in Nacos.
func (p periods) due(last stamp, healthy bool) stamp {
	if healthy {
		return last + stamp(min(p.timeout, p.expire))
	}
	return last + stamp(p.expire)
}

// last undoes due.
func (p periods) last(due stamp, healthy bool) stamp { return due - p.due(0, healthy) }

// periodsOf reads the periods; the overlay wins over what was published. kept
// says that the service keeps its instances whatever they say themselves.
func periodsOf(overlay, published map[string]string, kept bool) periods {
	p := periods{
		interval: readPeriod(KeyBeatInterval, defaultPeriods.interval, overlay, published),
		timeout:  readPeriod(KeyBeatTimeout, defaultPeriods.timeout, overlay, published),
		expire:   readPeriod(KeyDeleteTimeout, defaultPeriods.expire, overlay, published),
	}
	keep, set := overlay[KeyKeep]
	if !set {
		keep = published[KeyKeep]
	}
	if kept || truth(keep) {
		p.timeout = uint32(ClientTimeout.Milliseconds())
		p.expire = p.timeout
	}
	return p
}

func readPeriod(name string, otherwise uint32, overlay, published map[string]string) uint32 {
	text, set := overlay[name]
	if !set {
		text, set = published[name]
	}
	ms, plain := plainNumber(text)
	if !set || !plain {
		return otherwise
	}
	// Nothing shorter than a sweep can be kept; 49 days are as good as for ever.
	return uint32(min(max(ms, uint64(sweepPeriod.Milliseconds())), math.MaxUint32))
}

// plainNumber reads digits only, as com.alibaba.nacos.api.naming.pojo.Instance
// does by the pattern ^\d+$. What does not fit is as large as can be.
func plainNumber(text string) (uint64, bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		n = math.MaxUint64
	}
	return n, true
}

// oddOnes remembers which odd periods were told.
type oddOnes struct {
	mu   sync.Mutex
	told map[oddPeriod]struct{}
}

type oddPeriod struct {
	service     Service
	name, value string
}

// oddOnesMax bounds the memory; after so many all may be told once more.
const oddOnesMax = 1024

// sayOdd tells about periods that are no plain numbers.
func (s *Store) sayOdd(k Key, metadata map[string]string) {
	if s.odd == nil {
		return
	}
	for _, name := range []string{KeyBeatInterval, KeyBeatTimeout, KeyDeleteTimeout} {
		value, set := metadata[name]
		if _, plain := plainNumber(value); set && !plain && s.oddOnes.first(oddPeriod{k.Service, name, value}) {
			s.odd(k, name, value)
		}
	}
}

func (o *oddOnes) first(p oddPeriod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, told := o.told[p]; told {
		return false
	}
	if o.told == nil || len(o.told) >= oddOnesMax {
		o.told = map[oddPeriod]struct{}{}
	}
	o.told[p] = struct{}{}
	return true
}
