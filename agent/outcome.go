package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sidebeat/sidebeat/health"
	"github.com/sidebeat/sidebeat/registry"
)

// outcome is what came back from a step.
type outcome struct {
	step  step
	sent  registry.Instance
	began time.Time
	next  time.Duration     // beat: the pace that the registry wants
	found registry.Instance // read
	err   error
}

// done takes the outcome of a step that ended at now.
func (l *life) done(now time.Time, o outcome) {
	l.last, l.lastAt = o.err, now
	if o.step == beat {
		l.lastBeat = o.began
	}
	l.count(o)
	switch {
	case o.err == nil:
		l.failures, l.hold = 0, time.Time{}
		l.accepted(now, o)
	case errors.Is(o.err, registry.ErrNotFound) && o.step != register:
		l.missing(now, o)
	case l.secondLook(o):
		l.readDue = now.Add(l.jitter(readEvery))
		return
	default:
		l.failed(now, o)
	}
	l.notes = append(l.notes, l.trouble.tell(now, o)...)
}

// secondLook tells that the outcome says little: beats go on and tell enough.
func (l *life) secondLook(o outcome) bool {
	return o.step == read && l.phase != leaving && l.holds == there && l.ephemeral
}

func (l *life) count(o outcome) {
	c := l.counts[o.step]
	if c == nil {
		c = new(stepCount)
		l.counts[o.step] = c
	}
	c.sent++
	if o.err != nil && !errors.Is(o.err, registry.ErrNotFound) {
		c.failed++
	}
}

func (l *life) accepted(now time.Time, o outcome) {
	if o.step != read {
		l.looked(o)
	}
	switch o.step {
	case register, mark:
		l.announced(now, o)
	case beat:
		l.acked.healthy = true
		if o.next > 0 {
			l.interval = max(min(o.next, max(l.silence/3, l.beatEvery)), beatLeast)
		}
		l.beatDue = l.afterBeat(now, o.began)
	case deregister:
		if l.holds == there && l.phase == serving { // at the end the shell says that it left
			l.note(logrus.InfoLevel, "deregistered", "", "")
		}
		l.holds, l.again = gone, false
		l.readDue = l.certain(now)
	case read:
		l.compare(now, o)
	}
}

// afterBeat keeps the phase, which chance gives each instance after its first
// beat: a thousand that registered in one second shall not beat in one.
func (l *life) afterBeat(now, began time.Time) time.Time {
	if l.newborn {
		l.newborn = false
		return began.Add(l.interval/2 + time.Duration(l.spread()*float64(l.interval)/2))
	}
	if due := l.beatDue.Add(l.interval); due.After(now) {
		return due
	}
	return began.Add(l.interval)
}

func (l *life) announced(now time.Time, o outcome) {
	switch {
	case o.step == mark:
		l.note(logrus.InfoLevel, "marked", "", describe(o.sent))
	case !l.hush:
		l.note(logrus.InfoLevel, "registered", "", describe(o.sent))
	}
	l.hush = false
	l.holds, l.touched = there, true
	l.acked = status{o.sent.Healthy, o.sent.Enabled}
	if o.step == register {
		l.again, l.sent, l.newborn = false, o.began, true
		l.beatDue = now // the first beat asks for the pace
	}
	l.readDue = now.Add(l.jitter(readSoon))
	if l.insist > 0 {
		l.readDue = now.Add(l.readPace())
	}
	if l.phase == leaving {
		l.parted, l.readDue = true, l.certain(now)
	}
}

func describe(in registry.Instance) string {
	switch {
	case !in.Enabled:
		return "disabled"
	case !in.Healthy:
		return "unhealthy"
	}
	return "healthy"
}

// missing: the registry does not know the instance.
func (l *life) missing(now time.Time, o outcome) {
	was := l.holds
	l.holds, l.again = gone, false
	l.failures, l.hold = 0, time.Time{}
	l.readDue = now.Add(l.jitter(readEvery))
	l.looked(o)
	if l.phase == leaving {
		l.goneAtLast(now, o.step)
		return
	}
	if was == there && l.wanted(now).place == present {
		l.lost(now, "the registry lost the instance; registering again")
		if now.Sub(l.sent) < l.interval { // taken and forgotten at once: not faster than beats
			l.hold = l.sent.Add(l.interval)
		}
	}
}

// goneAtLast: a look that does not find it is proof when nothing that would
// bring it back may still be on its way.
func (l *life) goneAtLast(now time.Time, s step) {
	l.parted = s == read && !l.doubt
	l.readDue = l.certain(now)
}

// certain is the moment from which on a look tells all.
func (l *life) certain(now time.Time) time.Time {
	if l.doubt {
		return later(now, l.sure)
	}
	return now
}

// looked ends the doubt when a look, or another write, came late enough.
func (l *life) looked(o outcome) {
	if o.step != beat && !o.began.Before(l.sure) {
		l.doubt = false
	}
}

