package raftlog

import (
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/sirupsen/logrus"
)

// raftLogger gives raft a logger whose errors reach our log as errors and whose
// other lines reach it at debug: an election of a lone voter is no news.
func raftLogger(log *logrus.Entry) hclog.Logger {
	// Off is the level of the logger's own output; a sink sees every level.
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Off, Output: io.Discard})
	logger.RegisterSink(sink{log})
	return logger
}

type sink struct{ log *logrus.Entry }

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(_ string, level hclog.Level, message string, args ...any) {
	if level < hclog.Error && !s.log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		return
	}
	entry := s.log.WithField("cause", line(message, args))
	if level >= hclog.Error {
		entry.Error("the registry's log reports a fault")
	} else {
		entry.Debug("the registry's log says")
	}
}

// line writes hclog's pairs behind the message.
func line(message string, args []any) string {
	var b strings.Builder
	b.WriteString(message)
	for i := 0; i+1 < len(args); i += 2 {
		value := args[i+1]
		if f, ok := value.(hclog.Format); ok && len(f) > 0 {
			value = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
		fmt.Fprintf(&b, " %v=%v", args[i], value)
	}
	return b.String()
}
