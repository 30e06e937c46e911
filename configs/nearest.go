package configs

import "strings"

// Nearest returns the known key that key was most likely meant to be, empty
// when none is close.
func Nearest(key string, known []string) string {
	best, _ := nearest(key, known)
	return best
}

// nearest is Nearest, and reports whether no other one is as close.
func nearest(key string, known []string) (best string, sole bool) {
	least := 1 + max(2, len(key)/3)
	for _, k := range known {
		if plain(k) == plain(key) {
			return k, true
		}
		switch d := distance(plain(key), plain(k)); {
		case d < least && d < len(k):
			best, least, sole = k, d, true
		case d == least && best != "":
			sole = false
		}
	}
	return best, sole
}

// plain removes what people mix up: case, underscores and dashes.
func plain(key string) string { return separators.Replace(strings.ToLower(key)) }

var separators = strings.NewReplacer("_", "", "-", "") // building it costs more than using it

// maxDistance bounds the work for keys that match no known one.
const maxDistance = 64

// distance is the Levenshtein distance of a and b in bytes.
func distance(a, b string) int {
	if len(a) > maxDistance || len(b) > maxDistance {
		return max(len(a), len(b))
	}
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
