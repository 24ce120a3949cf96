package setting

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// field is one variable and where its value goes.
type field struct {
	name  string
	value reflect.Value // addressable
	tags  reflect.StructTag
}

func (f field) kind() reflect.Type { return f.value.Type() }

// readsItself tells that the type has its own way to read a text.
func (f field) readsItself() bool {
	_, set := f.value.Addr().Interface().(interface{ Set(string) error })
	_, text := f.value.Addr().Interface().(interface{ UnmarshalText([]byte) error })
	return set || text
}

func (f field) secret() bool {
	_, ok := f.value.Addr().Interface().(*Secret)
	return ok
}

// names gives the variable and, for a secret, its twin.
func (f field) names() []string {
	if f.secret() {
		return []string{f.name, f.name + fileSuffix}
	}
	return []string{f.name}
}

// fieldsOf lists the variables of the structs as envconfig forms their names;
// envconfig's own list cannot be had without its template engine, which would
// cost 4 MB in every binary. A test compares the two.
func fieldsOf(specs []any) []field {
	var all []field
	for _, spec := range specs {
		v := reflect.ValueOf(spec)
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			panic(fmt.Sprintf("settings must be given as a pointer to a struct, not as %T", spec))
		}
		all = append(all, gather(prefix, v.Elem())...)
	}
	return all
}

func gather(prefix string, v reflect.Value) []field {
	var all []field
	for i := range v.NumField() {
		t := v.Type().Field(i)
		if !t.IsExported() || t.Tag.Get("ignored") == "true" {
			continue
		}
		name := strings.ToUpper(t.Name)
		if t.Tag.Get("split_words") == "true" {
			name = words(t.Name)
		}
		f := field{name: prefix + "_" + name, value: v.Field(i), tags: t.Tag}
		switch {
		case f.kind().Kind() != reflect.Struct || f.readsItself():
			all = append(all, f)
		case t.Anonymous:
			all = append(all, gather(prefix, f.value)...)
		default:
			all = append(all, gather(f.name, f.value)...)
		}
	}
	return all
}

var (
	wordPattern    = regexp.MustCompile(`[^A-Z]+|[A-Z]+[^A-Z]+|[A-Z]+`)
	acronymPattern = regexp.MustCompile(`([A-Z]+)([A-Z][^A-Z]+)`)
)

// words turns CheckInterval into CHECK_INTERVAL, by the rule of envconfig's
// split_words.
func words(name string) string {
	var all []string
	for _, word := range wordPattern.FindAllString(name, -1) {
		if m := acronymPattern.FindStringSubmatch(word); m != nil {
			all = append(all, m[1], m[2])
		} else {
			all = append(all, word)
		}
	}
	return strings.ToUpper(strings.Join(all, "_"))
}
