package prober

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebeat/sidebeat/check"
	"github.com/sidebeat/sidebeat/registry"
)

// Metadata by which an instance says how it wants to be probed.
const (
	metaCheck = "sidebeat.check" // a check URL, http, https, tcp or none; its host does not count
	metaRise  = "sidebeat.rise"  // good answers in a row, 1 to 255
	metaFall  = "sidebeat.fall"  // bad answers in a row, 1 to 255
	metaBy    = "sidebeat.by"    // who owns the health of the instance
)

// byAgent is how the value of sidebeat.by begins when an agent looks after the
// instance itself.
const byAgent = "agent"

func bySomebody(metadata map[string]string) bool {
	return strings.HasPrefix(metadata[metaBy], byAgent)
}

// wanted is what follows from an instance's metadata and its cluster's checker.
type wanted struct {
	question check.Spec // without host, and without port where it is the instance's
	rise     uint8      // 0: as set for the prober
	fall     uint8
	signed   bool    // an agent owns the health
	faults   []error // what was wrong, for the log; the rest holds
}

// wantOf reads what an instance asks for. What is wrong falls back to what would
// hold without it.
func wantOf(metadata map[string]string, checker registry.Checker, has bool) wanted {
	w := wanted{signed: bySomebody(metadata)}
	note := func(err error) {
		if err != nil {
			w.faults = append(w.faults, err)
		}
	}
	var err error
	w.rise, err = inARow(metadata, metaRise)
	note(err)
	w.fall, err = inARow(metadata, metaFall)
	note(err)
	if raw := metadata[metaCheck]; raw != "" {
		if w.question, err = ownQuestion(raw); err == nil {
			return w
		}
		note(err)
	}
	w.question, err = clusterQuestion(checker, has)
	note(err)
	return w
}

func inARow(metadata map[string]string, name string) (uint8, error) {
	raw := metadata[name]
	if raw == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(raw, 10, 8)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("cannot use metadata %s=%q: give 1 to 255", name, shorten(raw))
	}
	return uint8(n), nil
}

// Who registers an instance need not be who runs the prober: the options it may
// give lead nowhere else (redirects), read no file here (ca) and change nothing
// over there (method).
var ownOptions = []string{"status", "body", "match", "json", "header", "timeout", "insecure", "servername", "full"}

func ownQuestion(raw string) (check.Spec, error) {
	refuse := func(why error) (check.Spec, error) {
		return check.Spec{}, fmt.Errorf("cannot use metadata %s: %w", metaCheck, why)
	}
	_, fragment, _ := strings.Cut(raw, "#")
	for word := range strings.SplitSeq(fragment, "&") {
		if name, _, _ := strings.Cut(word, "="); name != "" && !slices.Contains(ownOptions, name) {
			return refuse(fmt.Errorf("option %q is not for a prober, only %s", shorten(name), strings.Join(ownOptions, ", ")))
		}
	}
	question, err := check.ParseSpec(raw)
	if err != nil {
		return refuse(err)
	}
	switch question.Scheme() {
	case "http", "https", "tcp", "none":
		return question, nil
	}
	return refuse(errors.New("a prober asks by http, https or tcp, or with none: nothing"))
}

func mustSpec(raw string) check.Spec {
	question, err := check.ParseSpec(raw)
	if err != nil {
		panic(err)
	}
	return question
}

var (
	askTCP  = mustSpec("tcp:")
	askNone = mustSpec("none:")
)

// clusterQuestion turns the checker that Nacos stores for a cluster into a
// question. MYSQL looks at the instance's port whatever the cluster says, as in
// Nacos (MysqlHealthCheckProcessor), and is asked half-open. A type that Nacos
// does not know means NONE there (AbstractHealthChecker), so here too.
func clusterQuestion(c registry.Checker, has bool) (check.Spec, error) {
	port := ""
	if has && !c.UseInstancePort && c.Port != 0 {
		port = ":" + strconv.Itoa(int(c.Port))
	}
	switch {
	case !has:
		return askTCP, nil
	case c.Type == "TCP":
		return mustSpec("tcp:" + port), nil
	case c.Type == "HTTP":
		return httpQuestion(c, port)
	case c.Type == "MYSQL":
		return askTCP, nil
	}
	return askNone, nil
}

// httpQuestion keeps what Nacos calls healthy: status 200 and nothing else
// (HttpHealthCheckProcessor), so that a service that moves here keeps its
// meaning. A whole URL in the path, which leads Nacos to another host, is only
// a path here.
func httpQuestion(c registry.Checker, port string) (check.Spec, error) {
	front := "http://" + port + "/" + escapePath(strings.TrimPrefix(c.Path, "/")) + "#status=200"
	if len(c.Path) > 2048 || len(c.Headers) > 4096 {
		return mustSpec("http://" + port + "/#status=200"), errors.New("cannot use the cluster's HTTP checker: its path or its headers are too long")
	}
	question, err := check.ParseSpec(front + headerOptions(c.Headers))
	if err == nil {
		return question, nil
	}
	return mustSpec(front), fmt.Errorf("cannot use the headers of the cluster's HTTP checker: %w", err)
}

func headerOptions(headers string) string {
	var b strings.Builder
	for one := range strings.SplitSeq(headers, "|") {
		name, value, found := strings.Cut(one, ":")
		if name = strings.TrimSpace(name); found && name != "" {
			b.WriteString("&header=" + check.Escape(name+":"+strings.TrimSpace(value)))
		}
	}
	return b.String()
}

// escapePath keeps what is escaped already and escapes what would end a URL.
func escapePath(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || c == '#' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// shorten keeps a stranger's text from filling a log line.
func shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
