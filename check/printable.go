package check

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxReason is the length of a Reason in bytes, at most.
const maxReason = 200

// printable makes one line of printable UTF-8 of any bytes, maxReason bytes
// long at most: it stands in logs, on status pages and in metrics, and may come
// from a stranger. Control bytes, invalid UTF-8 and invisible or direction-
// changing runes are escaped as in Go source.
func printable(text string) string {
	const cut = "..."
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		piece := text[i : i+size]
		if r == utf8.RuneError && size == 1 || !strconv.IsPrint(r) {
			piece = strconv.Quote(piece)
			piece = piece[1 : len(piece)-1]
		}
		if b.Len()+len(piece) > maxReason-len(cut) && !fits(text[i:], maxReason-b.Len()) {
			return b.String() + cut
		}
		b.WriteString(piece)
		i += size
	}
	return b.String()
}

// fits tells whether text needs no escape and no more than room bytes.
func fits(text string, room int) bool {
	if len(text) > room {
		return false
	}
	for _, r := range text {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
