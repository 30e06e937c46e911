package documents_test

import (
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// store is a real one.
func store(t *testing.T) storage.Documents {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "claybot.db"), sqlite.Config{})
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
