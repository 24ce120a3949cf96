package setting

import (
	"bytes"
	"io"
)

// Terminal writes to w what people read: no control character of a name, a
// setting or an answer reaches it unescaped but the end of a line and a tab.
// Each Write must hold whole characters.
func Terminal(w io.Writer) io.Writer { return terminalWriter{w} }

type terminalWriter struct{ io.Writer }

func (t terminalWriter) Write(text []byte) (int, error) {
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		bare, ended := bytes.CutSuffix(line, []byte("\n"))
		for i, cell := range bytes.Split(bare, []byte("\t")) {
			if i > 0 {
				out = append(out, '\t')
			}
			out = append(out, escapeControls(string(cell))...)
		}
		if ended {
			out = append(out, '\n')
		}
	}
	if _, err := t.Writer.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}
