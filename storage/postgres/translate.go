package postgres

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A statement is one of package relational in PostgreSQL's dialect.
type statement struct {
	sql   string
	lists []int // parameters that are lists, as JSON
	// Of one that does nothing but add a row: what stands before its values, the
	// values, and what stands behind them.
	before, values, after string
	params                int
}

// parameters are args as the server takes them.
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
			list = nil // it was made right here
		}
		for k := range list {
			list[k] = storable(list[k])
		}
		args[i] = list
	}
	return args
}

// translated has each statement once; there are some hundred.
var translated sync.Map

func translate(q string) statement {
	if t, ok := translated.Load(q); ok {
		return t.(statement) //nolint:forcetypeassert // nothing else is in it
	}
	t := toPostgres(q)
	translated.Store(q, t)
	return t
}

var (
	indexedBy = regexp.MustCompile(` INDEXED BY \w+`)
	jsonEach  = regexp.MustCompile(`json_each\(\$(\d+)\)`)
	// marked is a placeholder, or a text in which one would be none.
	marked = regexp.MustCompile(`'[^']*'|\?\d*`)
)

// toPostgres writes $1 for ? and ?1, leaves out hints for the planner, and takes
// lists as arrays.
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
	return t
}

// oneRow is a statement that adds one row and returns nothing of it.
var oneRow = regexp.MustCompile(`^(INSERT INTO \w+ \([^()]+\) VALUES )(\(\$\d+(?:, \$\d+)*\))( ON CONFLICT \([^()]+\) DO NOTHING)?$`)

// maxRows is how many rows one statement adds at most, so that there are few such
// statements to be prepared.
const maxRows = 16

// rows are rows that one statement is to add.
type rows struct {
	statement
	n    int
	args []any
}

// insert is the statement that adds all rows.
func (r rows) insert() string {
	if r.n == 1 {
		return r.sql
	}
	var b strings.Builder
	b.WriteString(r.before)
	for i := range r.n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(")
		for k := range r.params {
			if k > 0 {
				b.WriteString(", ")
			}
			b.WriteString("$" + strconv.Itoa(i*r.params+k+1))
		}
		b.WriteString(")")
	}
	b.WriteString(r.after)
	return b.String()
}
