package check

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What holds when an option is not given.
const (
	defaultAge    = 30 * time.Second
	defaultTTL    = 30 * time.Second
	defaultOutput = 4 << 10  // bytes of a program's output that are kept
	maxOutput     = 64 << 10 // bytes
	maxRedirects  = 20       // as browsers have it
	maxPlans      = 1024     // different sets of options remembered
	maxStale      = 24 * time.Hour
)

// plan is a Spec's options, made ready to use. It is shared and never changed.
type plan struct {
	method                  string
	headers                 []header
	status                  []statusRange
	rules                   []rule
	redirects               int
	insecure                bool
	authorities, servername string // authorities: path of a file with CA certificates
	output                  int
	age, ttl                time.Duration
}

type header struct {
	name, value string
	file        string // path of the value, read with every question; "": value holds
}

type statusRange struct{ from, to int }

func (p *plan) accepts(status int) bool {
	return slices.ContainsFunc(p.status, func(r statusRange) bool { return r.from <= status && status <= r.to })
}

// compile reads canonical options.
func compile(options string) (*plan, error) {
	p := &plan{
		method: "GET", status: []statusRange{{200, 399}},
		output: defaultOutput, age: defaultAge, ttl: defaultTTL,
	}
	for _, o := range splitOptions(options) {
		if err := p.take(o); err != nil {
			return nil, err
		}
	}
	if p.method == "HEAD" && len(p.rules) > 0 {
		return nil, errors.New("method=HEAD brings no body for body, match or json")
	}
	return p, nil
}

func (p *plan) take(o option) (err error) {
	switch o.name {
	case "method":
		p.method, err = parseMethod(o.value)
	case "header":
		err = p.takeHeader(o.value)
	case "headerfile":
		err = p.takeHeaderFile(o.value)
	case "status":
		p.status, err = parseStatus(o.value)
	case "body", "match", "json":
		err = p.takeRule(o)
	case "redirects":
		p.redirects, err = parseCount(o, maxRedirects)
	case "output":
		p.output, err = parseCount(o, maxOutput)
	case "insecure":
		p.insecure = true
	case "ca":
		if p.authorities, err = localPath(o.value); err != nil {
			err = fmt.Errorf("ca=...: %w", err)
		}
	case "servername":
		p.servername, err = parseHost(o.value)
	case "age":
		p.age, err = parseDuration(o, maxStale)
	case "ttl":
		p.ttl, err = parseDuration(o, maxStale)
	}
	return err
}

func parseCount(o option, most int) (int, error) {
	n, err := strconv.Atoi(o.value)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("option %q is %q: it is a number from 0 to %d", o.name, o.value, most)
	}
	return n, nil
}

func parseMethod(value string) (string, error) {
	upper := strings.ToUpper(value)
	letters := strings.Trim(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
	if upper == "" || len(upper) > 20 || !letters || upper == "CONNECT" {
		return "", fmt.Errorf("method %q: it is GET, HEAD, OPTIONS, POST or the like", value)
	}
	return upper, nil
}

func parseStatus(text string) ([]statusRange, error) {
	var ranges []statusRange
	for word := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(word, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || from < 100 || to > 999 || from > to {
			return nil, fmt.Errorf("status %q: it is written 200-399,401 with numbers from 100 to 999", text)
		}
		ranges = append(ranges, statusRange{from, to})
	}
	return ranges, nil
}

func (p *plan) takeRule(o option) error {
	r := rule{kind: o.name, text: o.value}
	switch o.name {
	case "body":
		if o.value == "" {
			return errors.New("body needs a text that must be in the body")
		}
	case "match":
		expression, err := regexp.Compile(o.value)
		if err != nil {
			return fmt.Errorf("match %q is no regular expression (RE2): %w", o.value, err)
		}
		r.expression, r.early = expression, growsOnly(o.value)
	case "json":
		path, want, found := strings.Cut(o.value, "==")
		if !found || path == "" {
			return fmt.Errorf("json %q: it is written path==value, as in json=status==UP or json=/components/db/status==UP", o.value)
		}
		r.path, r.text = jsonPath(path), want
	}
	p.rules = append(p.rules, r)
	return nil
}

// plans remembers what was compiled, so that a regular expression is compiled
// once and not at every question. The zero value is ready.
type plans struct {
	mu    sync.Mutex
	known map[string]*plan
}

func (c *plans) of(s Spec) (*plan, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.known[s.options]; p != nil {
		return p, nil
	}
	p, err := compile(s.options)
	if err != nil {
		return nil, err
	}
	if len(c.known) >= maxPlans || c.known == nil {
		c.known = make(map[string]*plan)
	}
	c.known[s.options] = p
	return p, nil
}
