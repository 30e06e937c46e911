package skills_test

import (
	"context"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools/skills"
)

// counted counts what is read.
type counted struct {
	storage.Tree
	reads int
}

func (c *counted) Read(ctx context.Context, paths ...string) ([]storage.TreeFile, error) {
	c.reads += len(paths)
	return c.Tree.Read(ctx, paths...)
}

// Skills that nodes share are what they are in a folder, with the same hashes, and
// what was allowed on one node may be used on all.
func TestShelf(t *testing.T) {
	content := map[string]string{
		"invoice/SKILL.md": invoice, "invoice/more/template.txt": "Dear %s,", "Bad/SKILL.md": invoice, "none/x": "x",
		"odd/SKILL.md": "---\nname: other\ndescription: x\n---\n", "README.md": "about",
	}
	folder := library(t, content)
	tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
	put := func(path, text string) {
		t.Helper()
		if _, err := storage.EditFile(t.Context(), tree, "skills/"+path, func(storage.TreeFile) ([]byte, error) { return []byte(text), nil }); err != nil {
			t.Fatal(err)
		}
	}
	store := &counted{Tree: tree}
	mirror := storage.NewMirror(store)
	a := skills.Library{Pins: folder.Pins, Shelf: skills.NewShelf(mirror)}
	if a.Exists() {
		t.Error("an empty tree has skills")
	}
	for path, text := range content {
		put(path, text)
	}
	look := func() {
		t.Helper()
		if err := mirror.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	b := skills.Library{Pins: folder.Pins, Shelf: skills.NewShelf(storage.NewMirror(tree))}
	want, err := folder.Skills(t.Context())
	if err != nil || !a.Exists() {
		t.Fatal(err, a.Exists())
	}
	got, err := a.Skills(t.Context())
	if err != nil || len(got) != len(want) {
		t.Fatalf("skills %+v, %v, want %+v", got, err, want)
	}
	for i := range want {
		if got[i].Name != want[i].Name || got[i].Hash != want[i].Hash || got[i].State != want[i].State || got[i].Problem != want[i].Problem {
			t.Errorf("skill %+v, want %+v", got[i], want[i])
		}
	}
	if _, err := a.Allow(t.Context(), "invoice", get(t, folder, "invoice").Hash, "owner"); err != nil {
		t.Fatal(err)
	}
	if s := get(t, b, "invoice"); s.State != skills.Allowed {
		t.Errorf("on another node it is %s", s.State)
	}
	reads := store.reads
	if text, err := a.Prompt(t.Context(), nil); err != nil || !strings.Contains(text, "invoice: Makes invoices") || store.reads != reads {
		t.Errorf("prompt %q, %v, after %d reads", text, err, store.reads-reads)
	}
	put("invoice/more/template.txt", "Dear thief,")
	look()
	if s := get(t, a, "invoice"); s.State != skills.Changed {
		t.Errorf("a changed skill is %s", s.State)
	}
}
