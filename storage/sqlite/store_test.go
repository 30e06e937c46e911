package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage/storagetest"
)

func TestStore(t *testing.T) {
	storagetest.TestStore(t, func(t *testing.T) (storagetest.Store, func() storagetest.Store) {
		path := filepath.Join(t.TempDir(), "claybot.db")
		db := openAt(t, path)
		return db, func() storagetest.Store {
			checkFigures(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openAt(t, path)
			return db
		}
	})
}

func openAt(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// checkFigures compares the counters with what they count.
func checkFigures(t *testing.T, db *DB) {
	t.Helper()
	err := db.read(t.Context(), func(c *conn) error {
		return c.each(`WITH counted (name, n) AS (
				SELECT 'agents', count(*) FROM agents
				UNION ALL SELECT 'waiting', count(*) FROM messages WHERE run IS NULL AND skipped IS NULL
				UNION ALL SELECT 'agents.waiting', coalesce(sum(waiting), 0) FROM agents
				UNION ALL SELECT 'run:' || state, count(*) FROM runs GROUP BY state
				UNION ALL SELECT 'send:' || state, count(*) FROM outbox GROUP BY state)
			SELECT name, n, coalesce((SELECT n FROM counters k WHERE k.name = replace(counted.name, 'agents.', '')), 0) FROM counted`,
			func(r row) error {
				if r.int(1) != r.int(2) {
					t.Errorf("counter %s is %d, counted %d", r.str(0), r.int(2), r.int(1))
				}
				return nil
			})
	})
	if err != nil {
		t.Error(err)
	}
}
