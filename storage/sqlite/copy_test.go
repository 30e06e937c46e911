package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// Each table and column of the schema is copied.
func TestArchiveIsComplete(t *testing.T) {
	a, err := CreateArchive(t.Context(), filepath.Join(t.TempDir(), "claybot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	seen := 0
	err = a.c.Each(`SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'`, func(r relational.Row) error {
		table, column := r.Str(0), r.Str(1)
		if strings.HasPrefix(table, "sqlite_") || strings.HasPrefix(table, "memories_words") {
			return nil // the sequences, and an index that triggers keep
		}
		seen++
		i := slices.IndexFunc(storage.Tables(), func(t storage.Table) bool { return t.Name == table })
		if i < 0 || !slices.Contains(storage.Tables()[i].Columns, column) {
			t.Errorf("%s.%s is not copied: add it to storage.Tables", table, column)
		}
		return nil
	}, nil)
	if err != nil || seen < 150 {
		t.Errorf("%d columns, %v", seen, err)
	}
}

// A file that is there is not written over.
func TestCreateArchiveRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	if err := openAt(t, path).SetCheckpoint(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	if a, err := CreateArchive(t.Context(), path); err == nil {
		t.Errorf("it was opened; closed with %v", a.Close())
	}
}
