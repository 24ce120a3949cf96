package registry

import "fmt"

// Limits bound what clients can make a store hold. Zero: without end. What is
// there already stays, be it more: a log written under other limits is read
// whole. Registrations at the same moment may each see the last place.
type Limits struct {
	Instances int // of one service
	Services  int // of one namespace
}

// Limit sets the limits. Call it before anything else.
func (s *Store) Limit(l Limits) { s.limits = l }

// errAddingForbidden is what Nacos said while its switch disableAddIP had an
// effect, up to 0.x.
var errAddingForbidden error = &Refusal{AddingForbidden, "Adding IP for dom is forbidden now."}

// roomFor refuses one more instance of a service; v is nil when that would be
// new as well.
func (s *Store) roomFor(service Service, v *service) error {
	if s.switches.Load().DisableAddIP {
		return errAddingForbidden
	}
	if v == nil {
		return s.roomForService(service)
	}
	if most := s.limits.Instances; most > 0 && len(v.slots) >= most {
		return &Refusal{TooManyInstances, fmt.Sprintf("service %s has %d instances, and may have %d", service.Grouped(), len(v.slots), most)}
	}
	return nil
}

// roomForService refuses one more service of a namespace.
func (s *Store) roomForService(service Service) error {
	most := s.limits.Services
	if most == 0 {
		return nil
	}
	if n := s.names.in(service.Namespace); n >= most {
		return &Refusal{TooManyServices, fmt.Sprintf("namespace %s has %d services, and may have %d", service.Namespace, n, most)}
	}
	return nil
}
