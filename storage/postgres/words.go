package postgres

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/claybot/claybot/storage/relational"
)

// words finds notes by the vectors of their words. What a word is, and that
// accents do not count, is decided here: the extension for that is not on every
// server.
var words = relational.Words{
	Match: func(words []string) string {
		parts := make([]string, 0, len(words))
		for _, w := range words {
			if w = fold(w); w != "" {
				parts = append(parts, w+":*")
			}
		}
		return strings.Join(parts, " & ")
	},
	Find: `%s, m.text FROM memories m JOIN memory_versions v USING (version), to_tsquery('simple', ?) q
		WHERE m.words @@ q AND m.scope IN (%s) ORDER BY ts_rank('{0, 0, 0.25, 1}', m.words, q) DESC, m.path LIMIT 0+?`,
	Excerpt: excerpt,
	Save: `UPDATE memories SET words = setweight(to_tsvector('simple', ?), 'A') || setweight(to_tsvector('simple', ?), 'B')
		WHERE scope = ? AND path = ?`,
	Fold: fold,
}

// fold is a text in small letters without accents, its words parted by single
// spaces.
func fold(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(text, " ")) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if gap && b.Len() > 0 {
				b.WriteByte(' ')
			}
			gap = false
			b.WriteRune(unicode.ToLower(r))
		default:
			gap = true
		}
	}
	return b.String()
}

// excerptWords is how many words of a note an excerpt has.
const excerptWords = 24

// excerpt is the part of a text around the first of some words.
func excerpt(text string, words []string) string {
	all := strings.Fields(text)
	first := 0
find:
	for i, w := range all {
		for _, want := range words {
			if strings.Contains(fold(w), fold(want)) {
				first = max(0, i-excerptWords/4)
				break find
			}
		}
	}
	end := min(len(all), first+excerptWords)
	s := strings.Join(all[first:end], " ")
	if first > 0 {
		s = "… " + s
	}
	if end < len(all) {
		s += " …"
	}
	return s
}
