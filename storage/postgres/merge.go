package postgres

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/claybot/claybot/lazyregexp"
)

// maxRows bounds the rows of one statement, and so the number of prepared statements.
const maxRows = 16

// rows are rows to insert by one statement.
type rows struct {
	statement
	n    int
	args []any
}

// listed are the types of the columns of tables whose rows are inserted as arrays if
// there are several, so that their number does not make another prepared statement.
var listed = map[string][]string{
	"INSERT INTO events (run, seq, v, type, at, data) VALUES ": {"text", "bigint", "bigint", "text", "bigint", "text"},
	"INSERT INTO records (agent, n, body, crc) VALUES ":        {"text", "bigint", "text", "bigint"},
}

// insert returns the statement that inserts all rows.
func (r rows) insert() queued {
	q := queued{statement: r.statement, args: r.args}
	if r.n == 1 {
		return q
	}
	if types := listed[r.before]; types != nil && r.after == "" {
		q.sql, q.args = r.unnest(types)
		return q
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
	q.sql = b.String()
	return q
}

// unnest returns the statement that inserts all rows from an array for each column.
func (r rows) unnest(types []string) (sql string, args []any) {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(r.before, "VALUES ") + "SELECT * FROM unnest(")
	for k, t := range types {
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(k+1) + "::" + t + "[]")
		if t == "bigint" {
			args = append(args, column[int64](r, k, func(v int64, valid bool) pgtype.Int8 { return pgtype.Int8{Int64: v, Valid: valid} }))
		} else {
			args = append(args, column[string](r, k, func(v string, valid bool) pgtype.Text { return pgtype.Text{String: v, Valid: valid} }))
		}
	}
	b.WriteString(")")
	return b.String(), args
}

// column returns the values of one column as an array.
func column[T, V any](r rows, k int, value func(v T, valid bool) V) pgtype.FlatArray[V] {
	all := make(pgtype.FlatArray[V], r.n)
	for i := range all {
		v, ok := r.args[i*r.params+k].(T)
		all[i] = value(v, ok)
	}
	return all
}

// mostParams bounds the parameters of a merged statement; the server allows 65,535.
const mostParams = 1000

// merged joins consecutive writes into single statements, in which each but the last is a
// WITH clause: a statement costs the server and the network more than what it writes. All
// clauses read what was there before the statement, in any order, so they write different
// tables and none reads a table that another one writes. The one exception is the row
// number of a message, which the clause that inserts the message returns.
func merged(list []queued) []queued {
	all := make([]queued, 0, len(list))
	var g group
	for _, q := range list {
		if !g.takes(q) {
			all = g.appendTo(all)
			g = group{}
		}
		if q.writes == "" {
			all = append(all, q)
			continue
		}
		g.list = append(g.list, q)
		g.params += len(q.args)
	}
	return g.appendTo(all)
}

// A group is writes that become one statement.
type group struct {
	list   []queued
	params int
}

// takes reports whether q may become part of the statement.
func (g *group) takes(q queued) bool {
	if q.writes == "" || g.params+len(q.args) > mostParams {
		return false
	}
	inserted := len(g.list) == 0
	for _, other := range g.list {
		if other.writes == q.writes || other.rowOf > 0 && q.writes == "messages" || other.told != nil && q.told != nil {
			return false
		}
		inserted = inserted || q.rowOf > 0 && other.inserts("messages", q.args[q.rowOf-1])
	}
	return q.rowOf == 0 || inserted
}

// inserts reports whether q inserts a row of a table with an id.
func (q queued) inserts(table string, id any) bool {
	if q.writes != table || q.params == 0 {
		return false
	}
	for i := 0; i < len(q.args); i += q.params {
		if q.args[i] == id {
			return true
		}
	}
	return false
}

// appendTo appends the statement of the group, if it has one.
func (g *group) appendTo(all []queued) []queued {
	last := len(g.list) - 1
	if last < 1 {
		return append(all, g.list...)
	}
	if i := slices.IndexFunc(g.list, func(q queued) bool { return q.told != nil }); i >= 0 { // it must be the main one
		q := g.list[i]
		g.list = append(slices.Delete(g.list, i, i+1), q)
	}
	main := queued{told: g.list[last].told, args: make([]any, 0, g.params)}
	var key strings.Builder
	for _, q := range g.list {
		key.WriteString(q.sql)
		key.WriteByte(0)
		main.args = append(main.args, q.args...)
	}
	sql, ok := mergedTexts.Load(key.String())
	if !ok {
		sql = mergedSQL(g.list)
		mergedTexts.Store(key.String(), sql)
	}
	main.sql = sql.(string) //nolint:forcetypeassert // has no other type
	return append(all, main)
}

var (
	// mergedTexts caches the merged statements; there are as many as kinds of transactions.
	mergedTexts sync.Map
	parameter   = lazyregexp.New(`\$\d+`)
)

// mergedSQL returns the statement whose clauses are those of list, the last the main one.
func mergedSQL(list []queued) string {
	var b strings.Builder
	message, offset, last := "", 0, len(list)-1
	for k, q := range list {
		sql, name := q.sql, "w"+strconv.Itoa(k)
		if message != "" {
			sql = rowOfMessage.ReplaceAllString(sql, "(SELECT rowid FROM "+message+" WHERE id = $$$1)")
		}
		sql = parameter.ReplaceAllStringFunc(sql, func(p string) string {
			n, err := strconv.Atoi(p[1:])
			if err != nil {
				panic(err) // digits
			}
			return "$" + strconv.Itoa(n+offset)
		})
		offset += len(q.args)
		if q.writes == "messages" && q.params > 0 && k < last {
			message = name
			sql += " RETURNING id, rowid"
		}
		switch {
		case k == last:
			b.WriteString(" " + sql)
		case k == 0:
			b.WriteString("WITH " + name + " AS (" + sql + ")")
		default:
			b.WriteString(", " + name + " AS (" + sql + ")")
		}
	}
	return b.String()
}
