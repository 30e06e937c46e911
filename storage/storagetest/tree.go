package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
)

// TestTree runs the suite of storage.Tree. open opens an empty tree; share opens
// the same one as another process would, nil where only one can use it.
func TestTree(t *testing.T, open func(t *testing.T) storage.Tree, share func(t *testing.T, tree storage.Tree) storage.Tree) {
	for _, x := range []struct {
		name string
		test func(b *grove)
	}{
		{"write and read", treeWrites},
		{"odd paths", treePaths},
		{"limits", treeLimits},
		{"file or folder", treeKinds},
		{"remove", treeRemoves},
		{"move", treeMoves},
		{"changes", treeChanges},
		{"put aside", treeAside},
		{"races", treeRaces},
		{"mirror", treeMirror},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := &grove{T: t, Tree: open(t), ctx: t.Context()}
			b.other = b.Tree
			if share != nil {
				b.other = share(t, b.Tree)
			}
			x.test(b)
		})
	}
}

// A grove is a tree under test.
type grove struct {
	*testing.T
	storage.Tree
	other storage.Tree // the same, of another node
	ctx   context.Context
}

func (b *grove) write(path, body string, was int64) int64 {
	b.Helper()
	v, err := b.Write(b.ctx, path, []byte(body), was)
	if err != nil || v == 0 {
		b.Fatalf("write %s = %d, %v", path, v, err)
	}
	return v
}

func (b *grove) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("error %v, want %v", err, want)
	}
}

// reads checks what is in files; no bodies: they are not there.
func (b *grove) reads(want map[string]string) {
	b.Helper()
	for _, t := range []storage.Tree{b.Tree, b.other} {
		got, err := t.Read(b.ctx, slices.Collect(maps.Keys(want))...)
		if err != nil {
			b.Fatal(err)
		}
		is := make(map[string]string)
		for i, f := range got {
			is[f.Path] = string(f.Body)
			if f.Version == 0 || f.Size != len(f.Body) || f.At == 0 || i > 0 && got[i-1].Path >= f.Path {
				b.Errorf("file %+v", f)
			}
		}
		if !maps.Equal(is, want) {
			b.Errorf("read %q, want %q", is, want)
		}
	}
}

func paths(files []storage.TreeFile) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path)
	}
	return strings.Join(all, " ")
}

func (b *grove) lists(folder, want string) {
	b.Helper()
	got, err := b.other.List(b.ctx, folder)
	if err != nil || paths(got) != want {
		b.Errorf("list %q = %q, %v, want %q", folder, paths(got), err, want)
	}
}

func treeWrites(b *grove) {
	b.reads(map[string]string{})
	v := b.write("a/b", "one\x00\xff", 0)
	b.reads(map[string]string{"a/b": "one\x00\xff"})
	_, err := b.Write(b.ctx, "a/b", []byte("two"), 0)
	b.is(err, storage.ErrStale)
	_, err = b.Write(b.ctx, "a/b", []byte("two"), v+2)
	b.is(err, storage.ErrStale)
	_, err = b.Write(b.ctx, "a/c", []byte("two"), v)
	b.is(err, storage.ErrStale)
	w, err := b.other.Write(b.ctx, "a/b", []byte("two"), v)
	if err != nil || w == v {
		b.Fatalf("write = %d, %v", w, err)
	}
	_, err = b.Write(b.ctx, "a/b", []byte("three"), v)
	b.is(err, storage.ErrStale)
	b.write("a/empty", "", 0)
	b.reads(map[string]string{"a/b": "two", "a/empty": ""})
	got, err := b.Read(b.ctx, "a/b", "no", "a", "", "../a/b", "a/b")
	if err != nil || paths(got) != "a/b" || got[0].Version != w {
		b.Errorf("read %+v, %v", got, err)
	}
	b.write("c", "x", 0)
	b.lists("", "a/b a/empty c")
	b.lists("a", "a/b a/empty")
	b.lists("nothing", "")
	b.lists("c", "")
}

func treePaths(b *grove) {
	for _, path := range []string{"", ".", "..", "/a", "a/", "a//b", "a/../b", "./a", "a/.", "a\x00b", "a\nb", `a\b`, "\xff", strings.Repeat("a/", 300) + "a"} {
		if _, err := b.Write(b.ctx, path, nil, 0); err == nil {
			b.Errorf("wrote %q", path)
		}
		if err := b.Remove(b.ctx, path, 0); err == nil {
			b.Errorf("removed %q", path)
		}
		if b.Move(b.ctx, path, "x", storage.TreeFile{}) == nil || b.Move(b.ctx, "x", path, storage.TreeFile{}) == nil {
			b.Errorf("moved %q", path)
		}
	}
	odd := []string{"%", "a b", "a-b/_", "a.b", "ü/€", "'", `"`}
	for _, path := range odd {
		b.write(path, path, 0)
	}
	slices.Sort(odd)
	b.lists("", strings.Join(odd, " "))
	b.lists("a-b", "a-b/_")
	b.lists("a_b", "") // no wildcard
	b.lists("%", "")
}

