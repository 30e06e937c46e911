package relational_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/storage/storagetest"
)

// theAgent is the one agent of most tests here.
var theAgent = claybot.Agent{ID: "atestagent00000000000000", Descriptor: claybot.User("telegram", "C1", "U1")}

// A store is the tables in a real file, whose rows the tests may change.
type store struct {
	*sqlite.DB
	path string
}

func openFresh(t *testing.T) *store {
	t.Helper()
	file, err := freshFile()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "claybot.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return openAt(t, path)
}

// freshFile is a store that knows theAgent: to copy it is much quicker than to go
// through all migrations in each test.
var freshFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "claybot")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears it later
	ctx, path := context.Background(), filepath.Join(dir, "claybot.db")
	db, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(db.IndexAgents(ctx, theAgent), db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func openAt(t *testing.T, path string) *store {
	t.Helper()
	return openWith(t, path, nil)
}

func openWith(t *testing.T, path string, log *slog.Logger) *store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Config{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &store{db, path}
}

// do runs fn in a transaction.
func do(t *testing.T, db *store, fn func(c *relational.Conn) error) {
	t.Helper()
	if err := db.Write(t.Context(), false, fn); err != nil {
		t.Fatal(err)
	}
}

// change runs a statement behind the store's back.
func change(t *testing.T, db *store, q string, args ...any) {
	t.Helper()
	do(t, db, func(c *relational.Conn) error { _, err := c.Change(q, args...); return err })
}

// rows calls f for every row of a query.
func rows(t *testing.T, db *store, q string, f func(r relational.Row)) {
	t.Helper()
	err := db.Read(t.Context(), func(c *relational.Conn) error {
		return c.Rows(q, func(r relational.Row) error { f(r); return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
}

// count is the number that a query finds.
func count(t *testing.T, db *store, q string) (n int64) {
	t.Helper()
	rows(t, db, q, func(r relational.Row) { n = r.Int(0) })
	return n
}

// spoil flips one letter in a stored body.
func spoil(t *testing.T, db *store, table, id string) {
	t.Helper()
	change(t, db, "UPDATE "+table+" SET body = replace(body, 'text', 'tExt') WHERE id = ?", id)
}

func post(t *testing.T, db *store, id claybot.MessageID) {
	t.Helper()
	if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: textMessage(id)}); err != nil {
		t.Fatal(err)
	}
}

func textMessage(id claybot.MessageID) claybot.AgentMessage {
	return claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: "text of " + string(id)}
}

// checkFigures compares the counters with what they count.
func checkFigures(t *testing.T, db *store) {
	t.Helper()
	err := db.Read(t.Context(), func(c *relational.Conn) error {
		return storagetest.Figures(t, func(q string, f func(row []any) error) error {
			return c.Rows(q, func(r relational.Row) error { return f(r) })
		})
	})
	if err != nil {
		t.Error(err)
	}
}
