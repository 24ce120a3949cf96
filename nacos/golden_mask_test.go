package nacos

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// volatile are the keys whose values no two runs share.
var volatile = []string{
	"lastRefTime", "checksum", "timestamp", "server_port", "cpu", "load", "mem", "responsibleServer", "lastRefreshTime",
}

// created is the time on a page that tells an error.
var created = regexp.MustCompile(`<div id='created'>[^<]*</div>`)

// token is a JWT.
var token = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]*`)

// ownPort is where a text tells the port of the server.
var ownPort = regexp.MustCompile(`local port:\d*`)

// snowflake is the number an id starts with when a generator made it.
var snowflake = regexp.MustCompile(`^\d{12,}#`)

// masked writes a JSON body anew: volatile values away, keys and lists sorted
// (the order of hosts and names means nothing).
func masked(body string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return created.ReplaceAllString(body, "<div id='created'>*</div>")
	}
	b, err := json.MarshalIndent(mask(v), "", " ")
	if err != nil {
		return body
	}
	return string(b)
}

func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = mask(v[k])
			if slices.Contains(volatile, k) {
				v[k] = "*"
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return cmp.Compare(text(a), text(b)) })
	case string:
		v = ownPort.ReplaceAllString(snowflake.ReplaceAllString(v, "NUMBER#"), "local port:PORT")
		return token.ReplaceAllString(v, "TOKEN")
	}
	return v
}

func text(v any) string {
	b, _ := json.Marshal(v) // came from JSON
	return string(b)
}
