package setting

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/sidebeat/sidebeat/hint"
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
		warnings = append(warnings, fmt.Sprintf("unknown setting %s%s", name, hint.MeantBehind(prefix, name, known)))
	}
	slices.Sort(warnings)
	return warnings
}
