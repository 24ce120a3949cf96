package nacos

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// The answers to nearly all beats, made once.
var (
	beatTaken   = appendBeat(nil, defaultInterval, codeOK, true)
	beatUnknown = appendBeat(nil, defaultInterval, codeNotFound, true)
)

// appendBeat writes a beatAnswer.
func appendBeat(b []byte, interval int64, code int64, light bool) []byte {
	b = append(b, `{"clientBeatInterval":`...)
	b = strconv.AppendInt(b, interval, 10)
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, code, 10)
	b = append(b, `,"lightBeatEnabled":`...)
	b = strconv.AppendBool(b, light)
	return append(b, '}')
}

// beatV1 answers a beat. It is the hot path: a beat of a known instance
// allocates nothing.
func beatV1(s *Server, c *call) {
	interval, known := s.refresh(c)
	if !known {
		var err error
		if interval, known, err = s.firstBeat(c); err != nil {
			c.writeFault(asFault(err))
			return
		}
	}
	code, body := int64(codeOK), beatTaken
	if !known {
		code, body = codeNotFound, beatUnknown
	}
	if ms := interval.Milliseconds(); ms != defaultInterval || !c.lightBeats {
		c.scratch = appendBeat(c.scratch[:0], ms, code, c.lightBeats)
		body = c.scratch
	}
	c.ctx.SetStatusCode(http.StatusOK)
	c.ctx.Response.Header.SetContentType(typeJSON)
	c.ctx.Response.SetBody(body)
}

// refresh takes the beat of a known ephemeral instance. It reports false for
// any other beat, faulty ones included.
func (s *Server) refresh(c *call) (time.Duration, bool) {
	ip, port, ok := c.beater()
	if !ok {
		return 0, false
	}
	namespace, group, name := c.form.get(paramNamespace), c.form.get(paramGroup), c.form.get(paramService)
	if len(namespace) == 0 {
		namespace = defaultNamespace
	}
	if g, n, grouped := cutGroup(name); grouped {
		group, name = g, n
	}
	if len(group) == 0 {
		group = defaultGroup
	}
	return s.Store.Refresh(namespace, group, name, ip, port)
}

var (
	defaultNamespace = []byte(registry.DefaultNamespace)
	defaultGroup     = []byte(registry.DefaultGroup)
)

// cutGroup takes group@@name apart.
func cutGroup(name []byte) (group, rest []byte, grouped bool) {
	for i := 0; i+1 < len(name); i++ {
		if name[i] == '@' && name[i+1] == '@' {
			return name[:i], name[i+2:], true
		}
	}
	return nil, name, false
}

// beater gives the address that a plain beat is for: the JSON's own, where it
// has one, else that of the parameters. Not ok: look closer.
func (c *call) beater() (ip []byte, port uint16, ok bool) {
	ip = c.form.get(paramIP)
	number := c.form.get(paramPort)
	text := c.form.get(paramBeat)
	if len(text) == 0 {
		port, ok = smallPort(number)
		return ip, port, ok && len(ip) > 0
	}
	b, plain := scanBeat(text)
	if !plain || !b.ephemeral {
		return nil, 0, false
	}
	if len(b.ip) > 0 {
		ip = b.ip
	}
	if b.port > 0 {
		return ip, uint16(b.port), len(ip) > 0
	}
	port, ok = smallPort(number)
	return ip, port, ok && len(ip) > 0
}

// smallPort reads a port of digits only.
func smallPort(s []byte) (uint16, bool) {
	if len(s) == 0 || len(s) > 5 {
		return 0, false
	}
	n := 0
	for _, d := range s {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return uint16(n), n > 0 && n <= maxPort
}

// firstBeat takes a beat that is not a plain one of a known instance: a faulty
// one, one for an unknown instance (which a full beat registers and a light
// one does not), one of a persistent instance.
func (s *Server) firstBeat(c *call) (time.Duration, bool, error) {
	if err := c.names(); err != nil {
		return 0, false, err
	}
	full := c.form.get(paramBeat)
	if len(full) == 0 {
		return s.lightBeat(c)
	}
	b, err := readBeat(full)
	if err != nil {
		return 0, false, beatFault(err)
	}
	if err := c.checkBeat(b); err != nil {
		return 0, false, err
	}
	ctx, cancel := withinTime()
	defer cancel()
	return s.fullBeat(ctx, c, c.beaten(b))
}

func (s *Server) lightBeat(c *call) (time.Duration, bool, error) {
	if err := c.check(); err != nil {
		return 0, false, err
	}
	if err := c.need(paramService); err != nil {
		return 0, false, err
	}
	port, _ := smallPort(c.form.get(paramPort))
	i := registry.Instance{Key: registry.Key{Service: c.service, IP: c.form.text(paramIP), Port: port, Ephemeral: true}}
	interval, known := s.beatAgain(i)
	return interval, known, nil
}

// beatAgain is a light beat once more, this time with names as text.
func (s *Server) beatAgain(i registry.Instance) (time.Duration, bool) {
	if i.IP == "" || i.Port == 0 {
		return s.pace(), false
	}
	return s.Store.Refresh([]byte(i.Namespace), []byte(i.Group), []byte(i.Name), []byte(i.IP), i.Port)
}

// pace is when the next beat is due if the instance does not say.
func (s *Server) pace() time.Duration {
	return time.Duration(s.Store.Switches().ClientBeatInterval) * time.Millisecond
}

// checkBeat is check with the address of the JSON in place of the parameters'.
func (c *call) checkBeat(b beatDetails) error {
	for _, err := range []error{
		c.check(),
		c.bounds.checkClusters(b.cluster),
		checkIP(string(b.ip)),
		checkPort(strconv.Itoa(b.port)),
		c.need(paramService),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// beaten gives the instance that a full beat describes. Its service is the one
// the call names, whatever name the JSON bears.
func (c *call) beaten(b beatDetails) registry.Instance {
	key := registry.Key{
		Service: c.service, Cluster: b.cluster, IP: string(b.ip), Port: uint16(b.port), Ephemeral: b.ephemeral,
	}
	if key.Cluster == "" {
		key.Cluster = c.cluster()
	}
	if key.IP == "" {
		key.IP = c.form.text(paramIP)
	}
	if key.Port == 0 {
		key.Port, _ = smallPort(c.form.get(paramPort))
	}
	return registry.Instance{Key: key, Weight: b.weight, Enabled: true, Healthy: true, Metadata: b.metadata}
}

// fullBeat refreshes the instance or, when it is unknown, registers it. One
// without address is unknown: Nacos registers a ghost there.
func (s *Server) fullBeat(ctx context.Context, c *call, i registry.Instance) (time.Duration, bool, error) {
	if i.Ephemeral {
		if interval, known := s.beatAgain(i); known {
			return interval, true, nil
		}
	} else if _, err := s.Store.Get(ctx, anyCluster(i.Key)); err == nil {
		return s.pace(), true, nil // its health is not a matter of beats
	}
	if i.IP == "" || i.Port == 0 {
		return s.pace(), false, nil
	}
	if !i.Ephemeral { // a write that may have to wait for the disk, and no beat
		from := c.guest()
		if f := c.bounds.begin(from); f != nil {
			return 0, false, f
		}
		defer c.bounds.end(from)
	}
	if err := s.register(ctx, i); err != nil {
		return 0, false, err
	}
	return time.Duration(millis(i.Metadata, metaInterval, s.pace().Milliseconds())) * time.Millisecond, true, nil
}
