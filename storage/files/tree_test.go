package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/storagetest"
)

func openTree(t *testing.T, dir string) *files.Tree {
	t.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: dir})
	return tree
}

func TestTree(t *testing.T) {
	storagetest.TestTree(t, func(t *testing.T) storage.Tree { return openTree(t, filepath.Join(t.TempDir(), "new", "dir")) }, nil)
}

// What people do to the files is seen, also in the same moment and with the same
// size, and the layout is plain files that only the owner reads.
func TestTreeForeignEdits(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir)
	v, err := tree.Write(t.Context(), "cron/a/TASK.md", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "cron", "a", "TASK.md")
	for path, mode := range map[string]os.FileMode{name: 0o600, filepath.Dir(name): 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	d, err := tree.Changes(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour)
	for _, text := range []string{"two", "six"} {
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
		next, err := tree.Changes(t.Context(), d.Point)
		if err != nil || len(next.Files) != 1 || next.Files[0].Version == v || next.Whole {
			t.Fatalf("changes %+v, %v", next, err)
		}
		at = at.Add(time.Second)
		d = next
		if _, err := tree.Write(t.Context(), "cron/a/TASK.md", nil, v); !errors.Is(err, storage.ErrStale) {
			t.Errorf("a foreign edit is overwritten: %v", err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// What is no small file of the folder is not there.
func TestTreeStrangeFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	tree := openTree(t, dir)
	for _, err := range []error{
		os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "file")),
		os.WriteFile(filepath.Join(dir, "big"), make([]byte, storage.MaxTreeFile+1), 0o600),
		os.WriteFile(filepath.Join(dir, `a\b`), nil, 0o600),
		os.WriteFile(filepath.Join(dir, ".tmp-x"), nil, 0o600),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if all, err := tree.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("listed %+v, %v", all, err)
	}
	all, err := tree.Read(t.Context(), "link/secret", "file", "big", "folder")
	if len(all) != 0 {
		t.Errorf("read %+v, %v", all, err)
	}
	for _, path := range []string{"link/new", "file/new", "file", "folder"} {
		if _, err := tree.Write(t.Context(), path, nil, 0); err == nil {
			t.Errorf("wrote %s", path)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); err == nil {
		t.Error("a file was written outside")
	}
}
