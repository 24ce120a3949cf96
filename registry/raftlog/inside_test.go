package raftlog

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/sirupsen/logrus"
)

// InFlight tells tests that a command is on its way.
func (l *Log) InFlight() bool { return len(l.slots) > 0 }

func TestWhatRaftSays(t *testing.T) {
	f := func(level logrus.Level, say func(hclog.Logger), want string) {
		t.Helper()
		var b strings.Builder
		log := logrus.New()
		log.SetOutput(&b)
		log.SetLevel(level)
		log.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true, DisableColors: true})
		say(raftLogger(log.WithFields(nil)))
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
	warn := func(l hclog.Logger) { l.Warn("heartbeat timeout reached", "last", "n1") }
	fault := func(l hclog.Logger) {
		l.With("node", 1).Error("failed to commit logs", "error", "disk", "servers", hclog.Fmt("%d of %d", 1, 2))
	}
	f(logrus.InfoLevel, warn, "")
	f(logrus.DebugLevel, warn, "level=debug msg=\"the registry's log says\" cause=\"heartbeat timeout reached last=n1\"\n")
	f(logrus.InfoLevel, fault, "level=error msg=\"the registry's log reports a fault\" cause=\"failed to commit logs node=1 error=disk servers=1 of 2\"\n")
}
