// Package hint guesses which known word a mistyped one was meant to be.
package hint

import "slices"

// most bounds what is looked at of a word, in bytes: it may be a stranger's.
const most = 64

// Meant gives "; did you mean WORD?" with the nearest known word, "" without
// one that is near enough.
func Meant(word string, known []string) string { return MeantBehind("", word, known) }

// MeantBehind is Meant for words that all begin with prefix, which does not
// count as alike.
func MeantBehind(prefix, word string, known []string) string {
	if best := nearest(word, known, len(prefix)); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

// nearest is the known word that takes the fewest letters to add, drop or
// change (Levenshtein), the alphabetically first of equals; "" when more than a
// third of the letters behind the prefix would have to differ.
func nearest(word string, known []string, prefix int) string {
	word = word[:min(len(word), most)]
	best, least := "", (len(word)-prefix)/3+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
