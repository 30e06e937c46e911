package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

// readNamed loads a file without any check.
func readNamed(_, file string) ([]byte, error) { return os.ReadFile(file) }

func TestNamedTree(t *testing.T) {
	for name, names := range map[string]map[string]string{
		"memory":    nil,
		"directory": {"a": "a.txt", "a/b": "a.b", "a/empty": "a.empty", "c": "c", "b/c": "b.c", "big": "big", "count": "count"},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.TestTree(t, func(t *testing.T) storage.Tree {
				if t.Name() == "TestNamedTree/directory/mirror" {
					return OpenNamed(t.TempDir(), nil, readNamed) // moves a folder, which no file with a name allows
				}
				return OpenNamed(t.TempDir(), names, readNamed)
			}, nil)
		})
	}
}

// Files with a name outlast the process, those without don't, and the directory has
// nothing else.
func TestNamedTreeKeeps(t *testing.T) {
	dir := t.TempDir()
	names := map[string]string{"web/token": "web.token"}
	if err := os.WriteFile(filepath.Join(dir, "web.token"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree := OpenNamed(dir, names, readNamed)
	f, err := storage.EditFile(t.Context(), tree, "web/token", func(old storage.TreeFile) ([]byte, error) {
		return append(old.Body, " and new"...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Write(t.Context(), "web/codes.json", []byte("{}"), 0); err != nil {
		t.Fatal(err)
	}
	if err := tree.Move(t.Context(), "web", "elsewhere", storage.TreeFile{}); !errors.Is(err, storage.ErrState) {
		t.Errorf("move of a file with a name = %v", err)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 1 {
		t.Errorf("the directory has %v, %v", all, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "web.token")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	next := OpenNamed(dir, names, readNamed)
	got, err := next.Read(t.Context(), "web/token", "web/codes.json")
	if err != nil || len(got) != 1 || string(got[0].Body) != "old and new" {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
	if err := next.Remove(t.Context(), "web/token", f.Version); !errors.Is(err, storage.ErrStale) {
		t.Errorf("a version of another process = %v", err)
	}
	if err := next.Remove(t.Context(), "web/token", 0); err != nil {
		t.Error(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 0 {
		t.Errorf("after the removal there is %v, %v", all, err)
	}
}

// A file that can't be read fails what needs it, and nothing else. One that load
// calls missing is replaced, and removed.
func TestNamedTreeUnreadable(t *testing.T) {
	dir, bad := t.TempDir(), errors.New("bad file")
	for _, name := range []string{"gone", "odd"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := OpenNamed(dir, map[string]string{"odd": "odd", "gone": "gone", "none": "none"}, func(path, _ string) ([]byte, error) {
		if path == "odd" {
			return nil, bad
		}
		return nil, fs.ErrNotExist
	})
	if got, err := tree.Read(t.Context(), "gone", "none"); err != nil || len(got) != 0 {
		t.Errorf("read %v, %v", got, err)
	}
	if _, err := tree.Read(t.Context(), "odd"); !errors.Is(err, bad) {
		t.Errorf("read = %v", err)
	}
	if _, err := tree.Changes(t.Context(), 0); !errors.Is(err, bad) {
		t.Errorf("changes = %v", err)
	}
	bad = fs.ErrNotExist
	if err := tree.Remove(t.Context(), "gone", 0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that could not be read is still there: %v", err)
	}
}

// Whatever moment a power cut has, each file is the old one or the new one, and one
// whose write has returned is the new one. A write that fails changes nothing.
func TestNamedTreePowerCut(t *testing.T) {
	names := map[string]string{"web/tokens.json": "web.tokens.json", "web/sessions.json": "web.sessions.json"}
	open := func(m *modelFS) *NamedTree {
		tree := OpenNamed("/d", names, func(_, file string) ([]byte, error) { return read(m, file, storage.MaxTreeFile) })
		tree.fs, tree.remove = m, m.Remove
		return tree
	}
	for last := range 40 {
		for seed := range uint64(4) {
			m := newModelFS()
			if err := errors.Join(m.Mkdir("/d"), m.SyncDir("/")); err != nil {
				t.Fatal(err)
			}
			begun := m.ops
			m.fail = func(op int) error {
				if op > begun+last {
					return errCut
				}
				return nil
			}
			known, failed, next := work(t, open(m))
			after := open(m.cut(rand.New(rand.NewPCG(seed, uint64(last)))))
			for path := range names {
				is := content(t, after, path)
				if is != known[path] && (path != failed || is != next) {
					t.Fatalf("cut after %d operations: %s is %q, want %q, or %q for %s", last, path, is, known[path], next, failed)
				}
			}
		}
	}
}

// work changes two files until something fails. known is what returned; next is what
// the change that failed may have made of its file.
func work(t *testing.T, tree *NamedTree) (known map[string]string, failed, next string) {
	t.Helper()
	known = make(map[string]string)
	for i, path := range []string{"web/tokens.json", "web/sessions.json", "web/sessions.json", "web/tokens.json", "web/tokens.json", "web/tokens.json"} {
		var err error
		if next = fmt.Sprint("content ", i); i == 4 {
			next, err = "", tree.Remove(t.Context(), path, 0)
		} else {
			_, err = storage.EditFile(t.Context(), tree, path, func(storage.TreeFile) ([]byte, error) { return []byte(next), nil })
		}
		if err != nil {
			if is := content(t, tree, path); is != known[path] {
				t.Errorf("a change that failed left %q in memory, want %q", is, known[path])
			}
			return known, path, next
		}
		known[path] = next
	}
	return known, "", ""
}

// content is what a file has; nothing where there is none.
func content(t *testing.T, tree *NamedTree, path string) string {
	t.Helper()
	got, err := tree.Read(context.Background(), path)
	if err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if len(got) == 0 {
		return ""
	}
	return string(got[0].Body)
}