// lost says once a minute that the registry forgot something.
func (l *life) lost(now time.Time, text string) {
	if l.hush = !l.lostAt.IsZero() && now.Sub(l.lostAt) < quietFor; !l.hush {
		l.lostAt = now
		l.note(logrus.WarnLevel, text, "", "")
	}
}

// failed: the outcome is unknown, or the registry refused.
func (l *life) failed(now time.Time, o outcome) {
	announced := (o.step == register || o.step == mark) && !errors.Is(o.err, registry.ErrRefused)
	if announced {
		l.doubt, l.sure = true, now.Add(unsure)
	}
	if announced && o.step == register {
		l.touched = true
		if l.holds == gone {
			l.holds = unknown // it may have arrived
		}
	}
	l.failures++
	l.hold = later(o.began.Add(l.pauseAfter(o.err)), now)
	if o.step == read && l.phase == leaving && l.holds == gone {
		l.blind(now)
	}
}

// blind: it was taken out, but the registry cannot show it. That has to do, or
// it is taken out once more when something may have arrived meanwhile.
func (l *life) blind(now time.Time) {
	if l.parted = !l.doubt; l.doubt && !now.Before(l.sure) {
		l.holds = unknown
	}
}

// pauseAfter grows with each failure from 1 s to one beat period, or to a
// minute when the registry refuses, which may be a passing mood of its login;
// half of it is by chance. It counts from the start of the call that failed.
func (l *life) pauseAfter(err error) time.Duration {
	first, most := retryFirst, l.interval
	if errors.Is(err, registry.ErrRefused) {
		first, most = l.interval, refusedFor
	}
	pause := most
	if l.failures < 8 {
		pause = min(pause, first<<(l.failures-1))
	}
	if l.phase == leaving {
		return partAgain
	}
	return pause/2 + time.Duration(l.spread()*float64(pause)/2)
}

// jitter gives d, a quarter more or less.
func (l *life) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(l.spread()*float64(d)/2)
}

// compare takes what was read back.
func (l *life) compare(now time.Time, o outcome) {
	l.seen = o.found
	l.readDue = now.Add(l.readPace())
	if l.phase == leaving && l.ephemeral {
		l.holds, l.parted = there, false
		l.hold = now.Add(partAgain)
		return
	}
	w := l.wanted(now)
	first := l.holds != there
	l.holds, l.touched = there, true
	if w.place == leave {
		l.acked = status{o.found.Healthy, o.found.Enabled}
		return
	}
	l.acked.healthy = o.found.Healthy // nobody but us may say so, and beats heal
	if first || l.doubt {
		l.acked.enabled = o.found.Enabled // else it is the operator's word
	}
	l.looked(o)
	if l.phase == leaving {
		l.readDue = l.certain(now)
	}
	if l.phase == leaving && o.found.Metadata[metaBy] != "" {
		l.parted = false // something late overtook the last word
	}
	if l.insist++; l.acked == w.status {
		l.insist = 0
	}
	if l.phase == serving {
		l.compareEdits(now, o.found)
	}
}

func (l *life) readPace() time.Duration {
	if l.ephemeral {
		return l.jitter(readEvery)
	}
	return l.jitter(l.interval) // nothing else tells that the registry lost it
}

// compareEdits finds what the operator changed, says it once and keeps it, and
// what the registry lost, and sends it once more.
func (l *life) compareEdits(now time.Time, found registry.Instance) {
	lost := false
	var edits []string
	for k, v := range l.declared.Metadata {
		got, ok := found.Metadata[k]
		lost = lost || !ok
		if ok && got != v {
			edits = append(edits, "metadata "+k)
		}
	}
	for k := range found.Metadata {
		if _, ok := l.declared.Metadata[k]; !ok {
			edits = append(edits, "metadata "+k)
		}
	}
	if lost && !l.resent && l.verdict == health.Up {
		l.again, l.resent = true, true
		l.lost(now, "the registry lost metadata; registering again")
		return
	}
	l.resent = l.resent && lost
	if lost {
		edits = append(edits, "metadata taken away")
	}
	if found.Weight != l.declared.Weight {
		edits = append(edits, fmt.Sprintf("weight %v", found.Weight))
	}
	if found.Enabled != l.acked.enabled {
		edits = append(edits, fmt.Sprintf("enabled %v", found.Enabled))
	}
	l.report(edits)
}

func (l *life) report(edits []string) {
	slices.Sort(edits)
	text := strings.Join(edits, ", ")
	if text == l.edited {
		return
	}
	l.edited = text
	if text == "" {
		l.note(logrus.InfoLevel, "the registry holds what was declared again", "", "")
		return
	}
	l.note(logrus.WarnLevel, "the registry holds other values than declared; they are kept", "", text)
}

func (l *life) note(level logrus.Level, text, cause, state string) {
	l.notes = append(l.notes, note{level: level, text: text, cause: cause, state: state})
}
