package nacos

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var writeDocs = flag.Bool("update", false, "write the differences in docs/nacos-compatibility.md anew")

const (
	documentName = "../docs/nacos-compatibility.md"
	tableBegins  = "<!-- made by: go test ./nacos -run TestGolden -update -->\n"
	tableEnds    = "<!-- end of what is made -->\n"
)

// documentDifferences keeps the document true: what stands between its marks
// is made from the differences that were met, with an example of each.
func documentDifferences(t *testing.T, c *score) {
	t.Helper()
	text, err := os.ReadFile(documentName)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	made, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no marks %q and %q", documentName, tableBegins, tableEnds)
	}
	want := c.document()
	if made == want {
		return
	}
	if !*writeDocs {
		t.Errorf("%s does not tell the differences as they are: go test ./nacos -run TestGolden -update", documentName)
		return
	}
	if err := os.WriteFile(documentName, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *score) document() string {
	var b strings.Builder
	met := slices.SortedFunc(maps.Keys(c.examples), func(x, y difference) int { return strings.Compare(x.where, y.where) })
	fmt.Fprintf(&b, "\n%d of %d recorded answers are equal. The others differ on purpose:\n\n", c.equal, c.all)
	b.WriteString("| where | recorded | here | reason | answers |\n|---|---|---|---|---|\n")
	for _, d := range met {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d |\n", d.where, d.nacos, d.ours, d.why, c.times[d])
	}
	b.WriteString("\nThe first recorded answer of each that is not ours:\n")
	for _, d := range met {
		e := c.examples[d]
		fmt.Fprintf(&b, "\n**%s** (%s)\n\n```\n%s\nrecorded: %s\nhere:     %s\n```\n", d.where, e.scenario, e.asked, e.want, e.got)
	}
	b.WriteString("\n")
	return b.String()
}

// exampleLength is as much of a body as an example shows, bytes.
const exampleLength = 400

// String shows an answer on one line.
func (s shape) String() string {
	body := s.Body
	var v any
	if json.Unmarshal([]byte(body), &v) == nil {
		if b, err := encode(v); err == nil {
			body = string(b)
		}
	}
	if len(body) > exampleLength {
		body = strings.ToValidUTF8(body[:exampleLength], "") + "..."
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", s.Status, strings.Join(strings.Fields(body), " ")))
}
