package setting

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Variable is one name in the environment.
type Variable struct {
	Name    string // SIDEBEAT_...
	Default string // what an unset variable means; "": see Doc
	Doc     string // one line
	Secret  bool   // its value is never shown
}

// Variables lists every variable of the structs, in the order of the fields. A
// secret is followed by its _FILE twin.
func Variables(specs ...any) []Variable {
	var all []Variable
	for _, f := range fieldsOf(specs) {
		v := Variable{Name: f.name, Default: f.tags.Get("default"), Doc: f.tags.Get("desc"), Secret: f.secret()}
		all = append(all, v)
		if v.Secret {
			doc := "file that holds " + f.name + " instead; read again when it changes"
			all = append(all, Variable{Name: f.name + fileSuffix, Doc: doc})
		}
	}
	return all
}

// Help writes the table of all variables for --help.
func Help(w io.Writer, specs ...any) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range Variables(specs...) {
		doc := v.Doc
		if v.Default != "" {
			doc += " (" + v.Default + ")"
		}
		fmt.Fprintf(table, "  %s\t%s\n", v.Name, doc)
	}
	table.Flush()
}

// Print writes the settings in force as NAME=value, one a line. Secrets are
// hidden, also those within URLs; a value with blanks or worse is quoted.
func Print(w io.Writer, specs ...any) {
	for _, f := range fieldsOf(specs) {
		fmt.Fprintf(w, "%s=%s\n", f.name, quote(hideSecrets(show(f))))
		if s, ok := f.value.Addr().Interface().(*Secret); ok && s.source != nil && s.source.path != "" {
			fmt.Fprintf(w, "%s=%s\n", f.name+fileSuffix, quote(s.source.path))
		}
	}
}

func show(f field) string {
	switch v := f.value.Addr().Interface().(type) {
	case *Secret:
		return v.String()
	case interface{ MarshalText() ([]byte, error) }:
		text, err := v.MarshalText()
		if err != nil {
			return err.Error()
		}
		return string(text)
	case fmt.Stringer:
		return v.String()
	}
	if f.kind().Kind() == reflect.Pointer && f.value.IsNil() {
		return ""
	}
	return fmt.Sprint(f.value.Interface())
}

func quote(s string) string {
	plain := func(r rune) bool {
		return r > ' ' && r < 0x7f && !strings.ContainsRune("\"'`\\$", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

var secretsWithin = regexp.MustCompile(`://[^\s,?#]*@` + // a login in a URL
	`|[?&#]header=[^&\s#]*?(:|%3[Aa])[^&\s#]*` + // what a check sends
	`|[?&#]env=[^&\s#]*?(=|%3[Dd])[^&\s#]*`) // what its program is given

// hideSecrets takes out of the URLs within a text what nobody should read over
// a shoulder: logins, values of headers and of environments.
func hideSecrets(s string) string {
	return secretsWithin.ReplaceAllStringFunc(s, func(found string) string {
		if strings.HasPrefix(found, "://") {
			return "://***@"
		}
		name, _, _ := strings.Cut(found, "=")
		rest := found[len(name)+1:]
		end := strings.IndexAny(rest, ":=%")
		return name + "=" + rest[:end+1] + "***"
	})
}
