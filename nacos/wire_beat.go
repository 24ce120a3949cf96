package nacos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// beat is what the parameter beat says
// (com.alibaba.nacos.naming.healthcheck.RsInfo). Its bytes belong to the text
// it was read from.
type beat struct {
	ip        []byte
	port      int
	ephemeral bool
}

// beatDetails is what registering from a beat needs besides.
type beatDetails struct {
	beat
	cluster  string
	weight   float64 // 0 when the beat does not say
	metadata map[string]string
}

// scanBeat reads the fields that refreshing needs and checks that the rest is
// JSON, without allocating. It reports false for all it does not want to judge
// (escapes in names, nesting, odd types, faults): readBeat decides then.
func scanBeat(text []byte) (b beat, ok bool) {
	b.ephemeral = true
	s := scanner{text: text}
	if !s.take('{') {
		return b, false
	}
	if s.take('}') {
		return b, s.ended()
	}
	for {
		key, plain := s.string()
		if !plain || !s.take(':') || !s.field(key, &b) {
			return b, false
		}
		if s.take('}') {
			return b, s.ended()
		}
		if !s.take(',') {
			return b, false
		}
	}
}

// scanner goes through a JSON text.
type scanner struct {
	text []byte
	at   int
}

// peek gives the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take goes past c when it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) ended() bool { return s.peek() == 0 && s.at == len(s.text) }

// field reads the value of one key of a beat.
func (s *scanner) field(key []byte, b *beat) bool {
	switch string(key) {
	case "ip":
		value, plain := s.string()
		b.ip = value
		return plain
	case "port":
		port, ok := s.number()
		n, err := strconv.ParseUint(string(port), 10, 16)
		b.port = int(n)
		return ok && err == nil
	case "ephemeral":
		b.ephemeral = s.literal("true")
		return b.ephemeral || s.literal("false")
	case "metadata":
		return s.flat()
	default:
		return s.scalar()
	}
}

// string reads a string; plain is false when it is none or needs decoding.
func (s *scanner) string() (value []byte, plain bool) {
	if !s.take('"') {
		return nil, false
	}
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			value, s.at = s.text[s.at:i], i+1
			return value, true
		case c == '\\' || c < ' ' || c >= 0x80:
			return nil, false
		}
	}
	return nil, false
}

// skipString goes past a string, escapes included.
func (s *scanner) skipString() bool {
	s.take('"')
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return true
		case c < ' ':
			return false
		case c == '\\' && !s.escape():
			return false
		}
	}
	return false
}

// escape goes past what follows a backslash.
func (s *scanner) escape() bool {
	if s.at == len(s.text) {
		return false
	}
	c := s.text[s.at]
	s.at++
	if c != 'u' {
		return bytes.IndexByte([]byte(`"\/bfnrt`), c) >= 0
	}
	for range 4 {
		if s.at == len(s.text) || hex[s.text[s.at]] < 0 {
			return false
		}
		s.at++
	}
	return true
}

func (s *scanner) literal(word string) bool {
	s.peek()
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

// number reads a number of the JSON grammar without an exponent.
func (s *scanner) number() (text []byte, ok bool) {
	s.peek()
	start := s.at
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	whole := s.digits()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return nil, false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if len(s.digits()) == 0 {
			return nil, false
		}
	}
	return s.text[start:s.at], true
}

func (s *scanner) digits() []byte {
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.text[start:s.at]
}

// scalar goes past a string, a number, true or false.
func (s *scanner) scalar() bool {
	switch c := s.peek(); {
	case c == '"':
		return s.skipString()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	default:
		_, ok := s.number()
		return ok
	}
}

// flat goes past an object whose values are scalars.
func (s *scanner) flat() bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		if s.peek() != '"' || !s.skipString() || !s.take(':') || !s.scalar() {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// readBeat reads a beat as Jackson does: a number may stand in quotes, null
// means the default, names are exact, what follows the object is ignored.
func readBeat(text []byte) (b beatDetails, err error) {
	b.ephemeral = true
	raw := map[string]json.RawMessage{}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&raw); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		return b, fmt.Errorf("cannot read the beat: %w", err)
	}
	ip, port, cluster, weight, ephemeral := "", "", "", "", ""
	for key, to := range map[string]*string{
		"ip": &ip, "port": &port, "cluster": &cluster, "weight": &weight, "ephemeral": &ephemeral,
	} {
		if v, ok := raw[key]; ok {
			if *to, _, err = scalar(v); err != nil {
				return b, fmt.Errorf("cannot read %s of the beat: %w", key, err)
			}
		}
	}
	if v, ok := raw["metadata"]; ok {
		if b.metadata, err = jsonMetadata(v); err != nil {
			return b, fmt.Errorf("cannot read metadata of the beat: %w", err)
		}
	}
	b.ip, b.cluster = []byte(ip), cluster
	return b, b.numbers(port, weight, ephemeral)
}

func (b *beatDetails) numbers(port, weight, ephemeral string) error {
	var err error
	if port != "" {
		if b.port, err = strconv.Atoi(port); err != nil {
			return fmt.Errorf("cannot read port of the beat: %w", err)
		}
	}
	if weight != "" {
		if b.weight, err = strconv.ParseFloat(weight, 64); err != nil {
			return fmt.Errorf("cannot read weight of the beat: %w", err)
		}
	}
	if ephemeral != "" {
		if b.ephemeral, err = strconv.ParseBool(ephemeral); err != nil {
			return fmt.Errorf("cannot read ephemeral of the beat: %w", err)
		}
	}
	return nil
}
