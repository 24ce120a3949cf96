package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sidebeat/sidebeat/hint"
)

const (
	appsFileMost = 1 << 20 // bytes; a thousand apps need a fifth of it
	appsMost     = 1000    // more is no pod
)

// load reads the file of several apps.
func (c *Config) load() ([]plan, error) {
	raw, err := readBounded(c.Apps)
	if err != nil {
		return nil, fmt.Errorf("cannot use SIDEBEAT_APPS=%q: %w", c.Apps, err)
	}
	plans, err := parseApps(raw, c.App)
	if err != nil {
		return nil, fmt.Errorf("cannot use SIDEBEAT_APPS=%q: %w", c.Apps, err)
	}
	return plans, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, appsFileMost+1))
	if err == nil && len(raw) > appsFileMost {
		err = fmt.Errorf("it is longer than %d bytes", appsFileMost)
	}
	return raw, err
}

// parseApps reads a list of apps, or an object with the list under "apps", as
// YAML or JSON. An app has the words of the settings in small letters, and may
// have "check" as a list and "metadata" as an object; what it leaves out is as
// in defaults.
func parseApps(raw []byte, defaults App) ([]plan, error) {
	items, err := appItems(raw)
	if err != nil {
		return nil, err
	}
	var plans []plan
	var faults []error
	for i, item := range items {
		p, err := parseApp(i, item, defaults)
		plans = append(plans, p)
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return plans, unique(plans)
}

func appItems(raw []byte) ([]any, error) {
	root, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if object, ok := root.(map[string]any); ok {
		for word := range object {
			if word != "apps" {
				return nil, fmt.Errorf(`unknown word %q beside "apps"`, firstLetters(word))
			}
		}
		root = object["apps"]
	}
	items, ok := root.([]any)
	switch {
	case !ok || len(items) == 0:
		return nil, errors.New(`give a list of apps, or an object with the list under "apps"`)
	case len(items) > appsMost:
		return nil, fmt.Errorf("it lists %d apps, at most %d are looked after", len(items), appsMost)
	}
	return items, nil
}

func decode(raw []byte) (root any, err error) {
	if json.Valid(raw) {
		in := json.NewDecoder(bytes.NewReader(raw))
		in.UseNumber()
		err = in.Decode(&root)
		return root, err
	}
	in := yaml.NewDecoder(bytes.NewReader(raw))
	if err := in.Decode(&root); err != nil {
		return nil, fmt.Errorf("it is neither YAML nor JSON: %w", err)
	}
	if in.Decode(new(any)) != io.EOF {
		return nil, errors.New("it holds more than one document")
	}
	return root, nil
}

func parseApp(i int, item any, defaults App) (plan, error) {
	where := fmt.Sprintf("app %d", i+1)
	object, ok := item.(map[string]any)
	if !ok {
		return plan{}, fmt.Errorf("%s: give an object with service, address and so on", where)
	}
	if service, ok := object["service"].(string); ok {
		where += " (" + strconv.Quote(service[:min(len(service), 60)]) + ")"
	}
	one, err := fill(object, defaults)
	if err != nil {
		return plan{}, fmt.Errorf("%s: %w", where, err)
	}
	return one.parse(func(word string) string { return where + ": " + word })
}

// fill sets the fields that the object names.
func fill(object map[string]any, defaults App) (App, error) {
	one := defaults
	fields := map[string]reflect.Value{}
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		fields[snake(v.Type().Field(i).Name)] = v.Field(i)
	}
	var faults []error
	for word, value := range object {
		field, known := fields[word]
		if !known {
			faults = append(faults, fmt.Errorf("unknown word %q%s", word[:min(len(word), 60)], hint.Meant(word, slices.Collect(maps.Keys(fields)))))
		} else if err := set(field, word, value); err != nil {
			faults = append(faults, fmt.Errorf("cannot use %s: %w", word, err))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return one, errors.Join(faults...)
}

// snake turns CheckInterval into check_interval.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// set reads one value into a field, by the rules of the environment.
func set(field reflect.Value, word string, value any) error {
	text, err := plain(word, value)
	if err != nil {
		return err
	}
	switch target := field.Addr().Interface().(type) {
	case *string:
		*target = text
	case *Checks:
		*target = Checks(text)
	case *OnDown:
		*target = OnDown(text)
	case *bool:
		if *target, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case *int:
		if *target, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
	case *float64:
		if *target, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q is no number", text)
		}
	case *time.Duration:
		if *target, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%q is no duration; give a number with a unit, as 5s", text)
		}
	default:
		return fmt.Errorf("BUG: fields of type %T cannot be set", target)
	}
	return nil
}

func plain(word string, value any) (string, error) {
	switch v := value.(type) {
	case map[string]any:
		if word == "metadata" {
			return metadataJSON(v)
		}
	case []any:
		if word == "check" {
			return joinChecks(v)
		}
	default:
		if text, ok := scalar(v); ok {
			return text, nil
		}
	}
	return "", errors.New("give one plain value")
}

func joinChecks(list []any) (string, error) {
	var all []string
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return "", errors.New("give a list of URLs")
		}
		all = append(all, text)
	}
	return strings.Join(all, " "), nil
}

// unique refuses two apps that would beat for one instance, and one service of
// two kinds: a registry knows one instance per ip:port of a service, and a
// service is ephemeral or persistent as a whole.
func unique(plans []plan) error {
	var faults []error
	for i, p := range plans {
		for j, q := range plans[:i] {
			if p.service != q.service {
				continue
			}
			if p.host == q.host && p.port == q.port {
				faults = append(faults, fmt.Errorf("apps %d and %d are the same instance, %s", j+1, i+1, p.instance().Key))
			}
			if p.ephemeral != q.ephemeral {
				faults = append(faults, fmt.Errorf("apps %d and %d are of one service, %s, but only one of them is ephemeral", j+1, i+1, p.service))
			}
		}
	}
	return errors.Join(faults...)
}
