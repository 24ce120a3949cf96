package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// rule is one demand on a body.
type rule struct {
	kind       string // "body": text is in it; "match": expression matches; "json": the value at path reads text
	text       string
	expression *regexp.Regexp
	path       []string
	early      bool // a match stays one whatever follows
}

// met tells whether body fulfils the rule. A body that is not whole yet can
// only meet rules that nothing to come may undo.
func (r rule) met(body []byte, whole bool) bool {
	switch r.kind {
	case "body":
		return bytes.Contains(body, []byte(r.text))
	case "match":
		return (whole || r.early) && r.expression.Match(body)
	}
	value, err := r.find(body)
	return err == nil && jsonText(value) == r.text
}

// miss says why a whole body does not meet the rule. It shows of the body only
// the one value that was asked for.
func (r rule) miss(body []byte) string {
	switch r.kind {
	case "body":
		return fmt.Sprintf("body lacks %q", r.text)
	case "match":
		return fmt.Sprintf("body does not match %q", r.expression)
	}
	value, err := r.find(body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("json %s is %q, not %q", strings.Join(r.path, "."), jsonText(value), r.text)
}

// find gives the JSON value at the rule's path.
func (r rule) find(body []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("body is not JSON: %w", err)
	}
	for i, step := range r.path {
		inner, found := child(value, step)
		if !found {
			return nil, fmt.Errorf("json has no %s", strings.Join(r.path[:i+1], "."))
		}
		value = inner
	}
	return value, nil
}

func child(value any, step string) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		inner, found := value[step]
		return inner, found
	case []any:
		i, err := strconv.Atoi(step)
		if err == nil && i >= 0 && i < len(value) {
			return value[i], true
		}
	}
	return nil, false
}

// jsonText is a string as it is, and everything else as JSON writes it.
func jsonText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// jsonPath splits a.b.0, or /a/b/0 as RFC 6901 has it for names with dots.
func jsonPath(text string) []string {
	pointer, found := strings.CutPrefix(text, "/")
	if !found {
		return strings.Split(text, ".")
	}
	steps := strings.Split(pointer, "/")
	for i, step := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps
}

// growsOnly tells whether a match of the expression in the beginning of a text
// stays a match in the whole text, so that an endless stream can be answered.
// It does not hold where the end of a text, a line or a word is asked for.
func growsOnly(expression string) bool {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && growing(parsed)
}

func growing(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEndText, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return false
	}
	for _, sub := range re.Sub {
		if !growing(sub) {
			return false
		}
	}
	return true
}
