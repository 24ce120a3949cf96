package registry

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Everything at once, for the race detector and for the counts: afterwards the
// store holds exactly what it lists.
func TestStress(t *testing.T) {
	s := NewStore()
	l := life{t, s}
	var workers sync.WaitGroup
	stop := time.Now().Add(700 * time.Millisecond)
	for w := range 6 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := 0; time.Now().Before(stop); i++ {
				one := eph(fmt.Sprintf("s%d", random.IntN(3)), fmt.Sprint(random.IntN(4)))
				if random.IntN(4) == 0 {
					one = per("p"+one.Name, fmt.Sprint(random.IntN(4)))
				}
				one.Healthy = random.IntN(3) > 0
				l.anything(random, one)
			}
		})
	}
	workers.Go(func() {
		for time.Now().Before(stop) {
			// Straight to expiry: whoever has not beaten for a millisecond goes.
			h := &s.shards[rand.IntN(shardCount)]
			h.mu.RLock()
			overdue := h.slots.overdue(s.clock.now()+29_990, nil)
			h.mu.RUnlock()
			s.tell(s.expire(h, overdue, s.clock.now()+29_990)...)
			s.Counts()
			snapshot(t, s)
		}
	})
	workers.Wait()
	l.adds(t)
}

func (l life) anything(random *rand.Rand, one Instance) {
	switch random.IntN(12) {
	case 0, 1:
		l.Register(l.Context(), one)
	case 2:
		l.Deregister(l.Context(), one.Key)
	case 3:
		l.Mark(l.Context(), one)
	case 4:
		l.SetHealth(l.Context(), one, one.Healthy)
	case 5:
		l.Override(l.Context(), one.Key, Overlay{Metadata: map[string]string{KeyBeatTimeout: "40000"}})
	case 6:
		l.DeleteService(l.Context(), one.Service)
	case 7:
		l.View(one.Service, Query{})
		l.List(l.Context(), "")
	default:
		l.Refresh(nil, nil, []byte(one.Name), []byte(one.IP), one.Port)
	}
}

// adds checks the counters against what is listed.
func (l life) adds(t *testing.T) {
	t.Helper()
	all, unhealthy := 0, 0
	for _, service := range l.Services("", "") {
		info, err := l.Describe(service)
		l.ok(err)
		healthy := 0
		for _, one := range l.All(service) {
			if all++; one.Healthy {
				healthy++
			} else {
				unhealthy++
			}
		}
		if info.Healthy != healthy {
			t.Errorf("%s counts %d healthy, lists %d", service, info.Healthy, healthy)
		}
	}
	if c := l.Counts(); c.Ephemeral+c.Persistent != all || c.Unhealthy != unhealthy || c.Services != len(l.Services("", "")) {
		t.Errorf("got %+v, listed %d with %d unhealthy", c, all, unhealthy)
	}
}
