package registry

// Reason says which rule a Refusal is about, so that a wire can choose its
// code and dress the text as its protocol wants it.
type Reason uint8

const (
	_                Reason = iota
	KindConflict            // ephemeral into a persistent service, or the reverse
	BadWeight               // outside 0 to 10000, or no number
	BadPeriods              // heart beat or delete timeout below the interval
	BadCluster              // cluster name with other characters than 0-9 a-z A-Z -
	Incomplete              // no service name or no ip
	ServiceExists           // created twice
	ServiceUnknown          // also ErrNotFound
	ServiceInUse            // deleted while it has instances
	InstanceUnknown         // ErrNotFound only
	BadSwitch               // value of a switch
	NamespaceExists         // created twice
	BadNamespace            // id or name
	AddingForbidden         // new instance while the switch disableAddIP is on
	TooManyInstances        // of one service, see Limits
	TooManyServices         // of one namespace, see Limits
)

// Refusal is the error of a request that is wrong in itself. It wraps
// ErrRefused; for an unknown service ErrNotFound as well, for an unknown
// instance ErrNotFound alone.
type Refusal struct {
	Reason Reason
	Text   string // exactly what Nacos 2.5.1 says
}

// Error gives Text, unadorned: wires send it as it is.
func (r *Refusal) Error() string { return r.Text }

// Unwrap gives the sentinels that the reason stands for.
func (r *Refusal) Unwrap() []error {
	switch r.Reason {
	case InstanceUnknown:
		return []error{ErrNotFound}
	case ServiceUnknown:
		return []error{ErrRefused, ErrNotFound}
	}
	return []error{ErrRefused}
}
