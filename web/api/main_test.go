package api_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage/sqlite"
)

// rootDir has the data directories of all tests. emptyDir is one as a first start
// makes it, to be copied: making the tables takes longer than most tests.
var rootDir, emptyDir string

func TestMain(m *testing.M) {
	root, err := makeRoot()
	if err == nil {
		rootDir, emptyDir = root, filepath.Join(root, "empty")
		err = os.Mkdir(emptyDir, 0o700)
	}
	if err == nil {
		var db *sqlite.DB
		if db, err = sqlite.Open(context.Background(), filepath.Join(emptyDir, "claybot.db"), sqlite.Config{}); err == nil {
			err = db.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(root) // a rest in the temporary directory does no harm
	os.Exit(code)
}

// makeRoot makes the folder for all data directories, in memory where there is such
// a place. Most of the time of these tests would be waiting for a disk, and none of
// them is about one: where a process dies, what it has written stays.
func makeRoot() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "api"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "api")
}

// newDir is an empty folder below it, which is removed after the test.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(rootDir, "")
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

// newData is a data directory of one test, with empty tables.
func newData(t testing.TB) string {
	t.Helper()
	dir := newDir(t)
	if err := os.CopyFS(dir, os.DirFS(emptyDir)); err != nil {
		t.Fatal(err)
	}
	return dir
}