func treeLimits(b *grove) {
	_, err := b.Write(b.ctx, "big", make([]byte, storage.MaxTreeFile+1), 0)
	b.is(err, storage.ErrTooMany)
	b.reads(map[string]string{})
	b.write("big", strings.Repeat("x", storage.MaxTreeFile), 0)
	got, err := b.Read(b.ctx, "big")
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Body, bytes.Repeat([]byte("x"), storage.MaxTreeFile)) {
		b.Errorf("read %d files, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.Write(ctx, "late", nil, 0); err == nil {
		b.Error("wrote with a context that had ended")
	}
}

func treeKinds(b *grove) {
	b.write("a/b/c", "x", 0)
	for _, path := range []string{"a", "a/b", "a/b/c/d"} {
		_, err := b.Write(b.ctx, path, nil, 0)
		b.is(err, storage.ErrState)
	}
	b.write("a/b.c", "", 0) // sorts between a/b and a/b/c
	if err := b.Remove(b.ctx, "a/b/c", 0); err != nil {
		b.Fatal(err)
	}
	b.write("a/b", "now a file", 0)
	b.lists("", "a/b a/b.c")
}

func treeRemoves(b *grove) {
	v := b.write("a/b", "x", 0)
	b.is(b.Remove(b.ctx, "a/b", v+2), storage.ErrStale)
	b.reads(map[string]string{"a/b": "x"})
	for range 2 { // twice is once
		if err := b.other.Remove(b.ctx, "a/b", v); err != nil {
			b.Error(err)
		}
	}
	if err := b.Remove(b.ctx, "a", 0); err != nil {
		b.Error(err)
	}
	b.lists("", "")
	w := b.write("a/b", "y", 0)
	if w == v {
		b.Error("another content has the same version")
	}
	if err := b.Remove(b.ctx, "a/b", 0); err != nil {
		b.Error(err)
	}
	b.reads(map[string]string{})
}

func treeMoves(b *grove) {
	v := b.write("t/one/TASK.md", "1", 0)
	b.write("t/one/more/M", "2", 0)
	b.write("t/one-2/TASK.md", "3", 0)
	none := storage.TreeFile{}
	b.is(b.Move(b.ctx, "t/none", "x", none), storage.ErrNotFound)
	b.is(b.Move(b.ctx, "t/one/TASK.md", "x", none), storage.ErrNotFound)
	b.is(b.Move(b.ctx, "t/one", "t/one-2", none), storage.ErrState)
	b.is(b.Move(b.ctx, "t/one", "x", storage.TreeFile{Path: "t/one/TASK.md", Version: v + 2}), storage.ErrStale)
	b.is(b.Move(b.ctx, "t/one", "x", storage.TreeFile{Path: "t/one/no", Version: v}), storage.ErrStale)
	if err := b.Move(b.ctx, "t/one", "t/one/in", none); err == nil {
		b.Error("moved a folder into itself")
	}
	if err := b.other.Move(b.ctx, "t/one", "t/.done/one-1", storage.TreeFile{Path: "t/one/TASK.md", Version: v}); err != nil {
		b.Fatal(err)
	}
	b.is(b.Move(b.ctx, "t/one", "t/.done/one-2", none), storage.ErrNotFound)
	b.lists("t", "t/.done/one-1/TASK.md t/.done/one-1/more/M t/one-2/TASK.md")
	b.reads(map[string]string{"t/.done/one-1/TASK.md": "1", "t/.done/one-1/more/M": "2"})
	b.write("t/one/TASK.md", "again", 0)
	b.is(b.Move(b.ctx, "t/one", "t/.done/one-1", none), storage.ErrState)
	if err := b.Move(b.ctx, "t/.done/one-1", "back", none); err != nil {
		b.Error(err)
	}
	b.lists("", "back/TASK.md back/more/M t/one-2/TASK.md t/one/TASK.md")
}

// delta is what has changed since a point, as "path" or "-path".
func (b *grove) delta(since int64, want string) int64 {
	b.Helper()
	d, err := b.other.Changes(b.ctx, since)
	if err != nil || d.Point == 0 {
		b.Fatalf("changes %+v, %v", d, err)
	}
	var got []string
	for _, f := range d.Files {
		if f.Version == 0 {
			got = append(got, "-"+f.Path)
			continue
		}
		got = append(got, f.Path)
		now, err := b.Read(b.ctx, f.Path)
		if err != nil || len(now) != 1 || now[0].Version != f.Version || now[0].Size != f.Size || f.Body != nil {
			b.Errorf("changed %+v, there is %+v, %v", f, now, err)
		}
	}
	slices.Sort(got)
	if s := strings.Join(got, " "); s != want {
		b.Errorf("changes since %d: %q, want %q", since, s, want)
	}
	return d.Point
}

