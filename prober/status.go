package prober

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
)

// Status is the prober at one moment, for GET /status.
type Status struct {
	Targets    int    `json:"targets"`
	Up         int    `json:"up"`
	Down       int    `json:"down"`
	NotAsked   int    `json:"not_asked"` // their checker is NONE, or they have no port
	Held       int    `json:"held"`      // down-writes that the brake holds
	State      string `json:"state"`     // why nothing is marked down now; "writing" when nothing stands in the way
	Stops      int64  `json:"stops"`     // how often the process itself was stopped
	ListedAt   string `json:"listed_at,omitempty"`
	ListedTook string `json:"listed_took,omitempty"`
}

// Target is one target of GET /targets.
type Target struct {
	Service      string         `json:"service"`
	Cluster      string         `json:"cluster"`
	Address      string         `json:"address"`
	Check        string         `json:"check"` // what is asked, secrets hidden
	Verdict      health.Verdict `json:"verdict"`
	Own          bool           `json:"own"`        // false: the verdict is what the registry listed
	Since        time.Time      `json:"since"`      // of the verdict
	Registered   string         `json:"registered"` // what the registry believes: healthy or unhealthy
	Write        string         `json:"write"`      // none, waiting, held, or what was written last
	WrittenAt    *time.Time     `json:"written_at,omitempty"`
	SignedByApp  bool           `json:"signed,omitempty"` // an agent owns its health: only observed
	Answers      []Said         `json:"answers"`          // the latest first
	Rise         uint8          `json:"rise"`
	Fall         uint8          `json:"fall"`
	NextQuestion *time.Time     `json:"next,omitempty"`
}

// Said is one answer of a target.
type Said struct {
	Kind   check.Kind `json:"kind"`
	Reason string     `json:"reason"`
	Took   string     `json:"took"`
	At     time.Time  `json:"at"`
}

// TargetPage is a part of the targets, in no particular order. A target that
// is there while all pages are read is on one of them.
type TargetPage struct {
	Total     int      `json:"total"`
	Observing bool     `json:"observing"` // this prober writes nothing: another one does
	State     string   `json:"state"`     // as in Status
	Targets   []Target `json:"targets"`
	Next      int      `json:"next,omitempty"` // where the next page starts; 0 after the last
}

// Bounds of a page of targets.
const (
	pageUsual   = 100
	pageLargest = 1000
)

// Targets gives at most limit targets from the place from on; 1 to 1000, and
// 100 when limit is not positive.
func (p *Prober) Targets(from, limit int) TargetPage {
	if limit <= 0 {
		limit = pageUsual
	}
	limit = min(limit, pageLargest)
	page := TargetPage{Targets: []Target{}}
	p.with(func(c *core, now time.Duration) {
		page.Total, page.Observing, page.State = c.table.n, c.observing, c.state()
		for i := int32(min(max(from, 0), int(c.table.size()))); i < c.table.size(); i++ {
			if len(page.Targets) == limit {
				page.Next = int(i)
				return
			}
			if row := c.table.at(i); row.live {
				page.Targets = append(page.Targets, p.describe(row))
			}
		}
	})
	return page
}

// at turns a time since the start into a date.
func (p *Prober) at(d time.Duration) time.Time { return p.wall.Add(d).UTC() }

func (p *Prober) describe(r *row) Target {
	key := r.key()
	t := Target{
		Service: key.Service.String(), Cluster: key.Cluster, Address: key.Address(), Check: r.asks().Label(),
		Verdict: r.opinion.Verdict, Own: r.decided, Since: p.at(r.since), Registered: "unhealthy", Write: r.writing(),
		SignedByApp: r.signed, Answers: []Said{}, Rise: r.opinion.Rise, Fall: r.opinion.Fall,
	}
	if r.believed {
		t.Registered = "healthy"
	}
	if r.wroteAt > 0 {
		at := p.at(r.wroteAt)
		t.WrittenAt = &at
	}
	if !r.idle && !r.asking {
		at := p.at(r.due)
		t.NextQuestion = &at
	}
	for n := range uint8(historyLength) {
		if s := r.history[(r.latest+historyLength-n)%historyLength]; s.real {
			took := time.Duration(s.took) * time.Microsecond
			t.Answers = append(t.Answers, Said{s.kind, s.reason.Value(), took.String(), p.at(s.at)})
		}
	}
	return t
}

func (r *row) writing() string {
	switch {
	case r.pending:
		return "waiting"
	case r.heldAt > 0:
		return "held"
	case r.wroteAt == 0:
		return "none"
	case r.wrote:
		return "healthy"
	}
	return "unhealthy"
}

