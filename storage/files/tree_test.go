package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
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

// marks are those of a database.
type marks map[string]string

func (m marks) Checkpoint(_ context.Context, key string) (string, error) { return m[key], nil }

func (m marks) SetCheckpoint(_ context.Context, key, value string) error {
	if value == "full" {
		return storage.ErrFull
	}
	m[key] = value
	return nil
}

// kept are files named state, of which the mark has the one that is not empty.
var kept = storage.MarkFiles{
	Mark: "m",
	Has:  func(p string) bool { return path.Base(p) == "state" },
	Split: func(mark string, _ map[string][]byte) map[string][]byte {
		return map[string][]byte{"cron/a/state": []byte(mark)}
	},
	Join: func(files map[string][]byte) string { return string(files["cron/a/state"]) },
}

// A folder that people edit has their files alone: what else the tree has is in a mark.
func TestTreeOfAFolder(t *testing.T) {
	dir, m := filepath.Join(t.TempDir(), "cron"), marks{}
	open := func() *files.Tree {
		return files.OpenTree(files.TreeConfig{Dir: dir, Layout: storage.Layout{Folder: "cron", Watch: "*/TASK.md", Kept: kept}, Marks: m})
	}
	tree, ctx := open(), t.Context()
	if d, err := tree.Changes(ctx, 0); err != nil || len(d.Files) != 0 {
		t.Fatalf("without a directory: %+v, %v", d, err)
	}
	all := []storage.TreeFile{{Path: "cron/a/TASK.md", Body: []byte("one")}, {Path: "cron/a/state", Body: []byte("s")}, {Path: "cron/a/NOTE.md", Body: []byte("n")}}
	if err := tree.WriteAll(ctx, all); err != nil || all[0].Version == 0 || all[1].Version == 0 || m["m"] != "s" {
		t.Fatalf("wrote %+v, %v, mark %q", all, err, m["m"])
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "state")); err == nil {
		t.Error("a file of the mark is in the directory")
	}
	for name, err := range map[string]error{
		"left by a crash": os.MkdirAll(filepath.Join(dir, ".tmp-x", "y"), 0o700),
		"by an older one": os.MkdirAll(filepath.Join(dir, ".new-x", "y"), 0o700),
		"empty":           os.Mkdir(filepath.Join(dir, "empty"), 0o700),
		"link":            os.Symlink("a", filepath.Join(dir, "inside")),
		"outside":         os.Symlink("/etc", filepath.Join(dir, "outside")),
	} {
		if err != nil {
			t.Fatal(name, err)
		}
	}
	tree = open()
	d, err := tree.Changes(ctx, 0)
	var got []string
	for _, f := range d.Files {
		got = append(got, fmt.Sprint(f.Path, " ", f.Err != nil))
	}
	slices.Sort(got)
	want := []string{"cron/a/TASK.md false", "cron/a/state false", "cron/empty/TASK.md true", "cron/inside/TASK.md false", "cron/outside true"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("changes %q, %v, want %q", got, err, want)
	}
	for _, name := range []string{".tmp-x", ".new-x"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if _, err := tree.Write(ctx, "cron/a/state", []byte("t"), 1); !errors.Is(err, storage.ErrStale) || m["m"] != "s" {
		t.Errorf("another version: %v, mark %q", err, m["m"])
	}
	if _, err := tree.Write(ctx, "cron/a/state", []byte("full"), all[1].Version); !errors.Is(err, storage.ErrFull) {
		t.Errorf("a mark that cannot be written: %v", err)
	}
	if f, err := storage.ReadFile(ctx, tree, "cron/a/state"); err != nil || string(f.Body) != "s" {
		t.Errorf("read %q, %v", f.Body, err)
	}
	if err := tree.Move(ctx, "cron/a", "cron/.done/a", storage.TreeFile{Path: "cron/a/TASK.md", Version: all[0].Version}); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, ".done", "a", "NOTE.md")); err != nil || string(b) != "n" {
		t.Errorf("moved %q, %v", b, err)
	}
	if _, err := storage.ReadFile(ctx, tree, "cron/a/state"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the mark after its folder has moved: %v", err)
	}
}

// Files of a mark with IDs: the last file written with an ID replaces the others of that
// ID, and to write many files takes one look at each.
func TestKeptByID(t *testing.T) {
	looks := 0
	cfg := storage.MarkFiles{
		Mark: "m",
		Has:  func(p string) bool { return path.Base(p) == "state" },
		ID:   func(body []byte) string { looks++; return string(body) },
		Split: func(mark string, _ map[string][]byte) map[string][]byte {
			files := make(map[string][]byte)
			for line := range strings.Lines(mark) {
				p, body, _ := strings.Cut(strings.TrimSpace(line), " ")
				files[p] = []byte(body)
			}
			return files
		},
		Join: func(files map[string][]byte) string {
			var mark strings.Builder
			for _, p := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintf(&mark, "%s %s\n", p, files[p])
			}
			return mark.String()
		},
	}
	m := marks{}
	tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir(), Layout: storage.Layout{Watch: "*/TASK.md", Kept: cfg}, Marks: m})
	const n = 200
	var all []storage.TreeFile
	for i := range n {
		all = append(all, storage.TreeFile{Path: fmt.Sprintf("%03d/state", i), Body: fmt.Appendf(nil, "id-%d", i)})
	}
	if err := tree.WriteAll(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if looks > 3*n {
		t.Errorf("writing %d files took %d looks at IDs", n, looks)
	}
	for _, moved := range [][]storage.TreeFile{
		{{Path: "new/state", Body: []byte("id-7")}},                                                                                              // elsewhere
		{{Path: "001/state", Body: []byte("id-2"), Version: all[1].Version}},                                                                     // onto another one
		{{Path: "x/state", Body: []byte("id-9")}, {Path: "y/state", Body: []byte("id-9")}},                                                       // twice
		{{Path: "003/state", Body: []byte("id-4"), Version: all[3].Version}, {Path: "z/state", Body: []byte("id-3")}},                            // away and replaced
		{{Path: "005/state", Body: []byte("id-6"), Version: all[5].Version}, {Path: "006/state", Body: []byte("id-5"), Version: all[6].Version}}, // swapped
	} {
		if err := tree.WriteAll(t.Context(), moved); err != nil {
			t.Errorf("write %s: %v", moved[0].Path, err)
		}
	}
	got := cfg.Split(m["m"], nil)
	for p, want := range map[string]string{
		"new/state": "id-7", "007/state": "", "001/state": "id-2", "002/state": "", "x/state": "", "y/state": "id-9", "009/state": "",
		"003/state": "id-4", "004/state": "", "z/state": "id-3", "005/state": "id-6", "006/state": "id-5", "008/state": "id-8",
	} {
		if string(got[p]) != want {
			t.Errorf("%s has %q, want %q", p, got[p], want)
		}
	}
}
