package agent

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/run"
)

// watch asks check i at its pace until the context ends.
func (a *app) watch(ctx context.Context, i int) error {
	for {
		began := time.Now()
		answer := a.question(ctx, i)
		if err := ctx.Err(); err != nil {
			return err
		}
		wait := a.take(i, began, answer)
		a.turn(1+i, wait)
		if _, err := run.WaitOr(ctx, wait, a.bells[i]); err != nil {
			return err
		}
	}
}

func (a *app) question(ctx context.Context, i int) check.Answer {
	limit := a.patience(i)
	a.turn(1+i, limit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return a.asker.Ask(ctx, a.spec(i))
}

// take notes the answer to a question asked at began, tells whom it concerns,
// and says when to ask again. An answer that took far longer than it may was
// held up by us being stopped, and one to a question from before that is old
// news: both are asked anew at once.
func (a *app) take(i int, began time.Time, answer check.Answer) (wait time.Duration) {
	now := time.Now()
	a.mu.Lock()
	if now.Sub(began) > a.patience(i)+lateness || began.Before(a.resumed) {
		a.mu.Unlock()
		return 0
	}
	a.answers[answer.Kind]++
	fresh := !a.life.stale(now)
	out := a.panel.observe(i, now, answer, now.Before(a.started.Add(a.grace)))
	if out.changed {
		a.since = now
		a.changes++
	}
	a.life.judge(now, a.panel.verdict, a.panel.freshUntil())
	woken := out.changed || !fresh && !a.life.stale(now)
	wait = a.panel.pause(i, a.interval, began, now)
	key := a.life.declared.Key
	a.mu.Unlock()
	if woken {
		a.bell.Ring()
	}
	a.tell(i, out, answer, a.log.WithField("instance", key.Address()))
	return wait
}

func (a *app) tell(i int, out fallout, answer check.Answer, log *logrus.Entry) {
	spec := a.spec(i)
	log = log.WithField("check", spec.Label()).WithField("cause", answer.Reason)
	switch {
	case spec.Scheme() == "push": // until the app says something there is nothing to ask
	case out.broke:
		log.Error("the check cannot be asked; the last verdict is kept")
	case out.mended:
		log.Info("the check can be asked again")
	}
	if !out.changed {
		return
	}
	if a.verdict() == health.Up {
		log.WithField("took", answer.Took.Round(time.Microsecond).String()).Info("the app is up")
	} else {
		log.Warn("the app is down")
	}
}

func (a *app) verdict() health.Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.panel.verdict
}
