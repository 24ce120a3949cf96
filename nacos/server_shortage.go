package nacos

// Shortage implements run.ShortageLog.
func (l connectionLog) Shortage(cause error) {
	if cause == nil {
		l.log.WithField("state", "taking connections").Warn("there is room for further connections again")
		return
	}
	l.log.WithField("state", "waiting for room").WithField("cause", cause.Error()).Error("there is no room for further connections")
}
