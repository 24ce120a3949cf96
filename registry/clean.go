package registry

import (
	"context"
	"time"
)

const (
	// keepEmpty is how long a service without instances, and an overlay without
	// its instance, is kept (nacos.naming.clean.empty-service.expired-time and
	// nacos.naming.clean.expired-metadata.expired-time).
	keepEmpty = stamp(60_000)
	// cleanPeriod is how often that is looked at.
	cleanPeriod = time.Second
)

// clean forgets what nobody has used for 60 s. What the log knows of is
// forgotten through it; if it takes no writes, at the next look.
func (s *Store) clean(ctx context.Context) {
	s.subscribers.forget(s.clock.now())
	var commands []command
	for i := range s.shards {
		gone, more := s.collect(&s.shards[i], s.clock.now())
		s.tell(gone...)
		commands = append(commands, more...)
	}
	for _, m := range commands {
		if s.submit(ctx, m) != nil {
			return
		}
	}
}

// collect removes what the log does not know and gives commands for the rest.
func (s *Store) collect(h *shard, now stamp) (gone []Service, commands []command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.idle {
		waiting := len(v.slots) == 0
		for at, o := range v.overlays {
			if !o.attached && now-o.since >= keepEmpty {
				commands = append(commands, command{
					op: opForget, service: v.name, ip: at.ip, port: at.port, cluster: at.cluster, revision: o.revision})
			}
			waiting = waiting || !o.attached
		}
		switch {
		case !waiting:
			delete(h.idle, v)
		case len(v.slots) > 0 || now-v.idleSince < keepEmpty:
		case v.durable():
			commands = append(commands, command{op: opDelete, service: v.name, ephemeral: v.ephemeral, revision: v.revision})
		default:
			gone = append(gone, v.name)
			s.removeService(h, v)
		}
	}
	return gone, commands
}
