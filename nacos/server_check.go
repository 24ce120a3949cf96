package nacos

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of Nacos 2.5.1 (com.alibaba.nacos.common.paramcheck.ParamCheckRule);
// lengths are in UTF-16 units, as in Java.
const (
	maxNamespace = 64
	maxGroup     = 128
	maxService   = 512
	maxCluster   = 64
	maxIP        = 128
	maxPort      = 65535
)

// mostOf gives how many bytes the value of a parameter may have: what is set by
// it may be kept for ever. JSON writes one character in up to 12, and a batch
// lists instances.
func (b *bounds) mostOf(name []byte) int {
	switch string(name) {
	case paramMetadata, paramBeat:
		return max(b.Parameter, smallBody, 12*b.Metadata)
	case paramInstances:
		return max(b.Parameter, b.Body)
	}
	return b.Parameter
}

// checkValues refuses values that are too long, whatever they are for.
func (r *call) checkValues() *fault {
	for i := range r.form.pairs {
		p := &r.form.pairs[i]
		if len(p.value) <= r.bounds.Parameter {
			continue
		}
		if most := r.bounds.mostOf(p.key); len(p.value) > most {
			return excess(limitParameter, printableKey(p.key), most)
		}
	}
	return nil
}

// printableKey is a name that somebody made up, short and harmless.
func printableKey(key []byte) string {
	quoted := strconv.Quote(string(key[:min(len(key), maxCluster)]))
	return quoted[1 : len(quoted)-1]
}

// check refuses parameters that Nacos refuses before it looks at them, in its
// order and with its words. Blank ones are not checked here.
func (r *call) check() error {
	metadata, err := parseMetadata(r.form.text(paramMetadata))
	if err != nil {
		return metadataFault(err)
	}
	oneCluster := r.bounds.checkCluster
	if bytes.HasSuffix(r.path, []byte("/instance/list")) {
		oneCluster = r.bounds.checkClusters // there v2 and v3 have the list in this parameter
	}
	for _, err := range []error{
		r.bounds.checkNamespace(r.form.text(paramNamespace)),
		r.bounds.checkService(r.service.Name),
		r.bounds.checkGroup(r.service.Group),
		oneCluster(r.form.text(paramCluster, paramClusterAlias)),
		r.bounds.checkClusters(r.form.text(paramClusters)),
		checkIP(r.form.text(paramIP)),
		checkPort(r.form.text(paramPort, paramCheckPort)),
		r.bounds.checkMetadata(metadata),
	} {
		if err != nil {
			return err
		}
	}
	r.metadata = metadata
	return nil
}

const badCharacters = "illegal characters should not appear in the param."

// excess is the fault of what is longer than most.
func excess(l limit, param string, most int) *fault {
	return &fault{
		status: http.StatusBadRequest, form: asCheck, limit: l,
		text: "Param '" + param + "' is illegal, the param length should not exceed " + strconv.Itoa(most) + ".",
	}
}

func (b *bounds) checkNamespace(s string) error {
	return checkWord("namespaceId/tenant", s, min(b.Name, maxNamespace), func(c rune) bool { return c == '_' || c == '-' || alphanumeric(c) })
}

func (b *bounds) checkGroup(s string) error {
	return checkWord("group", s, min(b.Name, maxGroup), func(c rune) bool { return strings.ContainsRune("-_:.", c) || alphanumeric(c) })
}

func (b *bounds) checkCluster(s string) error {
	return checkWord("cluster", s, min(b.Name, maxCluster), func(c rune) bool { return c == '_' || c == '-' || alphanumeric(c) })
}

// checkClusters takes a list of names separated by commas.
func (b *bounds) checkClusters(list string) error {
	if list == "" {
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		if err := b.checkCluster(name); err != nil || name == "" {
			return err
		}
	}
	return nil
}

func checkIP(s string) error {
	return checkWord("ip", s, maxIP, printable)
}

func (b *bounds) checkService(s string) error {
	if strings.HasPrefix(s, "@") || strings.Contains(s, groupSeparator) {
		return checkFault("serviceName", badCharacters)
	}
	return checkWord("serviceName", s, min(b.Name, maxService), printable)
}

// checkWord refuses a word that is too long or has a character that is not
// good.
func checkWord(param, s string, limit int, good func(rune) bool) error {
	if units(s) > limit {
		return excess(limitName, param, limit)
	}
	for _, c := range s {
		if !good(c) {
			return checkFault(param, badCharacters)
		}
	}
	return nil
}

func alphanumeric(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// printable is what is neither white space nor Chinese.
func printable(c rune) bool {
	return !strings.ContainsRune(" \t\n\v\f\r", c) && (c < 0x4E00 || c > 0x9FA5)
}

func checkPort(s string) error {
	if s == "" {
		return nil
	}
	if n, err := strconv.Atoi(s); err != nil || n < 0 || n > maxPort {
		return checkFault("port", "the value should be between 0 and 65535.")
	}
	return nil
}

func (b *bounds) checkMetadata(m map[string]string) error {
	n := 0
	for k, v := range m {
		n += units(k) + units(v)
	}
	if n > b.Metadata {
		return excess(limitMetadata, "Metadata", b.Metadata)
	}
	return nil
}

// units counts as String.length does.
func units(s string) int {
	n := utf8.RuneCountInString(s)
	if n == len(s) {
		return n
	}
	return len(utf16.Encode([]rune(s)))
}
