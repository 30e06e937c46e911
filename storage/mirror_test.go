package storage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
)

// asked counts the questions to a tree, which may be away.
type asked struct {
	storage.Tree
	mu   sync.Mutex
	n    int
	down bool
}

var errAway = errors.New("away")

func (a *asked) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	a.mu.Lock()
	a.n++
	down := a.down
	a.mu.Unlock()
	if down {
		return storage.TreeDelta{}, errAway
	}
	return a.Tree.Changes(ctx, since)
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

func (a *asked) away(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// Many who follow files ask one question every LookEvery together, learn of a
// change in that time, and keep what they know while the tree is away.
func TestMirrorLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
		store := &asked{Tree: tree}
		m := storage.NewMirror(store)
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { _ = m.Run(ctx) })
		entries := func() int {
			all, err := m.Entries(ctx, "a")
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			return len(all)
		}
		for range 20 {
			work.Go(func() {
				for ctx.Err() == nil {
					entries()
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Minute)
		if n, most := store.count(), int(time.Minute/storage.LookEvery)+2; n > most {
			t.Errorf("%d questions in a minute, want at most %d", n, most)
		}
		news := m.Changed()
		if _, err := tree.Write(ctx, "a/b", nil, 0); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		<-news
		if late := time.Since(start); late > storage.LookEvery || late > 2*time.Second {
			t.Errorf("a change is known after %v", late)
		}
		if n := entries(); n != 1 {
			t.Errorf("%d files", n)
		}
		cancel()
		work.Wait()
		store.away(true)
		if all, err := m.Entries(t.Context(), "a"); err != nil || len(all) != 1 {
			t.Errorf("just after it went away: %v, %v", all, err)
		}
		time.Sleep(time.Minute)
		if _, err := m.Entries(t.Context(), "a"); !errors.Is(err, errAway) {
			t.Errorf("old knowledge is given without an error: %v", err)
		}
		if err := m.Look(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("look = %v", err)
		}
		store.away(false)
		if e, err := m.Entry(t.Context(), "a/b"); err != nil || e.Version == 0 {
			t.Errorf("entry %+v, %v", e, err)
		}
	})
}

// A mirror of a tree without other writers asks only after a change, and never
// waits to ask.
func TestMirrorAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &asked{Tree: files.OpenNamed(t.TempDir(), nil, nil)}
		m := storage.MirrorAlone(store)
		begun := time.Now()
		for i := range 10 {
			if _, err := m.Write(t.Context(), "a/b", fmt.Append(nil, i), entry(t, m)); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if err := m.Look(t.Context()); err != nil || entry(t, m) == 0 {
					t.Fatalf("the file is %d, %v", entry(t, m), err)
				}
			}
		}
		if n := store.count(); n != 11 || !time.Now().Equal(begun) {
			t.Errorf("%d questions in %v, want one before the changes and one after each", n, time.Since(begun))
		}
		time.Sleep(time.Hour)
		if entry(t, m); store.count() != 11 {
			t.Error("asked without a change")
		}
	})
}

func entry(t *testing.T, m *storage.Mirror) int64 {
	t.Helper()
	e, err := m.Entry(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	return e.Version
}

func TestTreePaths(t *testing.T) {
	for path, want := range map[string]bool{
		"a": true, "a/b.c": true, ".a/b": true, "a/.b": true, "a./b": true,
		"": false, ".": false, "/a": false, "a//b": false, "a/../b": false, "a\tb": false, `a\b`: false,
	} {
		if got := storage.ValidTreePath(path); got != want {
			t.Errorf("ValidTreePath(%q) = %v", path, got)
		}
	}
}
