package registry

import "fmt"

// formatVersion is the first byte of every command and stands in the head of
// every snapshot. A store reads all versions up to it and refuses later ones.
// 2 brought the rest of the checker's fields, switches and namespaces.
const formatVersion = 2

type op uint8

const (
	opRegister    op = 1 + iota // persistent instance: add, or replace what was published
	opDeregister                // persistent instance
	opHealth                    // persistent instance: only health, if the revision fits
	opService                   // create or update the metadata of a service
	opDelete                    // service
	opCluster                   // configuration of a cluster
	opOverlay                   // operator's word on an instance
	opForget                    // overlay whose instance is gone
	opSwitch                    // one switch of the registry
	opNamespace                 // create or update a namespace
	opNoNamespace               // delete a namespace
	opMetadata                  // metadata of the overlays of several instances, key by key
)

// command is one durable change. Each op uses some of the fields.
type command struct {
	op        op
	service   Service
	ephemeral bool // kind of the service

	ip, cluster string
	port        uint16
	weight      float64
	enabled     bool
	healthy     bool
	metadata    string // encoded
	noID        bool
	mustExist   bool   // register: never create; service: update; overlay: the service must exist
	revision    uint64 // opHealth: 0 = whatever it is; opDelete, opForget: what it was decided on

	overlay   Overlay
	whole     bool // the overlay replaces all that was set before
	threshold float64
	selector  string
	checker   Checker

	name, text string // of a switch
	namespace  Namespace
	places     []place
	drop       bool // opMetadata: take the keys out
}

// encode gives version, op, fields and CRC32C.
func (m command) encode() []byte {
	c := codec{buf: []byte{formatVersion, byte(m.op)}, version: formatVersion}
	m.fields(&c)
	return c.seal()
}

// decodeCommand refuses whatever encode cannot have written.
func decodeCommand(sealed []byte) (m command, err error) {
	body, err := unseal(sealed)
	if err != nil {
		return m, err
	}
	if len(body) < 2 {
		return m, errTorn
	}
	if body[0] == 0 || body[0] > formatVersion {
		return m, fmt.Errorf("its version is %d, this program knows those up to %d", body[0], formatVersion)
	}
	c := codec{buf: body[2:], reading: true, version: body[0]}
	m.op = op(body[1])
	if !m.fields(&c) {
		return m, fmt.Errorf("its kind is %d, which this program does not know", m.op)
	}
	if c.err == nil && len(c.buf) > 0 {
		return m, fmt.Errorf("%d bytes are left over", len(c.buf))
	}
	return m, c.err
}

// fields lists what each op carries.
func (m *command) fields(c *codec) (known bool) {
	c.service(&m.service)
	switch m.op {
	case opRegister:
		m.place(c)
		c.float(&m.weight)
		c.bits(&m.enabled, &m.healthy, &m.mustExist, &m.noID)
		c.metadata(&m.metadata)
	case opDeregister:
		m.place(c)
	case opHealth:
		m.place(c)
		c.bits(&m.healthy)
		c.number(&m.revision)
	case opService:
		c.bits(&m.ephemeral, &m.mustExist)
		c.float(&m.threshold)
		c.metadata(&m.metadata)
		c.text(&m.selector)
	case opDelete:
		c.bits(&m.ephemeral)
		c.number(&m.revision)
	case opCluster:
		c.bits(&m.ephemeral)
		c.text(&m.cluster)
		c.checker(&m.checker)
		c.metadata(&m.metadata)
	case opOverlay:
		m.place(c)
		c.bits(&m.ephemeral, &m.whole)
		c.overlay(&m.overlay)
	case opForget:
		m.place(c)
		c.number(&m.revision)
	case opSwitch:
		c.text(&m.name)
		c.text(&m.text)
	case opNamespace:
		c.bits(&m.mustExist)
		m.namespace.fields(c)
	case opNoNamespace:
		c.text(&m.namespace.ID)
	case opMetadata:
		c.bits(&m.ephemeral, &m.drop)
		c.metadata(&m.metadata)
		m.manyPlaces(c)
	default:
		return false
	}
	return true
}

func (m *command) manyPlaces(c *codec) {
	n := c.count(len(m.places))
	if c.reading {
		m.places = make([]place, n)
	}
	for i := range m.places {
		m.places[i].fields(c)
	}
}

func (p *place) fields(c *codec) {
	c.text(&p.ip)
	c.port(&p.port)
	c.text(&p.cluster)
}

func (m *command) place(c *codec) {
	c.text(&m.ip)
	c.port(&m.port)
	c.text(&m.cluster)
}

// subject says what a command is about.
func (m command) subject() string {
	switch m.op {
	case opSwitch:
		return "switch " + m.name
	case opNamespace, opNoNamespace:
		return "namespace " + m.namespace.ID
	}
	return m.service.String()
}

// aim fills in which instance a command is about.
func (m command) aim(k Key) command {
	m.service, m.ip, m.port, m.cluster, m.ephemeral = k.Service, k.IP, k.Port, k.Cluster, k.Ephemeral
	return m
}
