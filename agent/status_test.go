package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidebeat/sidebeat/check"
)

func TestStatusTellsAllOfAnApp(t *testing.T) {
	c := usual()
	c.Metadata, c.Check = "version=2", "http://:8080/health?token=hunter2"
	play(t, c, func(s *site) {
		s.wait(20 * time.Second)
		s.app.say(check.Sick, "status 503")
		s.wait(10 * time.Second)
		s.link.set(func(l *link) { l.fault = errAway })
		s.app.say(check.Well, "200 OK")
		s.wait(20 * time.Second)
		raw, err := json.Marshal(s.agent.Status())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "hunter2") {
			t.Errorf("the status shows a secret: %s", raw)
		}
		a := s.agent.Status().(Status).Apps[0]
		switch {
		case a.Service != "DEFAULT_GROUP@@orders" || a.Instance != "10.0.0.7:8080" || a.Verdict.String() != "up" || a.Cause != "200 OK":
			t.Errorf("got %+v", a)
		case !a.Since.After(s.start.Add(29*time.Second)) || len(a.Checks) != 1 || len(a.Checks[0].Answers) != lastAnswers:
			t.Errorf("got %+v", a)
		case a.Checks[0].Answers[lastAnswers-1].Reason != "200 OK" || a.Checks[0].Answers[lastAnswers-1].Took != "1ms":
			t.Errorf("got %+v", a.Checks)
		case a.Declared.Metadata["version"] != "2" || a.Declared.Drain != "12s" || a.Declared.OnDown != Unhealthy:
			t.Errorf("got %+v", a.Declared)
		case a.Registry.Said != errAway.Error() || a.Registry.Failures == 0 || a.Registry.ReadBack == nil || a.Registry.ReadBack.Healthy:
			t.Errorf("got %+v", a.Registry)
		}
		s.link.set(func(l *link) { l.fault = nil })
	})
}

var (
	metricLine = regexp.MustCompile(`^sidebeat_agent_[a-z_]+\{service="[^"]+",port="\d+"(,[a-z]+="[a-z]+")?\} [0-9.e+-]+$`)
	metricUp   = regexp.MustCompile(`(?m)^sidebeat_agent_up\{.*\} 1$`)
)

func TestMetricsAreWellFormedAndBounded(t *testing.T) {
	play(t, usual(), func(s *site) {
		count := func() int {
			var b bytes.Buffer
			s.agent.Metrics(&b)
			lines := strings.Split(strings.TrimSpace(b.String()), "\n")
			for _, line := range lines {
				if !metricLine.MatchString(line) {
					t.Errorf("malformed: %s", line)
				}
			}
			if up := metricUp.MatchString(b.String()); up != (s.agent.Ready() == nil) {
				t.Errorf("up is %v:\n%s", up, b.String())
			}
			return len(lines)
		}
		s.wait(10 * time.Second)
		before := count()
		s.app.say(check.Sick, "refused")
		s.link.set(func(l *link) { l.fault = errAway })
		s.wait(10 * time.Minute)
		if after := count(); after != before {
			t.Errorf("%d lines at first and %d later", before, after)
		}
		s.link.set(func(l *link) { l.fault = nil })
		s.wait(period)
	})
}
