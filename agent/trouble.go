package agent

import (
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/registry"
)

// quietFor is the least time between two lines about the registry being away.
const quietFor = time.Minute

// trouble decides which of many failures are said: the first of a row, and at
// most one a minute when they come and go.
type trouble struct {
	since time.Time // start of the row; zero: none
	told  time.Time // when a line was written last
	open  bool      // that line was about this row, so its end is said too
	count int       // failures of the row
}

func (t *trouble) tell(now time.Time, o outcome) []note {
	if o.err == nil || errors.Is(o.err, registry.ErrNotFound) {
		return t.end(now)
	}
	t.count++
	if t.since.IsZero() {
		t.since = now
	}
	if t.open || !t.told.IsZero() && now.Sub(t.told) < quietFor {
		return nil
	}
	t.open, t.told = true, now
	text := "the registry does not take it; trying again"
	if errors.Is(o.err, registry.ErrRefused) {
		text = "the registry refuses it; trying again ever more slowly"
	}
	return []note{{level: logrus.WarnLevel, text: text, cause: o.err.Error(), state: o.step.String()}}
}

func (t *trouble) end(now time.Time) []note {
	since, open, count := t.since, t.open, t.count
	t.since, t.open, t.count = time.Time{}, false, 0
	if !open {
		return nil
	}
	return []note{{level: logrus.InfoLevel, text: "the registry takes it again", took: now.Sub(since), count: count}}
}
