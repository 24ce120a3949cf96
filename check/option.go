package check

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sidebeat/sidebeat/hint"
)

// option is one name=value of a fragment or of an exec query, unescaped.
type option struct {
	name, value string
	valued      bool // false for a bare flag
}

func (o option) String() string {
	if !o.valued {
		return o.name
	}
	return o.name + "=" + escape(o.value, "&")
}

// hidden is String without a value that may be a secret.
func (o option) hidden() string {
	name, _, found := strings.Cut(o.value, ":")
	switch {
	case o.name == "header" && found && !strings.EqualFold(name, "Host"):
		return "header=" + escape(name, "&") + ":***"
	case o.name == "env":
		name, _, found = strings.Cut(o.value, "=")
		if found {
			return "env=" + escape(name, "&") + "=***"
		}
	}
	return o.String()
}

// Escape makes any text fit for the value of an option in a check URL.
func Escape(value string) string { return escape(value, "&") }

// escape percent-encodes what would end a value or a URL: blanks, control and
// non-ASCII bytes, '%', '#', and the bytes of also.
func escape(text, also string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || c == '%' || c == '#' || strings.IndexByte(also, c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// splitOptions reads what joinOptions wrote; text must have passed parseOptions.
func splitOptions(text string) []option {
	list, _ := parseOptions(text)
	return list
}

func joinOptions(list []option, show func(option) string) string {
	words := make([]string, len(list))
	for i, o := range list {
		words[i] = show(o)
	}
	return strings.Join(words, "&")
}

// parseOptions splits a=b&c&a=d. A plus sign is a plus sign.
func parseOptions(text string) ([]option, error) {
	var list []option
	for word := range strings.SplitSeq(text, "&") {
		if word == "" {
			continue
		}
		name, raw, valued := strings.Cut(word, "=")
		value, err := url.PathUnescape(raw)
		if err != nil {
			return nil, fmt.Errorf("bad escape in option %q: write %%25 for a percent sign", name)
		}
		list = append(list, option{name, value, valued})
	}
	return list, nil
}

// canonical sorts by name; what was given twice keeps its order.
func canonical(list []option) string {
	slices.SortStableFunc(list, func(a, b option) int { return strings.Compare(a.name, b.name) })
	return joinOptions(list, option.String)
}

// kinds names the options each scheme understands, beside timeout. HTTP takes
// the TLS options too, because a redirect may lead to HTTPS.
var kinds = map[string][]string{
	"http":  {"method", "header", "headerfile", "status", "body", "match", "json", "insecure", "ca", "servername", "redirects"},
	"https": {"method", "header", "headerfile", "status", "body", "match", "json", "insecure", "ca", "servername", "redirects"},
	"tcp":   {"full"},
	"exec":  {"output"},
	"file":  {"age"},
	"push":  {"ttl"},
	"none":  {},
}

var flags = []string{"insecure", "full"}
var repeatable = []string{"header", "headerfile", "body", "match", "json"}

// vet looks at names only: each must be known to the scheme, flags carry no
// value but true or false, and only some may come twice. Flags that are false
// are left out of what it returns.
func vet(scheme string, list []option) ([]option, error) {
	known := append([]string{"timeout"}, kinds[scheme]...)
	seen := map[string]bool{}
	var kept []option
	for _, o := range list {
		flag := slices.Contains(flags, o.name)
		switch {
		case !slices.Contains(known, o.name):
			return nil, unknownOption(scheme, o.name, known)
		case seen[o.name] && !slices.Contains(repeatable, o.name):
			return nil, fmt.Errorf("option %q is given twice", o.name)
		case flag && o.valued && o.value != "true" && o.value != "false":
			return nil, fmt.Errorf("option %q is %q: it is true, false, or stands alone", o.name, o.value)
		case !flag && !o.valued:
			return nil, fmt.Errorf("option %q needs a value: %s=...", o.name, o.name)
		}
		seen[o.name] = true
		if flag && o.value == "false" {
			continue
		}
		if flag {
			o = option{name: o.name}
		}
		kept = append(kept, o)
	}
	return kept, nil
}

func unknownOption(scheme, name string, known []string) error {
	for other, names := range kinds {
		if other != scheme && slices.Contains(names, name) {
			return fmt.Errorf("option %q does not apply to %s checks", name, scheme)
		}
	}
	return fmt.Errorf("unknown option %q%s", name, hint.Meant(name, known))
}
