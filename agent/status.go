package agent

import (
	"context"
	"slices"
	"time"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

// Status is what /status shows.
type Status struct {
	Apps []AppStatus `json:"apps"`
}

// AppStatus is what is known of one app. Times are RFC 3339, durations as 5s.
type AppStatus struct {
	Service  string         `json:"service"`
	Instance string         `json:"instance"` // ip:port
	Verdict  health.Verdict `json:"verdict"`
	Since    time.Time      `json:"since"`
	Cause    string         `json:"cause,omitempty"` // the answer that made the verdict
	Phase    string         `json:"phase"`           // serving, draining, leaving, left
	Checks   []CheckStatus  `json:"checks"`
	Declared Declared       `json:"declared"`
	Registry RegistryStatus `json:"registry"`
	Problem  string         `json:"problem,omitempty"` // why there is no address yet
}

// CheckStatus is one check and its last answers, newest last.
type CheckStatus struct {
	Check   string         `json:"check"`
	Verdict health.Verdict `json:"verdict"`
	Answers []AnswerStatus `json:"answers"`
}

// AnswerStatus is one answer.
type AnswerStatus struct {
	At     time.Time  `json:"at"`
	Kind   check.Kind `json:"kind"`
	Reason string     `json:"reason"`
	Took   string     `json:"took"`
}

// Declared is what is registered while all is well.
type Declared struct {
	Namespace string            `json:"namespace"`
	Group     string            `json:"group"`
	Cluster   string            `json:"cluster"`
	Ephemeral bool              `json:"ephemeral"`
	Weight    float64           `json:"weight"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	OnDown    OnDown            `json:"on_down"`
	Drain     string            `json:"drain"`
}

// RegistryStatus is what the registry acknowledged and what it last said.
type RegistryStatus struct {
	Holds    string     `json:"holds"` // unknown, gone, there
	Healthy  bool       `json:"healthy"`
	Enabled  bool       `json:"enabled"`
	Interval string     `json:"beat_interval"`
	Said     string     `json:"said"` // "ok" or the error of the last call
	At       *time.Time `json:"at,omitempty"`
	Failures int        `json:"failures"`            // in a row
	Kept     string     `json:"kept,omitempty"`      // values that the operator changed
	ReadBack *Seen      `json:"read_back,omitempty"` // as last read from it
}

// Seen is the instance as the registry listed it.
type Seen struct {
	Healthy  bool              `json:"healthy"`
	Enabled  bool              `json:"enabled"`
	Weight   float64           `json:"weight"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Status gives a Status.
func (g *Agent) Status() any {
	s := Status{Apps: []AppStatus{}}
	for _, a := range g.apps {
		s.Apps = append(s.Apps, a.status())
	}
	return s
}

func (a *app) status() AppStatus {
	labels := a.labels()
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.life
	s := AppStatus{
		Service: a.service.String(), Instance: l.declared.Key.Address(),
		Verdict: a.panel.verdict, Since: a.since.Round(0), Cause: a.panel.cause,
		Phase: l.phase.String(), Problem: a.nowhere,
		Declared: Declared{a.service.Namespace, a.service.Group, a.cluster, a.ephemeral, a.weight, l.declared.Metadata, a.onDown, a.plan.drain.String()},
		Registry: l.said(),
	}
	for i, c := range a.panel.checks {
		s.Checks = append(s.Checks, CheckStatus{labels[i], c.Verdict, c.answers()})
	}
	return s
}

func (a *app) labels() []string {
	labels := make([]string, len(a.bells))
	for i := range labels {
		labels[i] = a.spec(i).Label()
	}
	return labels
}

func (c checkState) answers() []AnswerStatus {
	all := []AnswerStatus{}
	for _, x := range c.last {
		all = append(all, AnswerStatus{x.at.Round(0), x.Kind, x.Reason, x.Took.Round(time.Microsecond).String()})
	}
	return all
}

func (l *life) said() RegistryStatus {
	s := RegistryStatus{
		Holds: l.holds.String(), Interval: l.interval.String(), Failures: l.failures, Kept: l.edited,
		Healthy: l.holds == there && l.acked.healthy, Enabled: l.holds == there && l.acked.enabled,
	}
	if !l.lastAt.IsZero() {
		at := l.lastAt.Round(0)
		s.At, s.Said = &at, "ok"
	}
	if l.last != nil {
		s.Said = l.last.Error()
	}
	if l.seen.IP != "" {
		s.ReadBack = seen(l.seen)
	}
	return s
}

func seen(in registry.Instance) *Seen {
	return &Seen{in.Healthy, in.Enabled, in.Weight, in.Metadata}
}

// Asked is the outcome of asking all checks of an app once.
type Asked struct {
	Service string
	Verdict health.Verdict // of this one round, by CHECK_MODE
	Checks  []AskedCheck
}

// AskedCheck is one check and its answer.
type AskedCheck struct {
	Check string
	check.Answer
}

// AskOnce asks all checks of all apps once, each within its time, and
// registers nothing.
func (g *Agent) AskOnce(ctx context.Context) []Asked {
	var all []Asked
	for _, a := range g.apps {
		all = append(all, a.askOnce(ctx))
	}
	return all
}

func (a *app) askOnce(ctx context.Context) Asked {
	p := panel{need: a.need, checks: slices.Clone(a.panel.checks)}
	result := Asked{Service: a.service.String()}
	for i := range p.checks {
		p.checks[i].Rise, p.checks[i].Fall = 1, 1
		answer := a.askNow(ctx, i)
		p.observe(i, time.Time{}, answer, false)
		result.Checks = append(result.Checks, AskedCheck{a.spec(i).Label(), answer})
	}
	result.Verdict = p.verdict
	return result
}

func (a *app) askNow(ctx context.Context, i int) check.Answer {
	if a.host == "" && len(a.specs) == 0 {
		if err := a.locate(ctx); err != nil {
			return check.Answer{Reason: err.Error()}
		}
	}
	return a.question(ctx, i)
}
