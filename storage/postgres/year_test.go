package postgres

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestYear(t *testing.T) {
	url := schemaOf(t, postgrestest.Shared(t).Database(t))
	var now atomic.Int64 // of the store; what members do every second goes on in real time
	now.Store(time.Now().UnixMilli())
	life := storagetest.Life{
		Now: func() time.Time { return time.UnixMilli(now.Load()) }, Pass: func(d time.Duration) { now.Add(d.Milliseconds()) }, Clock: time.Now,
	}
	life.Open = func(t *testing.T, committed func(storage.Commit)) (storagetest.Store, func() storagetest.Store) {
		return openWith(t, Config{URL: url, Committed: committed, Clock: now.Load, NoListen: true}), nil
	}
	life.Size = func(t *testing.T) storagetest.Size {
		conn := plainConn(t, url)
		s := storagetest.Size{Rows: make(map[string]int64)}
		for _, table := range []string{"messages", "keys", "runs", "events", "outbox", "spent", "spent_days", "latencies", "marks", "budgets", "relays", "sums", "agents"} {
			if _, err := conn.Exec(t.Context(), "VACUUM (ANALYZE) "+table); err != nil { // autovacuum does it in the server's time
				t.Fatal(err)
			}
			var n, bytes int64
			if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM "+table+"), pg_total_relation_size($1::regclass)", table).Scan(&n, &bytes); err != nil {
				t.Fatal(err)
			}
			s.Rows[table] = n
			if !storagetest.Grows(table) {
				s.Bytes += bytes
			}
			t.Logf("%s: %d kB", table, bytes>>10)
		}
		return s
	}
	life.Year(t)
}
