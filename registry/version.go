package registry

// Version is a number that changes with everything that a View of the service
// shows, so that what was rendered for it may be kept while it stays the same.
// Read it before the View. 0: no such service. It says nothing after a restart.
func (s *Store) Version(service Service) uint64 {
	service = service.normal()
	h := s.shard(service)
	h.mu.RLock()
	defer h.mu.RUnlock()
	if v := h.services[service]; v != nil {
		return v.version.Load()
	}
	return 0
}

// renew gives services that changed new versions. It comes after the change, so
// that whoever reads the new version sees the change, and before the writer is
// answered.
func (s *Store) renew(changed []Service) {
	for _, name := range changed {
		h := s.shard(name)
		h.mu.RLock()
		if v := h.services[name]; v != nil {
			v.version.Store(h.versions.Add(1))
		}
		h.mu.RUnlock()
	}
}
