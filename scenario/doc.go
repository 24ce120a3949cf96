// Package scenario shows how the registry behaves, as text that can be read
// without knowing Go. Each file of testdata is played by the tests against the
// real store under a clock that does not wait.
//
// A line says when something happens, counted from the start, and what:
//
//	0s   register orders 10.0.0.1:8080 weight=2 cluster=east version=1.2
//	0s   register db 10.0.0.9:3306 persistent
//	5s   beat orders 10.0.0.1:8080 every 5s until 40s
//	9s   mark orders 10.0.0.1:8080 unhealthy
//	10s  list orders: 10.0.0.1:8080 unhealthy weight=2
//
// Register and mark take the words persistent, unhealthy and disabled, weight=
// and cluster=; any other name=value is metadata. What may be done:
//
//	register, mark, beat, deregister   as an instance (persistent: say so)
//	operator SERVICE IP:PORT ...       set weight=, enabled= and metadata over it (PATCH)
//	prober SERVICE IP:PORT healthy     write health, and nothing else (or: unhealthy)
//	create, update SERVICE [protect=]  metadata of a service
//	configure SERVICE CLUSTER TYPE     health checker of a cluster
//	delete SERVICE                     an empty service
//	restart                            stop the registry, start it from its disk
//	sleep 40s                          the registry's process is stopped for so long
//
// What may be looked at, each with a colon and what must be seen:
//
//	list SERVICE: ...      what consumers get; "protected" in front when it is
//	healthy SERVICE: ...   the same with healthyOnly
//	truth SERVICE: ...     all instances as they are, disabled ones too
//	services: ...          the names of all services
//	beats SERVICE IP:PORT: 2s   the pace that a beat is answered
//
// Instances are separated by commas; nothing stands for an empty list. Weight
// and cluster are shown unless they are 1 and DEFAULT.
//
// A line that ends in "-> refused" or "-> not found" must fail so; the text
// behind a colon must be the text of the error.
package scenario
