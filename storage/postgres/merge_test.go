package postgres

import (
	"slices"
	"testing"

	"github.com/claybot/claybot/storage/relational"
)

// TestMerged: writes of different tables become one statement; what reads, or writes a
// table again, begins the next one.
func TestMerged(t *testing.T) {
	const message = "INSERT INTO messages (id, agent) VALUES (?, ?)"
	const newest = "UPDATE agents SET last_user_n = (SELECT rowid FROM messages WHERE id = ?2) WHERE id = ?1"
	type do struct {
		q    string
		args []any
	}
	for name, test := range map[string]struct {
		do   []do
		want []string
		args int // of the first statement
	}{
		"one": {[]do{{"UPDATE a SET x = ?", []any{"1"}}}, []string{"UPDATE a SET x = $1"}, 1},
		"two": {
			[]do{{"UPDATE a SET x = ? WHERE y = ?", []any{"1", "2"}}, {"INSERT INTO b (x) VALUES (?)", []any{"3"}}},
			[]string{"WITH w0 AS (UPDATE a SET x = $1 WHERE y = $2) INSERT INTO b (x) VALUES ($3)"},
			3,
		},
		"the same table": {
			[]do{{"UPDATE a SET x = ?", []any{"1"}}, {"DELETE FROM a WHERE x = ?", []any{"1"}}},
			[]string{"UPDATE a SET x = $1", "DELETE FROM a WHERE x = $1"},
			1,
		},
		"a reader": {
			[]do{{"UPDATE a SET x = ?", []any{"1"}}, {"INSERT INTO b (x) SELECT x FROM a", nil}, {"UPDATE c SET x = ?", []any{"1"}}},
			[]string{"UPDATE a SET x = $1", "INSERT INTO b (x) SELECT x FROM a", "UPDATE c SET x = $1"},
			1,
		},
		"the row of a message": {
			[]do{{message, []any{"m1", "a"}}, {message, []any{"m2", "a"}}, {newest, []any{"a", "m1"}}},
			[]string{"WITH w0 AS (INSERT INTO messages (id, agent) VALUES ($1, $2), ($3, $4) RETURNING id, rowid)" +
				" UPDATE agents SET last_user_n = (SELECT rowid FROM w0 WHERE id = $6) WHERE id = $5"},
			6,
		},
		"the row of an earlier message": {
			[]do{{message, []any{"m2", "a"}}, {newest, []any{"a", "m1"}}, {message, []any{"m3", "a"}}},
			[]string{
				"INSERT INTO messages (id, agent) VALUES ($1, $2)",
				"UPDATE agents SET last_user_n = (SELECT rowid FROM messages WHERE id = $2) WHERE id = $1",
				"INSERT INTO messages (id, agent) VALUES ($1, $2)",
			},
			2,
		},
		"rows of columns": {
			[]do{
				{"INSERT INTO records (agent, n, body, crc) VALUES (?, ?, ?, ?)", []any{"a", int64(1), "x", int64(2)}},
				{"INSERT INTO records (agent, n, body, crc) VALUES (?, ?, ?, ?)", []any{"a", int64(2), nil, int64(3)}},
			},
			[]string{"INSERT INTO records (agent, n, body, crc) SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])"},
			4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{}
			for _, d := range test.do {
				if _, err := s.Do(d.q, d.args); err != nil {
					t.Fatal(err)
				}
			}
			s.noteRows()
			var got []string
			all := merged(s.noted)
			for _, q := range all {
				got = append(got, q.sql)
			}
			if !slices.Equal(got, test.want) || len(all[0].args) != test.args {
				t.Errorf("got %q with %d parameters", got, len(all[0].args))
			}
		})
	}
}

// TestMergedRows: the statement that returns rows is the main one, the others keep their
// order.
func TestMergedRows(t *testing.T) {
	const row = "INSERT INTO outbox (id) VALUES (?) RETURNING n"
	const message = "INSERT INTO messages (id) VALUES (?)"
	const newest = "UPDATE agents SET last_user_n = (SELECT rowid FROM messages WHERE id = ?2) WHERE id = ?1"
	type do struct {
		q    string
		args []any
	}
	for name, test := range map[string]struct {
		told string
		args []any
		do   []do
		want []string
		main []any // the arguments of the last statement
	}{
		"first": {
			row,
			[]any{"o"},
			[]do{{"UPDATE a SET x = ?", []any{"1"}}, {"UPDATE b SET x = ?", []any{"2"}}},
			[]string{"WITH w0 AS (UPDATE a SET x = $1), w1 AS (UPDATE b SET x = $2) INSERT INTO outbox (id) VALUES ($3) RETURNING n"},
			[]any{"1", "2", "o"},
		},
		"before a message and its row": {
			row,
			[]any{"o"},
			[]do{{message, []any{"m"}}, {newest, []any{"a", "m"}}},
			[]string{"WITH w0 AS (INSERT INTO messages (id) VALUES ($1) RETURNING id, rowid)," +
				" w1 AS (UPDATE agents SET last_user_n = (SELECT rowid FROM w0 WHERE id = $3) WHERE id = $2)" +
				" INSERT INTO outbox (id) VALUES ($4) RETURNING n"},
			[]any{"m", "a", "m", "o"},
		},
		"a message whose row is read": {
			message + " RETURNING n",
			[]any{"m"},
			[]do{{newest, []any{"a", "m"}}},
			[]string{
				"INSERT INTO messages (id) VALUES ($1) RETURNING n",
				"UPDATE agents SET last_user_n = (SELECT rowid FROM messages WHERE id = $2) WHERE id = $1",
			},
			[]any{"a", "m"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{}
			told := false
			if err := s.Later(test.told, func(relational.Row) { told = true }, test.args); err != nil {
				t.Fatal(err)
			}
			for _, d := range test.do {
				if _, err := s.Do(d.q, d.args); err != nil {
					t.Fatal(err)
				}
			}
			s.noteRows()
			var got []string
			all := merged(s.noted)
			for _, q := range all {
				got = append(got, q.sql)
				if q.told != nil {
					q.told(nil)
				}
			}
			if !slices.Equal(got, test.want) || !slices.Equal(all[len(all)-1].args, test.main) || !told {
				t.Errorf("got %q with %v; told: %v", got, all[len(all)-1].args, told)
			}
		})
	}
}
