package scenario

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/registry"
)

// line is one thing that happens, or is looked at.
type line struct {
	number int
	text   string
	at     time.Duration
	verb   string
	words  []string // behind the verb
	sees   bool     // it is looked at
	want   string   // behind the colon
	fails  string   // behind the arrow
}

// parse reads a file and puts the lines in the order of their times.
func parse(file, text string) (script []line, err error) {
	last := time.Duration(0)
	for i, raw := range strings.Split(text, "\n") {
		raw, _, _ = strings.Cut(raw, "#")
		if strings.TrimSpace(raw) == "" {
			continue
		}
		l, err := parseLine(strings.TrimSpace(raw))
		if err == nil && l.at < last {
			err = fmt.Errorf("it is before the line above")
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, i+1, raw, err)
		}
		last, l.number = l.at, i+1
		all, err := l.repeat()
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, i+1, raw, err)
		}
		script = append(script, all...)
	}
	slices.SortStableFunc(script, func(a, b line) int { return int(a.at - b.at) })
	return script, nil
}

func parseLine(raw string) (l line, err error) {
	l.text = raw
	rest, fails, _ := strings.Cut(raw, " -> ")
	l.fails = strings.TrimSpace(fails)
	// A colon followed by a blank: those in addresses are not.
	if rest, l.want, l.sees = strings.Cut(rest, ": "); l.sees {
		l.want = strings.Join(strings.Fields(l.want), " ")
	}
	words := strings.Fields(rest)
	if l.at, err = time.ParseDuration(words[0]); err != nil {
		return l, err
	}
	if len(words) < 2 {
		return l, fmt.Errorf("nothing happens")
	}
	l.verb, l.words = words[1], words[2:]
	least, known := map[string]int{
		"register": 2, "mark": 2, "beat": 2, "deregister": 2, "operator": 3, "prober": 3, "create": 1, "update": 1,
		"configure": 3, "delete": 1, "restart": 0, "sleep": 1, "list": 1, "healthy": 1, "truth": 1, "services": 0, "beats": 2,
	}[l.verb]
	if !known || len(l.words) < least {
		return l, fmt.Errorf("cannot do %q with %d words", l.verb, len(l.words))
	}
	if looks := slices.Contains([]string{"list", "healthy", "truth", "services", "beats"}, l.verb); looks != l.sees {
		return l, fmt.Errorf("a colon and what is seen belongs to list, healthy, truth, services and beats")
	}
	return l, nil
}

// repeat writes "every 5s until 40s" out.
func (l line) repeat() (all []line, err error) {
	n := len(l.words)
	if n < 4 || l.words[n-4] != "every" {
		return []line{l}, nil
	}
	every, err := time.ParseDuration(l.words[n-3])
	if err != nil || every <= 0 {
		return nil, fmt.Errorf("every %s: %w", l.words[n-3], err)
	}
	until, err := time.ParseDuration(l.words[n-1])
	if err != nil {
		return nil, err
	}
	l.words = l.words[:n-4]
	for ; l.at <= until; l.at += every {
		all = append(all, l)
	}
	return all, nil
}

func service(name string) registry.Service {
	return registry.Service{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: name}
}

// key reads "SERVICE IP:PORT".
func key(words []string) (k registry.Key, err error) {
	host, port, err := net.SplitHostPort(words[1])
	if err != nil {
		return k, fmt.Errorf("%s is no ip:port", words[1])
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return k, err
	}
	return registry.Key{Service: service(words[0]), IP: host, Port: uint16(n), Ephemeral: true}, nil
}

// instance reads what stands behind register and mark.
func instance(words []string) (one registry.Instance, err error) {
	one = registry.Instance{Weight: 1, Enabled: true, Healthy: true, Metadata: map[string]string{}}
	if one.Key, err = key(words); err != nil {
		return one, err
	}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case word == "persistent":
			one.Ephemeral = false
		case word == "unhealthy":
			one.Healthy = false
		case word == "disabled":
			one.Enabled = false
		case name == "cluster":
			one.Cluster = value
		case name == "weight":
			one.Weight, err = strconv.ParseFloat(value, 64)
		case value != "":
			one.Metadata[name] = value
		default:
			err = fmt.Errorf("%q is neither a word for an instance nor metadata", word)
		}
		if err != nil {
			return one, err
		}
	}
	return one, nil
}

// overlay reads what stands behind operator.
func overlay(words []string) (o registry.Overlay, err error) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "weight":
			var weight float64
			weight, err = strconv.ParseFloat(value, 64)
			o.Weight = &weight
		case "enabled":
			enabled := value == "true"
			o.Enabled = &enabled
		default:
			if o.Metadata == nil {
				o.Metadata = map[string]string{}
			}
			o.Metadata[name] = value
		}
	}
	return o, err
}
