// Package setting is how a process reads its environment: all faults at once,
// secrets from files too, unknown names said; and how it sets up its log.
//
// A setting is a field of a struct. Every field carries `split_words:"true"`,
// so that CheckInterval is read from SIDEBEAT_CHECK_INTERVAL; `default:` gives
// the value of an unset variable and `desc:` its line in the documentation.
package setting

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// prefix stands in front of every variable, followed by "_".
const prefix = "SIDEBEAT"

// Load fills the structs behind the pointers from SIDEBEAT_* variables. An
// empty variable counts as unset. Then it calls `Validate() error` of each
// struct, embedded ones included, that has it.
//
// The error joins all faults; each names the variable, its value (never a
// secret's) and what would be right. A complaint of Validate about a variable
// that could not even be read is left out. The warnings name set variables
// that nobody reads, each with the nearest known name.
//
// Load changes the environment of the process while it works and puts it back:
// call it before anything else runs.
func Load(specs ...any) (warnings []string, err error) {
	fields := fieldsOf(specs)
	hidden := environment{}
	defer hidden.restore()
	for _, f := range fields {
		hidden.hideEmpty(f)
	}
	l := loader{hidden: hidden, bad: map[string]bool{}}
	for _, f := range fields {
		l.checkNumber(f)
	}
	for _, spec := range specs {
		l.process(spec)
	}
	for _, f := range fields {
		l.openSecret(f)
	}
	for _, spec := range specs {
		l.validate(reflect.ValueOf(spec))
	}
	return unknown(fields), errors.Join(l.faults...)
}

// environment remembers variables that were taken out of it.
type environment map[string]string

func (e environment) hide(name string) {
	if value, ok := os.LookupEnv(name); ok {
		e[name] = value
		os.Unsetenv(name)
	}
}

func (e environment) hideEmpty(f field) {
	for _, name := range f.names() {
		if os.Getenv(name) == "" {
			e.hide(name)
		}
	}
}

func (e environment) restore() {
	for name, value := range e {
		os.Setenv(name, value)
	}
}

type loader struct {
	hidden environment
	bad    map[string]bool // variables that already have a fault
	faults []error
}

// fault notes what is wrong with a variable and hides it, so that the next
// round goes on with its default.
func (l *loader) fault(name, right string) {
	value := shorten(hideSecrets(os.Getenv(name)))
	l.faults = append(l.faults, fmt.Errorf("cannot use %s=%q: %s", name, value, right))
	l.bad[name] = true
	l.hidden.hide(name)
}

// process reads one struct. envconfig stops at its first fault: each is noted
// and its variable hidden until a round passes.
func (l *loader) process(spec any) {
	for {
		err := envconfig.Process(prefix, spec)
		if err == nil {
			return
		}
		parse, ok := errors.AsType[*envconfig.ParseError](err)
		if !ok {
			l.faults = append(l.faults, fmt.Errorf("cannot read the settings of %T: %w", spec, err))
			return
		}
		if _, set := os.LookupEnv(parse.KeyName); !set {
			l.faults = append(l.faults, fmt.Errorf("the default of %s is wrong: %w", parse.KeyName, parse.Err))
			return
		}
		l.fault(parse.KeyName, right(parse))
	}
}

// right says what a value that cannot be read ought to be.
func right(parse *envconfig.ParseError) string {
	switch parse.TypeName {
	case "time.Duration":
		if _, err := strconv.ParseFloat(parse.Value, 64); err == nil {
			return fmt.Sprintf("a duration needs a unit, for example %ss or %sms", parse.Value, parse.Value)
		}
		return "it is no duration, such as 500ms, 5s or 1m30s"
	case "bool":
		return "give true or false"
	case "float32", "float64":
		return "it is no number, such as 1 or 0.5"
	}
	return parse.Err.Error()
}

// checkNumber refuses what envconfig would take for another number: it reads
// 010 as 8, and NaN as a number.
func (l *loader) checkNumber(f field) {
	value, set := os.LookupEnv(f.name)
	if !set || f.kind() == reflect.TypeFor[time.Duration]() || f.readsItself() {
		return
	}
	bits := 0
	if k := f.kind().Kind(); k >= reflect.Int && k <= reflect.Float64 {
		bits = f.kind().Bits()
	}
	switch f.kind().Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n, err := strconv.ParseInt(value, 10, bits); err != nil || strconv.FormatInt(n, 10) != value {
			l.fault(f.name, fmt.Sprintf("give a whole decimal number, %d to %d", -1<<(bits-1), 1<<(bits-1)-1))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n, err := strconv.ParseUint(value, 10, bits); err != nil || strconv.FormatUint(n, 10) != value {
			l.fault(f.name, fmt.Sprintf("give a whole decimal number, 0 to %d", uint64(1)<<bits-1))
		}
	case reflect.Float32, reflect.Float64:
		if n, err := strconv.ParseFloat(value, bits); err != nil || n != n || n-n != 0 {
			l.fault(f.name, "it is no number, such as 1 or 0.5")
		}
	}
}

// openSecret gives a secret its file and reads it once, so that a wrong path
// is found at start.
func (l *loader) openSecret(f field) {
	s, ok := f.value.Addr().Interface().(*Secret)
	path := os.Getenv(f.name + fileSuffix)
	if !ok || path == "" {
		return
	}
	if os.Getenv(f.name) != "" {
		l.fault(f.name+fileSuffix, f.name+" is given too; give one of them")
		return
	}
	s.at(f.name+fileSuffix, path)
	if _, err := s.Value(); err != nil {
		l.faults = append(l.faults, err)
		l.bad[f.name+fileSuffix] = true
	}
}

type validator interface{ Validate() error }

// validate asks the embedded structs first. A method that the outer struct has
// only by embedding gives the same complaints again: they are noted once.
func (l *loader) validate(v reflect.Value) {
	for i := range v.Elem().NumField() {
		if inner := v.Elem().Field(i); v.Elem().Type().Field(i).IsExported() && inner.Kind() == reflect.Struct {
			l.validate(inner.Addr())
		}
	}
	if v, ok := v.Interface().(validator); ok {
		for _, err := range flatten(v.Validate()) {
			l.complain(err)
		}
	}
}

var nameInText = regexp.MustCompile(prefix + `_[A-Z0-9_]+`)

func (l *loader) complain(err error) {
	for _, name := range nameInText.FindAllString(err.Error(), -1) {
		if l.bad[name] {
			return
		}
	}
	same := func(e error) bool { return e.Error() == err.Error() }
	if !slices.ContainsFunc(l.faults, same) {
		l.faults = append(l.faults, err)
	}
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}

// shorten keeps a value that fills pages out of an error.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
