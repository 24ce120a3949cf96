package setting

import "strings"

// List is a setting of several values: separated by commas, blanks around each
// trimmed, empty ones dropped.
type List []string

// Set reads the list from a variable.
func (l *List) Set(value string) error {
	*l = nil
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			*l = append(*l, item)
		}
	}
	return nil
}

// String gives the values with a comma between them.
func (l List) String() string { return strings.Join(l, ",") }
