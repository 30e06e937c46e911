package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/claybot/claybot/storage/relational"
)

// A session brings the statements of package relational to a connection. It
// implements relational.Session.
//
// A statement of which nobody needs the result is noted down and goes to the
// server together with the next one that has a result, or with the commit: what
// costs time is the way there and back, not the statement.
type session struct {
	ctx   context.Context //nolint:containedctx // of the one transaction or read that it lives for
	conn  *pgx.Conn
	noted pgx.Batch
	sent  bool // something has gone to the server
}

// note keeps a statement for the next time that something goes to the server.
func (s *session) note(q string, args ...any) { s.noted.Queue(q, args...) }

// Do implements relational.Session.
func (s *session) Do(q string, args []any) (changed bool, err error) {
	t := translate(q)
	s.note(t.sql, t.parameters(args)...)
	return true, nil // nobody knows yet
}

// Exec implements relational.Session.
func (s *session) Exec(q string, args []any) (n int64, err error) {
	t := translate(q)
	s.note(t.sql, t.parameters(args)...)
	err = s.send(func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// Each implements relational.Session. All rows are read before f sees the first,
// because a connection answers one query at a time.
func (s *session) Each(q string, f func(r relational.Row) error, args []any) error {
	t := translate(q)
	s.note(t.sql, t.parameters(args)...)
	var all []relational.Row
	err := s.send(func(results pgx.BatchResults) error {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return err
			}
			for i, v := range values {
				if values[i], err = plain(v); err != nil {
					return err
				}
			}
			all = append(all, values)
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// commit sends what is noted, and the end of the transaction.
func (s *session) commit() error {
	s.note("commit")
	return s.send(func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = fmt.Errorf("the transaction ended with %s", tag)
		}
		return err
	})
}

// send brings all that is noted to the server and lets last read the result of the
// last statement.
func (s *session) send(last func(results pgx.BatchResults) error) error {
	batch := &pgx.Batch{QueuedQueries: s.noted.QueuedQueries}
	n := batch.Len()
	s.sent = true
	s.noted.QueuedQueries = nil
	results := s.conn.SendBatch(s.ctx, batch)
	err := func() error {
		for range n - 1 {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		return last(results)
	}()
	if cerr := results.Close(); err == nil {
		err = cerr
	}
	return classify(err)
}

// plain is a value as relational knows it: string, int64, []byte or nil.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return restored(v), nil
	case nil, int64, []byte:
		return v, nil
	case int32:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case pgtype.Numeric: // sums of bigints
		n, err := v.Int64Value()
		return n.Int64, err
	default:
		return nil, fmt.Errorf("a column of type %T", v)
	}
}

// PostgreSQL stores no NUL in a text, and nothing that is not UTF-8. NUL is stored
// as escape and '0', escape itself as escape and '1', a byte that is not UTF-8 as
// escape, 'x' and two digits; JSON has none of them.
const escape = "\x01"

var (
	escapes   = strings.NewReplacer("\x00", escape+"0", escape, escape+"1")
	unescapes = strings.NewReplacer(unescaping()...)
)

func unescaping() []string {
	pairs := []string{escape + "0", "\x00", escape + "1", escape}
	for b := 0x80; b <= 0xff; b++ { // what is less is UTF-8
		pairs = append(pairs, escapedByte(byte(b)), string([]byte{byte(b)}))
	}
	return pairs
}

func escapedByte(b byte) string { return fmt.Sprintf("%sx%02x", escape, b) }

func storable(s string) string {
	if strings.ContainsAny(s, "\x00"+escape) {
		s = escapes.Replace(s)
	}
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b.WriteString(escapedByte(s[0]))
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// restored is the text that storable was given.
func restored(s string) string {
	if strings.Contains(s, escape) {
		return unescapes.Replace(s)
	}
	return s
}

// A statement is one of package relational in PostgreSQL's dialect.
type statement struct {
	sql   string
	lists []int // parameters that are lists, as JSON
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
	return t
}
