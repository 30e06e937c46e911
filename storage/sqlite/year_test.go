package sqlite

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestYear(t *testing.T) {
	empty := emptyFile(t)
	path := filepath.Join(t.TempDir(), "claybot.db")
	ask, clock := make(chan bool), make(chan time.Time)
	go func() { // the time in a bubble is another one
		for range ask {
			clock <- time.Now()
		}
	}()
	defer close(ask)
	life := storagetest.Life{Now: time.Now, Pass: time.Sleep, Clock: func() time.Time { ask <- true; return <-clock }}
	life.Open = func(t *testing.T, committed func(storage.Commit)) (storagetest.Store, func() storagetest.Store) {
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return openWith(t, path, Config{Committed: committed}), nil
	}
	life.Size = func(t *testing.T) storagetest.Size {
		db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s := storagetest.Size{Rows: make(map[string]int64)}
		one := func(q string) (n int64) {
			if err := db.QueryRowContext(t.Context(), q).Scan(&n); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			return n
		}
		for _, table := range []string{"messages", "keys", "runs", "events", "outbox", "spent", "spent_days", "latencies", "marks", "budgets", "relays"} {
			s.Rows[table] = one("SELECT count(*) FROM " + table)
		}
		// Free pages are used again: the file does not grow by them.
		s.Bytes = one("PRAGMA page_count") * one("PRAGMA page_size")
		return s
	}
	synctest.Test(t, life.Year)
}
