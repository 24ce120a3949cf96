package nacos

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// form holds the parameters of one request: those of the query first, then
// those of the form body, whatever the method. A form is read again and again
// without allocating; its bytes belong to the request.
type form struct {
	pairs   []pair
	decoded []byte
}

type pair struct {
	key, value []byte // trimmed
	blank      bool   // something was given, but only blanks
}

// mostPairs is how many parameters of a request are read; Tomcat, in which
// Nacos runs, reads no more either (maxParameterCount).
const mostPairs = 10000

// What a form that is used again may keep: parameters, and bytes decoded.
const (
	keptPairs   = 128
	keptDecoded = 64 << 10
)

// read takes the parameters of query and body, both as they came.
func (f *form) read(query, body []byte) {
	if cap(f.pairs) > keptPairs {
		f.pairs = nil
	}
	if cap(f.decoded) > keptDecoded {
		f.decoded = nil
	}
	f.pairs, f.decoded = f.pairs[:0], f.decoded[:0]
	f.add(query)
	f.add(body)
}

func (f *form) add(rest []byte) {
	beaten := false
	for len(rest) > 0 && len(f.pairs) < mostPairs {
		key, after := cut(rest, '&', '=')
		if after == nil || after[0] == '&' {
			f.pairs = append(f.pairs, pair{key: f.decode(key)})
			rest = after[min(1, len(after)):]
			continue
		}
		after = after[1:]
		n, raw := 0, false
		if !beaten && string(key) == paramBeat { // the first counts, and only it is looked at
			beaten = true
			n, raw = rawBeat(after)
		}
		if !raw {
			n = end(after)
		}
		value := after[:n]
		if !raw {
			value = f.decode(value)
		}
		trimmed := trim(value)
		f.pairs = append(f.pairs, pair{f.decode(key), trimmed, len(trimmed) == 0 && len(value) > 0})
		rest = after[n:]
		rest = rest[min(1, len(rest)):]
	}
}

// cut gives what stands before the first of the two separators, and the rest
// with that separator in front; nil when there is none.
func cut(s []byte, a, b byte) (before, after []byte) {
	for i, c := range s {
		if c == a || c == b {
			return s[:i], s[i:]
		}
	}
	return s, nil
}

func end(s []byte) int {
	if i := bytes.IndexByte(s, '&'); i >= 0 {
		return i
	}
	return len(s)
}

// fieldsOfBeats are the names that can follow a raw beat in a form body.
var fieldsOfBeats = [][]byte{
	[]byte("&namespaceId="), []byte("&serviceName="), []byte("&groupName="), []byte("&clusterName="),
	[]byte("&ip="), []byte("&port="), []byte("&app="), []byte("&ephemeral="), []byte("&accessToken="),
	[]byte("&username="), []byte("&password="), []byte("&beat="),
}

// rawBeat says how much of rest is the JSON of a beat that was not encoded, as
// nacos-sdk-go 1.x sends it: % and + mean themselves and & may stand inside.
// What follows must be the end or a name that can follow a beat.
func rawBeat(rest []byte) (n int, raw bool) {
	if len(rest) == 0 || rest[0] != '{' {
		return 0, false
	}
	n = objectEnd(rest)
	if n < len(rest) && !startsField(rest[n:]) {
		return 0, false
	}
	return n, json.Valid(rest[:n])
}

// objectEnd gives where the JSON object ends that s begins with, white space
// after it included; all of s when it has no end. It looks at each byte once
// and at nothing but braces and strings.
func objectEnd(s []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return len(s) - len(bytes.TrimLeft(s[i+1:], " \t\r\n"))
			}
		}
	}
	return len(s)
}

func startsField(s []byte) bool {
	for _, f := range fieldsOfBeats {
		if bytes.HasPrefix(s, f) {
			return true
		}
	}
	return false
}

// decode undoes the percent encoding of a form. What is no encoding stays as
// it is.
func (f *form) decode(s []byte) []byte {
	if bytes.IndexByte(s, '%') < 0 && bytes.IndexByte(s, '+') < 0 {
		return s
	}
	start := len(f.decoded)
	f.decoded = slices.Grow(f.decoded, len(s))
	out := f.decoded[start : start+len(s)]
	n := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' {
			c = ' '
		} else if c == '%' && i+2 < len(s) && hex[s[i+1]]|hex[s[i+2]] >= 0 {
			c = byte(hex[s[i+1]])<<4 | byte(hex[s[i+2]])
			i += 2
		}
		out[n] = c
		n++
	}
	f.decoded = f.decoded[:start+n]
	return out[:n:n]
}

// hex gives the value of a hexadecimal digit, -1 for any other byte.
var hex = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i := range int8(10) {
		t['0'+i] = i
	}
	for i := range int8(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// trim cuts blanks and control characters at both ends, as String.trim does.
func trim(s []byte) []byte {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// get gives the trimmed value of the first parameter with this name, nil when
// there is none.
func (f *form) get(name string) []byte {
	for i := range f.pairs {
		if string(f.pairs[i].key) == name {
			return f.pairs[i].value
		}
	}
	return nil
}

// has reports whether the parameter was given and not empty, be it of blanks.
func (f *form) has(name string) bool {
	for i := range f.pairs {
		if string(f.pairs[i].key) == name {
			return len(f.pairs[i].value) > 0 || f.pairs[i].blank
		}
	}
	return false
}

// given reports whether the parameter was given, be it empty.
func (f *form) given(name string) bool {
	return slices.ContainsFunc(f.pairs, func(p pair) bool { return string(p.key) == name })
}

// text gives the value of the first of the names that is not blank, as a copy;
// "" when all are.
func (f *form) text(names ...string) string {
	for _, name := range names {
		if v := f.get(name); len(v) > 0 {
			return f.decodeText(v)
		}
	}
	return ""
}

// decodeText gives the text of a value. It is UTF-8, unless the parameter
// encoding says that it is Latin-1 and it cannot be UTF-8.
func (f *form) decodeText(v []byte) string {
	if utf8.Valid(v) {
		return string(v)
	}
	switch strings.ToLower(string(f.get(paramEncoding))) {
	case "iso-8859-1", "iso8859-1", "latin1":
		runes := make([]rune, len(v))
		for i, b := range v {
			runes[i] = rune(b)
		}
		return string(runes)
	}
	return strings.ToValidUTF8(string(v), "\uFFFD")
}

// or gives the value of the parameter, or otherwise when it is blank.
func (f *form) or(name, otherwise string) string {
	if v := f.text(name); v != "" {
		return v
	}
	return otherwise
}
