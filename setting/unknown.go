package setting

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// serviceLink matches what Kubernetes puts into every pod of a namespace that
// has a Service whose name starts with "sidebeat": the names of the Docker
// links, SIDEBEAT_SERVICE_HOST, SIDEBEAT_PORT=tcp://10.96.0.7:8848 and so on.
// They are no settings, and no setting may be named so.
// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables)
var serviceLink = regexp.MustCompile(`^` + prefix + `_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknown warns of set variables with our prefix that no field reads.
func unknown(fields []field) []string {
	var known, warnings []string
	for _, f := range fields {
		known = append(known, f.names()...)
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix+"_") || value == "" || slices.Contains(known, name) || serviceLink.MatchString(name) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("unknown setting %s%s", name, hint(name, known)))
	}
	slices.Sort(warnings)
	return warnings
}

// hint gives the nearest known name when it is near enough to be meant: a
// third of the letters behind the prefix may differ.
func hint(name string, known []string) string {
	best, least := "", (len(name)-len(prefix))/3+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the number of letters to add, drop or change (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
