package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Each error of SQLite says how far it reaches.
func TestClassOfErrors(t *testing.T) {
	lastErrno.Store(0) // that of another test
	for code, want := range map[int]storage.Class{
		sqlite3.SQLITE_FULL:                  storage.ClassStore,
		sqlite3.SQLITE_BUSY:                  storage.ClassStore,
		sqlite3.SQLITE_READONLY:              storage.ClassStore,
		sqlite3.SQLITE_CANTOPEN:              storage.ClassStore,
		sqlite3.SQLITE_IOERR_WRITE:           storage.ClassStore,
		sqlite3.SQLITE_IOERR_READ:            storage.ClassMember,
		sqlite3.SQLITE_IOERR_FSYNC:           storage.ClassMember,
		sqlite3.SQLITE_NOMEM:                 storage.ClassMember,
		sqlite3.SQLITE_CORRUPT:               storage.ClassAgent,
		sqlite3.SQLITE_CONSTRAINT_UNIQUE:     storage.ClassAgent,
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: storage.ClassAgent,
	} {
		if got := storage.ClassOf(classifyCode(code, errors.New("from SQLite"))); got != want {
			t.Errorf("code %d: class %v, want %v", code, got, want)
		}
	}
}

// A descriptor that another agent has is a fault of that agent alone, and no other
// call of the same commit suffers from it.
func TestConstraintIsOfTheAgent(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "claybot.db"))
	d := claybot.User("telegram", "C", "U")
	if err := db.IndexAgents(t.Context(), claybot.Agent{ID: claybot.NewID(), Descriptor: d}); err != nil {
		t.Fatal(err)
	}
	err := db.IndexAgents(t.Context(), claybot.Agent{ID: claybot.NewID(), Descriptor: d})
	if e := new(sqlite.Error); !errors.As(err, &e) || storage.ClassOf(err) != storage.ClassAgent {
		t.Errorf("a second agent of one descriptor: %v, class %v", err, storage.ClassOf(err))
	}
}
