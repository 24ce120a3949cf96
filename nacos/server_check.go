package nacos

import (
	"bytes"
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
	maxMetadata  = 1024 // keys and values together
	maxPort      = 65535
)

// check refuses parameters that Nacos refuses before it looks at them, in its
// order and with its words. Blank ones are not checked here.
func (r *call) check() error {
	metadata, err := parseMetadata(r.form.text(paramMetadata))
	if err != nil {
		return metadataFault(err)
	}
	oneCluster := checkCluster
	if bytes.HasSuffix(r.path, []byte("/instance/list")) {
		oneCluster = checkClusters // there v2 and v3 have the list in this parameter
	}
	for _, err := range []error{
		checkNamespace(r.form.text(paramNamespace)),
		checkService(r.service.Name),
		checkGroup(r.service.Group),
		oneCluster(r.form.text(paramCluster, paramClusterAlias)),
		checkClusters(r.form.text(paramClusters)),
		checkIP(r.form.text(paramIP)),
		checkPort(r.form.text(paramPort, paramCheckPort)),
		checkMetadata(metadata),
	} {
		if err != nil {
			return err
		}
	}
	r.metadata = metadata
	return nil
}

const badCharacters = "illegal characters should not appear in the param."

func tooLong(limit int) string {
	return "the param length should not exceed " + strconv.Itoa(limit) + "."
}

func checkNamespace(s string) error {
	return checkWord("namespaceId/tenant", s, maxNamespace, func(c rune) bool { return c == '_' || c == '-' || alphanumeric(c) })
}

func checkGroup(s string) error {
	return checkWord("group", s, maxGroup, func(c rune) bool { return strings.ContainsRune("-_:.", c) || alphanumeric(c) })
}

func checkCluster(s string) error {
	return checkWord("cluster", s, maxCluster, func(c rune) bool { return c == '_' || c == '-' || alphanumeric(c) })
}

// checkClusters takes a list of names separated by commas.
func checkClusters(list string) error {
	if list == "" {
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		if err := checkCluster(name); err != nil || name == "" {
			return err
		}
	}
	return nil
}

func checkIP(s string) error {
	return checkWord("ip", s, maxIP, printable)
}

func checkService(s string) error {
	if strings.HasPrefix(s, "@") || strings.Contains(s, groupSeparator) {
		return checkFault("serviceName", badCharacters)
	}
	return checkWord("serviceName", s, maxService, printable)
}

// checkWord refuses a word that is too long or has a character that is not
// good.
func checkWord(param, s string, limit int, good func(rune) bool) error {
	if units(s) > limit {
		return checkFault(param, tooLong(limit))
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

func checkMetadata(m map[string]string) error {
	n := 0
	for k, v := range m {
		n += units(k) + units(v)
	}
	if n > maxMetadata {
		return checkFault("Metadata", tooLong(maxMetadata))
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
