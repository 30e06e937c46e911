package postgres

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/relational"
)

// added waits until nothing is left to be added up: the store does so, too, and one
// transaction at a time.
func added(t *testing.T, db *DB) {
	t.Helper()
	waitFor(t, func() bool {
		var n int
		err := db.addUpNow(t.Context())
		if err == nil {
			err = db.pool.QueryRow(t.Context(), "SELECT count(*) FROM sums").Scan(&n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// TestSumsTogether has many transactions leave something while two others add it
// up: nothing is counted twice or lost, at no time.
func TestSumsTogether(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	const writers, each = 8, 25
	var writing, adding sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				o := claybot.Outgoing{ID: fmt.Sprintf("o-%d-%d", w, i), Text: "x", Route: claybot.Route{Connector: "c", ChannelID: fmt.Sprint(w)}}
				if _, err := db.Enqueue(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	for range 2 {
		adding.Go(func() {
			for done := false; !done; {
				select {
				case <-written:
					done = true
				default:
				}
				if err := db.addUpNow(t.Context()); err != nil {
					t.Error(err)
				}
				checkFigures(t, db)
			}
		})
	}
	writing.Wait()
	close(written)
	adding.Wait()
	added(t, db)
	f, err := db.Stats(t.Context())
	if err != nil || f.Outbox[claybot.SendWaiting] != writers*each {
		t.Errorf("got %v, %v", f.Outbox, err)
	}
}

// TestSumsSame has reports say the same before and after what was left is added
// up, also of names that the server does not store as they are.
func TestSumsSame(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	odd := "m\x00o\x01d\xff"
	leave := func(s relational.Sums) {
		t.Helper()
		q, arg, err := db.leave(s)
		if err == nil {
			_, err = db.pool.Exec(t.Context(), translate(q).sql, arg)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	spent := relational.SpentSum{
		Day: "2026-01-02", Agent: "a", Owner: "o", Model: odd, Type: "user", Connector: "web", Channel: "web:1",
		Input: 1, Output: 2, Cached: 3, Written: 4, Reasoning: 5, Cost: 6, Unpriced: 7, Calls: 8, Tools: 9, Runs: 10,
	}
	reports := func() (all []any) {
		t.Helper()
		for _, by := range [][]string{nil, {storage.ByModel}, {storage.ByAgent, storage.ByChannel}, {storage.ByDay, storage.ByType}} {
			sums, err := db.Spent(t.Context(), storage.SpentQuery{By: by})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sums)
		}
		spans, err := db.Latencies(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		return append(all, spans)
	}
	for round := range 3 { // the first finds nothing, the second adds to what there is
		if round > 0 {
			leave(relational.Sums{Spent: []relational.SpentSum{spent}, Latencies: []relational.LatencySum{{Day: "2026-01-02", What: "run", Bucket: 3, N: 2}}})
			again := spent
			again.Estimated = 1
			leave(relational.Sums{Spent: []relational.SpentSum{again}})
		}
		before := reports()
		if err := db.addUpNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := reports(); !reflect.DeepEqual(before, after) {
			t.Errorf("round %d: before %+v, after %+v", round, before, after)
		}
		sums := reports()[1].([]storage.Spent)
		if round > 0 && (len(sums) != 1 || sums[0].Model != odd || sums[0].Usage.Input != int64(2*round) || sums[0].Usage.Reasoning != int64(10*round) || !sums[0].Usage.Estimated) {
			t.Errorf("round %d: %+v", round, sums)
		}
	}
	added(t, db)
}

// TestSumsDamaged has what cannot be read not hold up what can.
func TestSumsDamaged(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	if _, err := db.pool.Exec(t.Context(), `INSERT INTO sums (body) VALUES ('[]'), ('{"counters": [{"name": "waiting", "n": 3}]}'), ('{"counters": 7}')`); err == nil {
		err = db.addUpNow(t.Context())
		if err != nil {
			t.Error(err)
		}
	} else {
		t.Error(err)
	}
	added(t, db)
	f, err := db.Stats(t.Context())
	if err != nil || f.Waiting != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := db.pool.Exec(t.Context(), "DELETE FROM counters"); err != nil {
		t.Fatal(err) // what the other tests count is right again
	}
}

// TestRowsTogether has rows that follow each other go by one statement, and others
// by their own.
func TestRowsTogether(t *testing.T) {
	for q, want := range map[string]string{
		"INSERT INTO t (a, b) VALUES (?, ?)":                               "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4), ($5, $6)",
		"INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO NOTHING":          "INSERT INTO t (a) VALUES ($1), ($2), ($3) ON CONFLICT (a) DO NOTHING",
		"INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO UPDATE SET a = 1": "",
		"INSERT INTO t (a) VALUES (?) RETURNING a":                         "",
		"INSERT INTO t (a, b) VALUES (?, 1)":                               "",
		"INSERT INTO t (a, b) VALUES (?1, ?1)":                             "",
		"INSERT INTO t (a) SELECT value FROM json_each(?)":                 "",
		"UPDATE t SET a = ?":                                               "",
	} {
		st := translate(q)
		if (st.values != "") != (want != "") {
			t.Errorf("%s: may rows follow: %v", q, st.values)
		}
		if got := (rows{statement: st, n: 3}).insert(); want != "" && got.sql != want {
			t.Errorf("got %s", got.sql)
		}
	}
	s := &session{}
	for i := range 2*maxRows + 1 {
		if _, err := s.Do("INSERT INTO t (a, b) VALUES (?, ?)", []any{int64(i), "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Do("UPDATE t SET a = ?", []any{int64(1)}); err != nil {
		t.Fatal(err)
	}
	var rows []int
	for _, q := range s.noted {
		rows = append(rows, len(q.args))
	}
	if want := []int{2 * maxRows, 2 * maxRows, 2, 1}; !reflect.DeepEqual(rows, want) {
		t.Errorf("parameters of the statements: %v, want %v", rows, want)
	}
}
