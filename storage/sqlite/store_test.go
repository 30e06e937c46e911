package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestStore(t *testing.T) {
	storagetest.TestStore(t, func(t *testing.T, committed func(storage.Commit)) (storagetest.Store, func() storagetest.Store) {
		path := filepath.Join(t.TempDir(), "claybot.db")
		db := openWith(t, path, Config{Committed: committed})
		t.Cleanup(func() { checkFigures(t, db) }) // before it is closed
		return db, func() storagetest.Store {
			checkFigures(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openWith(t, path, Config{Committed: committed})
			return db
		}
	})
}

func openAt(t *testing.T, path string) *DB {
	t.Helper()
	return openWith(t, path, Config{})
}

func openWith(t *testing.T, path string, cfg Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, cfg)
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
	err := db.read(context.Background(), func(c *conn) error { // also while the test ends
		return c.each(`WITH counted (name, n) AS (
				SELECT 'agents', count(*) FROM agents
				UNION ALL SELECT 'waiting', count(*) FROM messages WHERE run IS NULL AND skipped IS NULL
				UNION ALL SELECT 'agents.waiting', coalesce(sum(waiting), 0) FROM agents
				UNION ALL SELECT 'agents.busy', count(*) FROM agents WHERE busy = 1
				UNION ALL SELECT 'questions.open', count(*) FROM questions WHERE open = 1
				UNION ALL SELECT 'run:' || state, count(*) FROM runs GROUP BY state
				UNION ALL SELECT 'send:' || state, count(*) FROM outbox GROUP BY state)
			SELECT name, n, CASE name
				WHEN 'agents.waiting' THEN coalesce((SELECT n FROM counters WHERE name = 'waiting'), 0)
				WHEN 'agents.busy' THEN (SELECT count(*) FROM agents WHERE run IS NOT NULL OR first_n > 0)
				WHEN 'questions.open' THEN (SELECT count(*) FROM questions q JOIN runs r ON r.id = q.run AND r.state = 'AWAITING'
					WHERE EXISTS (SELECT 1 FROM json_each(r.awaiting, '$.questions') WHERE value ->> 'id' = q.id)
					AND NOT EXISTS (SELECT 1 FROM messages WHERE id = 'answer/' || q.id))
				ELSE coalesce((SELECT n FROM counters k WHERE k.name = counted.name), 0) END FROM counted`,
			func(r row) error {
				if r.int(1) != r.int(2) {
					t.Errorf("counter %s is %d, counted %d", r.str(0), r.int(2), r.int(1))
				}
				return nil
			})
	})
	if err != nil && !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
