package postgres

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage/relational"
)

// A statement is a statement of package relational in PostgreSQL's dialect.
type statement struct {
	sql   string
	lists []int // parameters that are lists, as JSON
	// For a statement that only inserts a row: the text before its values, the values,
	// and the text after them.
	before, values, after string
	params                int
	// writes is the table that the statement writes if it reads no other one, but for the
	// row number of the message whose id is the parameter rowOf, from 1; see merged.
	writes string
	rowOf  int
}

// parameters converts args for the server.
func (t statement) parameters(args []any) []any {
	for i, a := range args {
		s, ok := a.(string)
		if !ok {
			continue
		}
		if !slices.Contains(t.lists, i) {
			args[i] = storable(s)
			continue
		}
		var list []string
		if json.Unmarshal([]byte(s), &list) != nil {
			list = nil // marshaled by relational
		}
		for k := range list {
			list[k] = storable(list[k])
		}
		args[i] = list
	}
	return args
}

// translated caches the statements; there are a few hundred.
var translated sync.Map

func translate(q string) statement {
	if t, ok := translated.Load(q); ok {
		return t.(statement) //nolint:forcetypeassert // has no other type
	}
	t := toPostgres(q)
	translated.Store(q, t)
	return t
}

var (
	indexedBy = lazyregexp.New(` INDEXED BY \w+`)
	jsonEach  = lazyregexp.New(`json_each\(\$(\d+)\)`)
	// marked matches a placeholder, or a string literal, which has none.
	marked = lazyregexp.New(`'[^']*'|\?\d*`)
)

// toPostgres replaces ? and ?1 by $1, removes planner hints, and passes lists as
// arrays.
func toPostgres(q string) statement {
	n := 0
	q = marked.ReplaceAllStringFunc(q, func(m string) string {
		switch {
		case m[0] == '\'':
			return m
		case m == "?":
			n++
			return "$" + strconv.Itoa(n)
		}
		return "$" + m[1:]
	})
	var t statement
	for _, m := range jsonEach.FindAllStringSubmatch(q, -1) {
		i, err := strconv.Atoi(m[1])
		if err != nil {
			panic(err) // digits
		}
		t.lists = append(t.lists, i-1)
	}
	q = indexedBy.ReplaceAllString(q, "")
	t.sql = jsonEach.ReplaceAllString(q, "unnest(CAST($$$1 AS TEXT[])) AS list (value)")
	if m := oneRow.FindStringSubmatch(t.sql); m != nil && len(t.lists) == 0 && strings.Count(m[2], "$") == n {
		t.before, t.values, t.after, t.params = m[1], m[2], m[3], n
	}
	m, reads := oneTable.FindStringSubmatch(t.sql), strings.Count(t.sql, "SELECT")
	if row := rowOfMessage.FindStringSubmatch(t.sql); row != nil {
		reads--
		t.rowOf, _ = strconv.Atoi(row[1]) // digits
	}
	if m != nil && reads == 0 {
		t.writes = m[1]
	}
	return t
}

var (
	// oneTable matches the beginning of a statement that writes a table.
	oneTable = lazyregexp.New(`^(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)\b`)
	// oneRow matches a statement that inserts one row and returns nothing.
	oneRow = lazyregexp.New(`^(INSERT INTO \w+ \([^()]+\)\s+VALUES )(\(\$\d+(?:, \$\d+)*\))( ON CONFLICT \([^()]+\) DO NOTHING)?$`)
	// rowOfMessage matches a query for the row number of a message.
	rowOfMessage = lazyregexp.New(`\(SELECT rowid FROM messages WHERE id = \$(\d+)\)`)
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
