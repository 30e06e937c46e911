package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestStore(t *testing.T) {
	empty := emptyFile(t)
	storagetest.TestStore(t, func(t *testing.T, committed func(storage.Commit)) (storagetest.Store, func() storagetest.Store) {
		path := filepath.Join(t.TempDir(), "claybot.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
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

// emptyFile is what the file of a store is at first: to copy it is much quicker than
// to go through all migrations in each of hundreds of tests.
func emptyFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claybot.db")
	if err := openAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
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
		return storagetest.Figures(t, func(q string, f func(row []any) error) error {
			return c.each(q, func(r row) error { return f(r) })
		})
	})
	if err != nil && !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
