package agent

import (
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
)

// Metrics writes the agent's own metrics as Prometheus text: a fixed number of
// lines an app, labelled by service and declared port, formed when asked for,
// so that nothing is kept for what is gone.
func (g *Agent) Metrics(w io.Writer) {
	for _, a := range g.apps {
		a.metrics(w, time.Now())
	}
}

func (a *app) metrics(w io.Writer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := func(metric, more string) string {
		return fmt.Sprintf("sidebeat_agent_%s{service=%q,port=\"%d\"%s}", metric, a.service.String(), a.port, more)
	}
	gauge := func(metric string, value float64) { metrics.WriteGaugeFloat64(w, name(metric, ""), value) }
	l := a.life
	gauge("up", truth(a.panel.verdict == health.Up))
	gauge("registered", truth(l.holds == there))
	gauge("beat_interval_seconds", l.interval.Seconds())
	gauge("registry_failures", float64(l.failures))
	gauge("oldest_answer_age_seconds", a.panel.age(now).Seconds())
	metrics.WriteCounterUint64(w, name("verdict_changes_total", ""), a.changes)
	for kind, n := range a.answers {
		metrics.WriteCounterUint64(w, name("answers_total", fmt.Sprintf(",kind=%q", check.Kind(kind))), n)
	}
	for do := register; do <= read; do++ {
		c := l.counts[do]
		if c == nil {
			c = new(stepCount)
		}
		more := fmt.Sprintf(",call=%q", do)
		metrics.WriteCounterUint64(w, name("registry_calls_total", more), c.sent)
		metrics.WriteCounterUint64(w, name("registry_failed_calls_total", more), c.failed)
	}
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// age is that of the oldest last answer among the checks; 0 while one has
// never answered.
func (p *panel) age(now time.Time) time.Duration {
	var oldest time.Duration
	for _, c := range p.checks {
		if len(c.last) == 0 {
			return 0
		}
		oldest = max(oldest, now.Sub(c.last[len(c.last)-1].at))
	}
	return oldest
}
