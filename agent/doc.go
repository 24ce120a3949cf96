// Package agent looks after the apps of one pod: it asks each whether it is
// alive, registers it at its first good answer, beats for it while it lives,
// takes it out as SIDEBEAT_ON_DOWN says when it does not, and takes it out for
// good at shutdown.
//
// Rules are in life.go (what to send to the registry, and when) and panel.go
// (what the answers of several checks mean together): both know no clock and do
// no I/O. app.go is the shell around them: one loop a check, one loop that
// talks to the registry.
package agent
