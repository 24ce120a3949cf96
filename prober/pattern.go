package prober

import (
	"fmt"
	"strings"

	"github.com/sidebeat/sidebeat/registry"
)

// pattern is namespace/group/service, each with * for any text. A service name
// may hold slashes: only the first two of a pattern separate.
type pattern struct{ namespace, group, name string }

type patterns []pattern

func parsePatterns(texts []string) (patterns, error) {
	var all patterns
	for _, text := range texts {
		parts := strings.SplitN(text, "/", 3)
		if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
			return nil, fmt.Errorf("%q is not namespace/group/service, such as public/*/orders-*", text)
		}
		all = append(all, pattern{parts[0], parts[1], parts[2]})
	}
	return all, nil
}

func (p patterns) match(s registry.Service) bool {
	namespace := s.Namespace
	if namespace == "" {
		namespace = registry.DefaultNamespace
	}
	for _, one := range p {
		if glob(one.namespace, namespace) && glob(one.group, s.Group) && glob(one.name, s.Name) {
			return true
		}
	}
	return false
}

// glob matches text against a pattern in which * stands for any text, none
// included. Going back to the latest star only keeps it linear per star.
func glob(pattern, text string) bool {
	star, resume := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// scope says which services are probed.
type scope struct{ include, exclude patterns }

func newScope(p *Probe) (scope, error) {
	include, err := parsePatterns(p.ProbeInclude)
	if err != nil {
		return scope{}, err
	}
	exclude, err := parsePatterns(p.ProbeExclude)
	return scope{include, exclude}, err
}

func (s scope) holds(service registry.Service) bool {
	return (len(s.include) == 0 || s.include.match(service)) && !s.exclude.match(service)
}
