package webtest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// Folders makes the data directories of the tests of a package, in memory where there
// is such a place: most of the time of these tests would be waiting for a disk, and none
// of them is about one. Where a process dies, what it has written stays.
type Folders struct {
	root string
	// empty is a directory as a first start makes it, to be copied: making the tables
	// takes longer than most tests.
	empty string
}

// Main runs the tests of a package, calls the given functions and exits. It is for
// TestMain.
func (f *Folders) Main(m *testing.M, name string, after ...func()) {
	err := f.open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, end := range after {
		end()
	}
	_ = os.RemoveAll(f.root) // a rest in the temporary directory does no harm
	os.Exit(code)
}

func (f *Folders) open(name string) (err error) {
	if f.root, err = os.MkdirTemp("/dev/shm", name); err != nil {
		f.root, err = os.MkdirTemp("", name)
	}
	if err != nil {
		return err
	}
	f.empty = filepath.Join(f.root, "empty")
	if err := os.Mkdir(f.empty, 0o700); err != nil {
		return err
	}
	db, err := sqlite.Open(context.Background(), filepath.Join(f.empty, "claybot.db"), sqlite.Config{})
	if err != nil {
		return err
	}
	return db.Close()
}

// Dir is an empty folder that is removed after the test.
func (f *Folders) Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(f.root, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Data is a data directory of one test, with empty tables.
func (f *Folders) Data(t testing.TB) string {
	t.Helper()
	dir := f.Dir(t)
	if err := os.CopyFS(dir, os.DirFS(f.empty)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// OpenStores opens the stores of a data directory, which the caller closes, the agents
// first. Commits are announced to hub.
func OpenStores(ctx context.Context, t testing.TB, dir string, hub *runs.Hub, log *slog.Logger) (*sqlite.DB, *files.Store) {
	t.Helper()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "claybot.db"), sqlite.Config{Log: log, Committed: hub.Committed})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := files.Open(files.Config{Dir: dir, Index: db, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return db, agents
}

// StoresOf are the stores of a system.
func StoresOf(db *sqlite.DB, agents *files.Store) agentsystem.Stores {
	return agentsystem.Stores{
		Agents: agents, Index: db, Inbox: db, Runs: db, Outbox: db, Access: db, Counts: db,
		Later: db, Texts: db, Asked: db, Parking: db,
	}
}
