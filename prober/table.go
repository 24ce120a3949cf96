package prober

import (
	"hash/maphash"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

// historyLength is how many answers of each target are kept to be shown.
const historyLength = 4

// said is one answer as it is remembered.
type said struct {
	reason unique.Handle[string]
	at     time.Duration // when it came
	took   uint32        // microseconds
	kind   check.Kind
	real   bool // false: no answer here yet
}

// row is what is known of one target. Times are counted from the start of the
// process. What many share (service, cluster, question, reasons) is kept once.
type row struct {
	service  unique.Handle[registry.Service]
	cluster  unique.Handle[string]
	ip       string
	question unique.Handle[check.Spec]

	hash       uint64        // of the key: gives the phase
	due        time.Duration // when it is asked next
	since      time.Duration // of the verdict
	asked      time.Duration // when the question of the latest answer that counts was asked
	heldAt     time.Duration // since when the brake holds its down-write; 0: not
	believedAt time.Duration // since when the registry believes what it does
	wroteAt    time.Duration // our latest write; 0: none
	wishes     uint64        // hash of what the instance wants: read again only when it changes
	history    [historyLength]said

	next       int32 // row with the same index hash, -1: none
	generation uint32
	epoch      uint32 // of the latest answer: doubts of an older one are void
	sweep      uint32 // the latest listing that held it
	mark       uint32 // see sight
	failed     stamp  // see brake
	port       uint16
	opinion    health.Hysteresis

	live     bool
	idle     bool // nothing is asked of it
	asking   bool // a question is in flight or stands in the ready queue
	believed bool // what the registry believes: healthy
	decided  bool // the verdict is our own, not only what was listed
	pending  bool // stands in a write queue
	signed   bool // an agent owns its health
	took     bool // taken over from that agent
	wrote    bool // what the latest write said
	refused  bool // the registry refused the latest write, which was said
	latest   uint8
}

func (r *row) key() registry.Key {
	return registry.Key{Service: r.service.Value(), Cluster: r.cluster.Value(), IP: r.ip, Port: r.port}
}

// asks gives the question with the target's own address in it.
func (r *row) asks() check.Spec { return r.question.Value().At(r.ip, r.port) }

// remember keeps an answer in the place of the oldest. Its own address is left
// out of the reason, so that targets share the text.
func (r *row) remember(a check.Answer, at time.Duration) {
	reason := a.Reason
	if strings.HasSuffix(reason, ")") {
		reason = strings.TrimSuffix(reason, " ("+r.key().Address()+")")
	}
	r.latest = (r.latest + 1) % historyLength
	r.history[r.latest] = said{
		reason: unique.Make(reason), at: at, took: uint32(min(a.Took.Microseconds(), 1<<32-1)), kind: a.Kind, real: true,
	}
}

// wishes hashes what wantOf reads, so that a listing without news parses nothing.
func (t *table) wishes(in registry.Instance, checker registry.Checker, has bool) uint64 {
	m := in.Metadata
	return maphash.Comparable(t.seed, wish{m[metaCheck], m[metaRise], m[metaFall], m[metaBy], checker, has})
}

type wish struct {
	check, rise, fall, by string
	checker               registry.Checker
	has                   bool
}

// chunk is how many rows are allocated at once: growing copies nothing.
const chunk = 1024

// table holds the rows and finds them by key. Its index holds hashes and
// numbers only, so that there is nothing for the garbage collector to follow.
type table struct {
	chunks [][]row
	free   []int32
	index  map[uint64]int32
	seed   maphash.Seed
	n      int
}

func newTable() table {
	return table{index: map[uint64]int32{}, seed: maphash.MakeSeed()}
}

func (t *table) at(i int32) *row { return &t.chunks[i/chunk][i%chunk] }

// size is the number of rows, free ones included.
func (t *table) size() int32 { return int32(len(t.chunks) * chunk) }

// get gives the row that a ref was made for, or nil when it is gone.
func (t *table) get(r ref) *row {
	if row := t.at(r.row); row.live && row.generation == r.generation {
		return row
	}
	return nil
}

func (t *table) ref(i int32) ref { return ref{i, t.at(i).generation} }

// find gives the number of the row with this key, or -1.
func (t *table) find(key registry.Key) int32 {
	i, found := t.index[maphash.Comparable(t.seed, key)]
	if !found {
		return -1
	}
	for ; i >= 0; i = t.at(i).next {
		if t.at(i).key() == key {
			return i
		}
	}
	return -1
}

// add makes a row for a key that has none.
func (t *table) add(key registry.Key) int32 {
	if len(t.free) == 0 {
		first := t.size()
		t.chunks = append(t.chunks, make([]row, chunk))
		for i := int32(chunk - 1); i >= 0; i-- {
			t.free = append(t.free, first+i)
		}
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	h := maphash.Comparable(t.seed, key)
	next, found := t.index[h]
	if !found {
		next = -1
	}
	t.index[h] = i
	*t.at(i) = row{
		service: unique.Make(key.Service), cluster: unique.Make(key.Cluster), ip: key.IP, port: key.Port,
		hash: hashOf(key.Namespace, key.Group, key.Name, key.Cluster, key.IP, strconv.Itoa(int(key.Port))),
		next: next, generation: t.at(i).generation + 1, live: true,
	}
	t.n++
	return i
}

// remove frees a row; refs to it find nothing any more.
func (t *table) remove(i int32) {
	gone := t.at(i)
	h := maphash.Comparable(t.seed, gone.key())
	switch first := t.index[h]; {
	case first == i && gone.next < 0:
		delete(t.index, h)
	case first == i:
		t.index[h] = gone.next
	default:
		for t.at(first).next != i {
			first = t.at(first).next
		}
		t.at(first).next = gone.next
	}
	*gone = row{generation: gone.generation}
	t.free = append(t.free, i)
	t.n--
}
