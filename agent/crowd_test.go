package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
	"github.com/sidebeat/sidebeat/run"
)

// A thousand agents are started in the same instant, as by a rollout. They all
// come in at once, but after the first minute no second has more than three times its
// share of calls, also after the registry was away (google/cloudprober#212).
// When it comes back empty each beats, is told so, registers and beats again.
func TestAThousandAgentsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		s := open(t, usual(), func(*site) {})
		log := logrus.New()
		log.SetOutput(s.log)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, n)
		for i := range n - 1 {
			c := usual()
			c.Address = fmt.Sprintf("10.1.%d.%d:8080", i/200, 1+i%200)
			g, err := New(c, s.link, s.app, log)
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- g.Run(ctx) }()
		}
		listed := func() (healthy int) {
			s.link.mu.Lock()
			defer s.link.mu.Unlock()
			for _, in := range s.link.store.All(s.key.Service) {
				if in.Healthy {
					healthy++
				}
			}
			return healthy
		}
		all := func(after time.Duration) {
			t.Helper()
			s.wait(after)
			if got := listed(); got != n {
				t.Errorf("%d of %d are listed as healthy", got, n)
			}
		}
		flat := func(what string, most int, f func()) {
			t.Helper()
			from := time.Now()
			f()
			var calls []int
			for _, c := range s.link.since(from, "") {
				second := int(c.at.Sub(from) / time.Second)
				for len(calls) <= second {
					calls = append(calls, 0)
				}
				calls[second]++
			}
			if top := slices.Max(calls); top > most {
				t.Errorf("%s: %d calls in one second, want %d at most: %v", what, top, most, calls)
			} else {
				t.Logf("%s: %d calls in one second at most", what, top)
			}
		}
		all(3 * time.Second)
		all(time.Minute)
		const share = n / 5 // a beat each 5 s; now and then a look
		flat("as usual", 3*share, func() { all(time.Minute) })
		flat("an empty registry", 4*2*share, func() { s.replace(); all(time.Minute) })
		flat("a registry that was away", 2*3*share, func() {
			s.link.set(func(l *link) { l.fault = errAway })
			s.wait(13 * time.Second)
			s.link.set(func(l *link) { l.fault = nil })
			all(time.Minute)
		})
		stop()
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		for range n - 1 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if left := s.link.store.All(registry.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"}); len(left) > 0 {
			t.Errorf("%d are still listed", len(left))
		}
		run.Wait(context.Background(), time.Minute)
	})
}
