package postgres

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/claybot/claybot/storage/relational"
)

// A session executes the statements of package relational on a connection. It
// implements relational.Session.
//
// A statement whose result is not used is queued and sent together with the next one
// that has a result, or with the commit: that saves round trips. Queued writes of
// different tables become one statement, see merged.
type session struct {
	ctx   context.Context //nolint:containedctx // of the one transaction or read that it lives for
	conn  *pgx.Conn
	noted []queued
	rows  rows
	sent  bool // something was sent to the server
}

// A queued is a statement that is not sent yet.
type queued struct {
	statement
	args []any
	told func(r relational.Row) // receives the rows; nil: there are none
}

// note queues a statement that is in the dialect of the server, and is not merged.
func (s *session) note(q string, args ...any) {
	s.queue(queued{statement: statement{sql: q}, args: args})
}

func (s *session) queue(q queued) {
	s.noteRows()
	s.noted = append(s.noted, q)
}

// Do implements relational.Session. Consecutive rows of one table are inserted by one
// statement.
func (s *session) Do(q string, args []any) (changed bool, err error) {
	t := translate(q)
	if t.values == "" {
		s.queue(queued{statement: t, args: t.parameters(args)})
		return true, nil // not known yet
	}
	if s.rows.sql != t.sql || s.rows.n == maxRows {
		s.noteRows()
		s.rows.statement = t
	}
	s.rows.n++
	s.rows.args = append(s.rows.args, t.parameters(args)...)
	return true, nil
}

// noteRows queues the collected rows.
func (s *session) noteRows() {
	if s.rows.n > 0 {
		s.noted = append(s.noted, s.rows.insert())
	}
	s.rows = rows{}
}

func (s *session) Later(q string, f func(r relational.Row), args []any) error {
	t := translate(q)
	s.queue(queued{t, t.parameters(args), f})
	return nil
}

func (s *session) Exec(q string, args []any) (n int64, err error) {
	t := translate(q)
	s.note(t.sql, t.parameters(args)...)
	err = s.send(1, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// Each implements relational.Session. It reads all rows before f gets the first,
// because a connection answers one query at a time.
func (s *session) Each(q string, f func(r relational.Row) error, args []any) error {
	return s.Ask([]relational.Ask{{Query: q, Row: f, Args: args}})
}

func (s *session) Ask(asks []relational.Ask) error {
	if len(asks) == 0 {
		return nil
	}
	for _, a := range asks {
		t := translate(a.Query)
		s.note(t.sql, t.parameters(a.Args)...)
	}
	all := make([][]relational.Row, 0, len(asks))
	err := s.send(len(asks), func(results pgx.BatchResults) error {
		rows, err := allRows(results)
		all = append(all, rows)
		return err
	})
	if err != nil {
		return err
	}
	for i, a := range asks {
		for _, r := range all[i] {
			if err := a.Row(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// allRows reads the rows of the next result.
func allRows(results pgx.BatchResults) (all []relational.Row, err error) {
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if values[i], err = plain(v); err != nil {
				return nil, err
			}
		}
		all = append(all, values)
	}
	return all, rows.Err()
}

// commit sends the queued statements and commits.
func (s *session) commit() error {
	s.note("commit")
	return s.send(1, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = fmt.Errorf("the transaction ended with %s", tag)
		}
		return err
	})
}

// send sends the queued statements and passes the results of the last k statements to
// read, in order.
func (s *session) send(k int, read func(results pgx.BatchResults) error) error {
	s.noteRows()
	last := len(s.noted) - k
	first := merged(s.noted[:last])
	var batch pgx.Batch
	for _, q := range first {
		batch.Queue(q.sql, q.args...)
	}
	for _, q := range s.noted[last:] {
		batch.Queue(q.sql, q.args...)
	}
	s.sent, s.noted = true, nil
	results := s.conn.SendBatch(s.ctx, &batch)
	err := func() error {
		for _, q := range first {
			if err := tell(results, q.told); err != nil {
				return err
			}
		}
		for range k {
			if err := read(results); err != nil {
				return err
			}
		}
		return nil
	}()
	if cerr := results.Close(); err == nil {
		err = cerr
	}
	return classify(err)
}

// tell reads the next result and passes its rows to row, unless row is nil.
func tell(results pgx.BatchResults, row func(r relational.Row)) error {
	if row == nil {
		_, err := results.Exec()
		return err
	}
	rows, err := allRows(results)
	if err != nil {
		return err
	}
	for _, r := range rows {
		row(r)
	}
	return nil
}

// plain converts v to a type that relational uses: string, int64, []byte or nil.
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

// PostgreSQL rejects NUL and invalid UTF-8 in a text. NUL is stored as escape and '0',
// escape itself as escape and '1', an invalid byte as escape, 'x' and two hex digits.
// JSON contains none of them.
const escape = "\x01"

var (
	escapes   = strings.NewReplacer("\x00", escape+"0", escape, escape+"1")
	unescapes = strings.NewReplacer(unescaping()...)
)

func unescaping() []string {
	pairs := []string{escape + "0", "\x00", escape + "1", escape}
	for b := 0x80; b <= 0xff; b++ { // smaller values are valid UTF-8
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

// restored is the inverse of storable.
func restored(s string) string {
	if strings.Contains(s, escape) {
		return unescapes.Replace(s)
	}
	return s
}