// state says why nothing is marked down now.
func (c *core) state() string {
	switch {
	case c.resting:
		return "health checks are switched off"
	case c.asked && c.observing:
		return "observing: another prober writes"
	case !c.contact.made:
		return "waiting for the registry"
	case c.contact.lost:
		return "the registry cannot be read"
	case c.sight.blind():
		return "no answer from anywhere"
	case c.brake.until > 0 && c.braking:
		return "too many fail at once: held"
	case c.failures > 0:
		return "writes fail"
	}
	return "writing"
}

// Status gives the state of the whole, for GET /status.
func (p *Prober) Status() any {
	var s Status
	p.with(func(c *core, now time.Duration) {
		s = Status{
			Targets: c.table.n, Up: c.tally.up, Down: c.tally.down, NotAsked: c.tally.idle, Held: c.tally.held,
			State: c.state(), Stops: c.tally.stops,
		}
		if c.listed {
			s.ListedAt, s.ListedTook = p.at(c.listedAt).Format(time.RFC3339), c.listingTook.String()
		}
	})
	return s
}

// Healthy is nil before Run, and while the loops turn. The longest steps that are in order are
// a listing, a write, and a turn of the scheduler.
func (p *Prober) Healthy() error {
	now := p.now()
	late := func(last int64, most time.Duration, what string) error {
		if age := now - time.Duration(last); last > 0 && age > most {
			return fmt.Errorf("%s has not come by for %v", what, age.Round(time.Second))
		}
		return nil
	}
	return errors.Join(
		late(p.scheduled.Load(), 5*time.Second, "the scheduler"),
		late(p.listed.Load(), listMost+listEvery+10*time.Second, "the lister"),
		late(p.wrote.Load(), staleTries*2*writeMost+listEvery+10*time.Second, "the writer"),
	)
}

// Ready is nil once the instances of the registry were listed.
func (p *Prober) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.core.listed {
		return errors.New("the registry has not been listed yet")
	}
	return nil
}

// ServeTargets answers GET /targets?from=0&limit=100.
func (p *Prober) ServeTargets(ctx *fasthttp.RequestCtx) {
	args := ctx.QueryArgs()
	number := func(name string) (int, bool) {
		if !args.Has(name) {
			return 0, true
		}
		n, err := args.GetUint(name)
		return n, err == nil && n < math.MaxInt32
	}
	from, good := number("from")
	limit, also := number("limit")
	if !good || !also {
		ctx.Error("from and limit are whole numbers, as in /targets?from=0&limit=100", fasthttp.StatusBadRequest)
		return
	}
	body, err := json.MarshalIndent(p.Targets(from, limit), "", "  ")
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(body, '\n'))
}

// Metrics writes the prober's numbers as Prometheus text. How many there are
// does not depend on how many targets there are.
func (p *Prober) Metrics(w io.Writer) {
	var t tally
	var total int
	var lines []gauge
	p.with(func(c *core, now time.Duration) {
		t, total = c.tally, c.table.n
		c.tally.lagMost = 0
		lines = c.gauges()
	})
	out := func(name, labels string, value float64) {
		fmt.Fprintf(w, "sidebeat_prober_%s%s %v\n", name, labels, value)
	}
	out("targets", "", float64(total))
	for _, g := range lines {
		out(g.name, "", g.value)
	}
	for i, name := range resultNames {
		out("probes_total", fmt.Sprintf("{result=%q}", name), float64(t.answers[i]))
	}
	for i, name := range outcomeNames {
		out("writes_total", fmt.Sprintf("{result=%q}", name), float64(t.writes[i]))
	}
	out("start_lag_seconds_sum", "", t.lagSum.Seconds())
	out("start_lag_seconds_count", "", float64(t.lagCount))
	out("start_lag_seconds_max", "", t.lagMost.Seconds())
}

type gauge struct {
	name  string
	value float64
}

func (c *core) gauges() []gauge {
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	return []gauge{
		{"targets_up", float64(c.tally.up)},
		{"targets_down", float64(c.tally.down)},
		{"targets_not_asked", float64(c.tally.idle)},
		{"writes_held", float64(c.tally.held)},
		{"writes_waiting", float64(c.ups.len() + c.downs.len() + c.slow.len())},
		{"probes_in_flight", float64(c.tally.flying)},
		{"probes_waiting", float64(c.urgent.len() + c.ready.len())},
		{"missed_slots_total", float64(c.tally.missed)},
		{"own_stops_total", float64(c.tally.stops)},
		{"listings_total", float64(c.tally.listings)},
		{"listing_failures_total", float64(c.tally.unlisted)},
		{"listing_seconds", c.listingTook.Seconds()},
		{"brake_engaged", truth(c.braking)},
		{"blind", truth(c.sight.blind())},
		{"registry_reached", truth(c.contact.ok())},
		{"observing", truth(c.asked && c.observing)},
	}
}
