package postgres

import (
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestTree(t *testing.T) {
	migrated := newMigrated(t)
	urls := make(map[storage.Tree]string)
	storagetest.TestTree(t, func(t *testing.T) storage.Tree {
		url := migrated.take(t)
		tree := openWith(t, Config{URL: url, NoListen: true}).Tree()
		urls[tree] = url
		return tree
	}, func(t *testing.T, tree storage.Tree) storage.Tree {
		return openWith(t, Config{URL: urls[tree], NoListen: true}).Tree()
	})
}

// What was removed long ago is forgotten, and who last asked before that is told
// all anew.
func TestTreeForgets(t *testing.T) {
	now := time.Now().UnixMilli()
	tree := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true, Clock: func() int64 { return now }}).Tree()
	write := func(path string) {
		t.Helper()
		if _, err := storage.EditFile(t.Context(), tree, path, func(storage.TreeFile) ([]byte, error) { return []byte("x"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	changes := func(since int64, whole bool, files int) int64 {
		t.Helper()
		d, err := tree.Changes(t.Context(), since)
		if err != nil || d.Whole != whole || len(d.Files) != files {
			t.Errorf("changes since %d: %+v, %v, want whole %v and %d files", since, d, err, whole, files)
		}
		return d.Point
	}
	write("a")
	old := changes(0, true, 1)
	if err := tree.Remove(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	fresh := changes(old, false, 1)
	now += 25 * time.Hour.Milliseconds()
	for range 256 {
		write("b")
	}
	changes(old, true, 1)
	changes(fresh, false, 1)
}
