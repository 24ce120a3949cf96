package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
)

// castagnoli is the polynomial for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errTorn = errors.New("it ends too early or holds a value out of range")

// codec writes fields to a buffer or, when reading is set, reads them from it:
// one list of fields serves both ways, so that they cannot drift apart.
type codec struct {
	buf     []byte
	reading bool
	version byte                         // of the format
	err     error                        // reading only; after the first the fields stay zero
	decoded map[string]map[string]string // metadata that was read
}

func (c *codec) number(n *uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *n)
		return
	}
	value, size := binary.Uvarint(c.buf)
	if size <= 0 || c.err != nil {
		c.tear()
		return
	}
	*n, c.buf = value, c.buf[size:]
}

func (c *codec) tear() { c.err, c.buf = errTorn, nil }

func (c *codec) port(p *uint16) {
	n := uint64(*p)
	if c.number(&n); n > math.MaxUint16 {
		c.tear()
		return
	}
	*p = uint16(n)
}

func (c *codec) text(s *string) {
	n := uint64(len(*s))
	c.number(&n)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *s...)
	case n > uint64(len(c.buf)):
		c.tear()
	default:
		*s, c.buf = string(c.buf[:n]), c.buf[n:]
	}
}

func (c *codec) float(f *float64) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*f))
		return
	}
	if len(c.buf) < 8 {
		c.tear()
		return
	}
	*f, c.buf = math.Float64frombits(binary.LittleEndian.Uint64(c.buf)), c.buf[8:]
}

// bits packs up to eight booleans into a byte.
func (c *codec) bits(values ...*bool) {
	var packed uint64
	for i, v := range values {
		if *v {
			packed |= 1 << i
		}
	}
	if c.number(&packed); packed >= 1<<len(values) {
		c.tear()
		return
	}
	for i, v := range values {
		*v = packed>>i&1 == 1
	}
}

// count writes or reads how many of something follow; each takes a byte at
// least, so that a torn count cannot ask for more memory than there is.
func (c *codec) count(n int) int {
	value := uint64(n)
	if c.number(&value); c.reading && value > uint64(len(c.buf)) {
		c.tear()
		return 0
	}
	return int(value)
}

func (c *codec) service(s *Service) {
	c.text(&s.Namespace)
	c.text(&s.Group)
	c.text(&s.Name)
}

// metadata is text that must decode, in the one order that encodeMetadata gives.
// Many instances share one: it is looked at once.
func (c *codec) metadata(encoded *string) {
	c.text(encoded)
	if !c.reading || c.err != nil || *encoded == "" {
		return
	}
	if _, known := c.decoded[*encoded]; known {
		return
	}
	values, err := decodeMetadata(*encoded)
	if err != nil || encodeMetadata(values) != *encoded {
		c.tear()
		return
	}
	if c.decoded == nil {
		c.decoded = map[string]map[string]string{}
	}
	c.decoded[*encoded] = values
}

func (c *codec) overlay(o *Overlay) {
	weight, enabled, metadata := o.Weight != nil, o.Enabled != nil, o.Metadata != nil
	on := enabled && *o.Enabled
	c.bits(&weight, &enabled, &metadata, &on)
	if weight {
		if c.reading {
			o.Weight = new(float64)
		}
		c.float(o.Weight)
	}
	if enabled && c.reading {
		o.Enabled = &on
	}
	if metadata {
		encoded := encodeMetadata(o.Metadata)
		c.metadata(&encoded)
		if c.reading && c.err == nil {
			o.Metadata = mustMetadata(encoded)
		}
	}
}

func (c *codec) checker(k *Checker) {
	c.text(&k.Type)
	c.text(&k.Path)
	c.text(&k.Headers)
	c.port(&k.Port)
	c.bits(&k.UseInstancePort)
	if c.version < 2 {
		return
	}
	expected := uint64(k.ExpectedStatus)
	if c.number(&expected); expected > math.MaxUint32 {
		c.tear()
		return
	}
	k.ExpectedStatus = uint32(expected)
	c.text(&k.User)
	c.text(&k.Password)
	c.text(&k.Command)
}

// seal appends the CRC32C of what was written.
func (c *codec) seal() []byte {
	return binary.LittleEndian.AppendUint32(c.buf, crc32.Checksum(c.buf, castagnoli))
}

// unseal cuts off the checksum and compares.
func unseal(sealed []byte) ([]byte, error) {
	at := len(sealed) - crc32.Size
	if at < 0 {
		return nil, errTorn
	}
	if sum := crc32.Checksum(sealed[:at], castagnoli); sum != binary.LittleEndian.Uint32(sealed[at:]) {
		return nil, fmt.Errorf("its checksum is wrong (%08x)", sum)
	}
	return sealed[:at], nil
}

// encodeMetadata gives one text for equal metadata: keys and values with their
// lengths, ordered by key; "" for none.
func encodeMetadata(values map[string]string) string {
	if len(values) == 0 {
		return ""
	}
	c := codec{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		c.text(&name)
		c.text(&value)
	}
	return string(c.buf)
}

func decodeMetadata(encoded string) (map[string]string, error) {
	values := map[string]string{}
	c := codec{buf: []byte(encoded), reading: true}
	for len(c.buf) > 0 {
		var name, value string
		c.text(&name)
		c.text(&value)
		values[name] = value
	}
	return values, c.err
}

// mustMetadata decodes what was encoded here or checked when it was read.
func mustMetadata(encoded string) map[string]string {
	values, err := decodeMetadata(encoded)
	if err != nil {
		panic(fmt.Sprintf("metadata %q in memory: %v", encoded, err))
	}
	return values
}