func treeChanges(b *grove) {
	first := b.delta(0, "")
	v := b.write("a", "1", 0)
	b.write("b/c", "1", 0)
	p := b.delta(first, "a b/c")
	if q := b.delta(p, ""); q != p {
		b.Errorf("the point went from %d to %d by itself", p, q)
	}
	v = b.write("a", "2", v)
	if err := b.Remove(b.ctx, "b/c", 0); err != nil {
		b.Fatal(err)
	}
	q := b.delta(p, "-b/c a")
	b.delta(first, "-b/c a")
	b.delta(0, "a")
	b.write("a", "3", v)
	b.write("b/c", "again", 0)
	b.delta(q, "a b/c")
	// A point of another store is not a point here.
	d, err := b.Changes(b.ctx, q+1_000_000_000_000_000)
	if err != nil || !d.Whole || len(d.Files) != 2 {
		b.Errorf("changes since the future %+v, %v", d, err)
	}
}

func treeAside(b *grove) {
	b.write("t/a/x", "1", 0)
	b.write(".hidden", "1", 0)
	p := b.delta(0, "t/a/x")
	if err := b.Move(b.ctx, "t/a", "t/.done/a", storage.TreeFile{}); err != nil {
		b.Fatal(err)
	}
	b.write("t/.more", "1", 0)
	p = b.delta(p, "-t/a/x")
	b.lists("", ".hidden t/.done/a/x t/.more")
	if err := b.Move(b.ctx, "t/.done/a", "t/a", storage.TreeFile{}); err != nil {
		b.Fatal(err)
	}
	b.delta(p, "t/a/x")
}

// Of many who count in one file none overwrites another, and who follows the
// changes misses none.
func treeRaces(b *grove) {
	const writers, times = 4, 10
	var wg sync.WaitGroup
	for w := range writers {
		tree := b.Tree
		if w%2 == 1 {
			tree = b.other
		}
		wg.Go(func() {
			for i := range times {
				_, err := storage.EditFile(b.ctx, tree, "count", func(old storage.TreeFile) ([]byte, error) {
					return append(old.Body, 'x'), nil
				})
				if err == nil {
					_, err = tree.Write(b.ctx, fmt.Sprintf("f/%d-%d", w, i), []byte{byte(i)}, 0)
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen, point := make(map[string]bool), int64(0)
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		d, err := b.Changes(b.ctx, point)
		if err != nil {
			b.Fatal(err)
		}
		point = d.Point
		for _, f := range d.Files {
			seen[f.Path] = true
		}
	}
	if len(seen) != writers*times+1 {
		b.Errorf("followed %d files, want %d", len(seen), writers*times+1)
	}
	b.reads(map[string]string{"count": strings.Repeat("x", writers*times)})
}

// counted counts the questions that a mirror asks.
type counted struct {
	storage.Tree
	mu sync.Mutex
	n  int
}

func (c *counted) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Tree.Changes(ctx, since)
}

func treeMirror(b *grove) {
	tree := &counted{Tree: b.Tree}
	m := storage.NewMirror(tree)
	entries := func(want string) {
		b.Helper()
		all, err := m.Entries(b.ctx, "a")
		if err != nil || paths(all) != want {
			b.Errorf("entries %q, %v, want %q", paths(all), err, want)
		}
	}
	entries("")
	v, err := m.Write(b.ctx, "a/b", []byte("x"), 0)
	if err != nil {
		b.Fatal(err)
	}
	b.write("ab", "x", 0)
	entries("a/b") // its own at once
	if e, err := m.Entry(b.ctx, "a/b"); err != nil || e.Version != v {
		b.Errorf("entry %+v, %v", e, err)
	}
	news := m.Changed()
	if _, err := b.other.Write(b.ctx, "a/c", []byte("x"), 0); err != nil {
		b.Fatal(err)
	}
	if err := m.Look(b.ctx); err != nil {
		b.Fatal(err)
	}
	<-news
	entries("a/b a/c")
	if err := m.Remove(b.ctx, "a/b", v); err != nil {
		b.Fatal(err)
	}
	if err := m.Move(b.ctx, "a", "a2", storage.TreeFile{}); err != nil {
		b.Fatal(err)
	}
	entries("")
	// Many who look at once share the questions.
	asked := tree.n
	start := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := m.Look(b.ctx); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	if most := asked + 2 + int(time.Since(start)/(50*time.Millisecond)); tree.n > most {
		b.Errorf("50 looks were %d questions, want at most %d", tree.n-asked, most-asked)
	}
}
