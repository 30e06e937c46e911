package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// treeFolder is the folder of a Tree that has the tasks, as the directory has
// them:
//
//	cron/<slug>/TASK.md
//	cron/<slug>/MEMORY.md
//	cron/<slug>/facts.json    what all nodes know of the task, see fact
//	cron/.done/<slug>-<time>/ tasks that are over
//
// The folder in which a gate runs is in the directory of each node.
const treeFolder = "cron"

const factsFile = "facts.json"

// fetchAtOnce is how many files are read with one query.
const fetchAtOnce = 100

// A treeShelf is the tasks that nodes share.
type treeShelf struct {
	tree *storage.Mirror
	dir  string // of this node

	mu      sync.Mutex
	changed <-chan struct{} // closed: list is old
	list    []string
	known   map[string]storage.TreeFile // by name
	ready   map[string]storage.TreeFile // that were fetched
}

func newTreeShelf(tree *storage.Mirror, dir string) *treeShelf {
	return &treeShelf{tree: tree, dir: dir, known: make(map[string]storage.TreeFile), ready: make(map[string]storage.TreeFile)}
}

func (t *treeShelf) shared() bool { return true }
func (t *treeShelf) close() error { return nil }

func in(name string) string { return treeFolder + "/" + name }

// names lists the folders that have a TASK.md: what is left of one that is gone
// is no task.
func (t *treeShelf) names(ctx context.Context) ([]string, error) {
	changed := t.tree.Changed() // before the files, so that none is missed
	all, err := t.tree.Entries(ctx, treeFolder)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-changed: // with this very look
		changed = nil
	default:
	}
	if changed != nil && t.changed == changed {
		return t.list, nil
	}
	t.changed, t.list = changed, nil
	t.known = make(map[string]storage.TreeFile, len(all))
	clear(t.ready)
	for _, f := range all {
		name := strings.TrimPrefix(f.Path, treeFolder+"/")
		t.known[name] = f
		if slug, file := path.Split(name); file == taskFile && strings.Count(slug, "/") == 1 {
			t.list = append(t.list, strings.TrimSuffix(slug, "/"))
		}
	}
	slices.Sort(t.list)
	return t.list, nil
}

func (t *treeShelf) stat(name string) (fs.FileInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := t.known[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return treeInfo{f}, nil
}

func (t *treeShelf) isFolder(string) (bool, error) { return true, nil }

func (t *treeShelf) fetch(ctx context.Context, names []string) error {
	for part := range slices.Chunk(names, fetchAtOnce) {
		paths := make([]string, len(part))
		for i, name := range part {
			paths[i] = in(name)
		}
		found, err := t.tree.Read(ctx, paths...)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for _, f := range found {
			t.ready[strings.TrimPrefix(f.Path, treeFolder+"/")] = f
		}
		t.mu.Unlock()
	}
	return nil
}

// file reads one, or takes what was fetched.
func (t *treeShelf) file(ctx context.Context, name string) (storage.TreeFile, error) {
	t.mu.Lock()
	f, ok := t.ready[name]
	delete(t.ready, name)
	t.mu.Unlock()
	if ok {
		return f, nil
	}
	found, err := t.tree.Read(ctx, in(name))
	if err == nil && len(found) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return f, err
	}
	return found[0], nil
}

func (t *treeShelf) read(ctx context.Context, name string, limit int64) (text string, cut bool, err error) {
	f, err := t.file(ctx, name)
	text, cut = short(f.Body, limit)
	return text, cut, err
}

func short(b []byte, limit int64) (string, bool) {
	if int64(len(b)) > limit {
		return string(b[:limit]), true
	}
	return string(b), false
}

func (t *treeShelf) edit(ctx context.Context, name string, limit int64, change func(string, bool, error) (string, error)) error {
	_, err := storage.EditFile(ctx, t.tree, in(name), func(f storage.TreeFile) ([]byte, error) {
		var missing error
		if f.Version == 0 {
			missing = fs.ErrNotExist
			if e, err := t.tree.Read(ctx, in(path.Join(path.Dir(name), taskFile))); err != nil || len(e) == 0 {
				return nil, errors.Join(err, missing) // the task is gone
			}
		}
		text, cut := short(f.Body, limit)
		text, err := change(text, cut, missing)
		return []byte(text), err
	})
	return err
}

func (t *treeShelf) make(ctx context.Context, slug, task string) (string, error) {
	for n := 1; ; n++ {
		try := slug
		if n > 1 {
			end := "-" + strconv.Itoa(n)
			try = slug[:min(len(slug), maxSlug-len(end))] + end
		}
		left, err := t.tree.List(ctx, in(try)) // of another task, perhaps
		if err != nil {
			return "", err
		}
		if len(left) > 0 {
			continue
		}
		_, err = t.tree.Write(ctx, in(path.Join(try, taskFile)), []byte(task), 0)
		if !errors.Is(err, storage.ErrStale) {
			return try, err
		}
	}
}

func (t *treeShelf) done(ctx context.Context, slug string, now time.Time, seen fs.FileInfo) error {
	guard := storage.TreeFile{}
	if v, ok := seen.(versioned); ok {
		guard = storage.TreeFile{Path: in(path.Join(slug, taskFile)), Version: v.Version()}
	}
	for n := 1; ; n++ {
		to := in(path.Join(doneDir, slug+"-"+now.UTC().Format(doneLayout)))
		if n > 1 {
			to += "-" + strconv.Itoa(n)
		}
		err := t.tree.Move(ctx, in(slug), to, guard)
		switch {
		case errors.Is(err, storage.ErrState):
			continue
		case errors.Is(err, storage.ErrStale), errors.Is(err, storage.ErrNotFound):
			return errMoved
		}
		return err
	}
}

func (t *treeShelf) workspace(slug string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(t.dir, slug, filesDir))
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// A treeInfo is a file of a Tree without its body.
type treeInfo struct{ f storage.TreeFile }

func (i treeInfo) Name() string       { return path.Base(i.f.Path) }
func (i treeInfo) Size() int64        { return int64(i.f.Size) }
func (i treeInfo) Mode() fs.FileMode  { return 0o600 }
func (i treeInfo) ModTime() time.Time { return i.f.At.Time() }
func (i treeInfo) IsDir() bool        { return false }
func (i treeInfo) Sys() any           { return nil }
func (i treeInfo) Version() int64     { return i.f.Version }

// sharedFacts is facts.json.
type sharedFacts struct {
	UID string `json:"uid"` // of the task, which may be another one in the same folder
	fact
}

// facts changes what all nodes know of a task, and returns that. change may be
// called again, when another node was faster; when it changes nothing, nothing is
// written.
func (t *treeShelf) facts(ctx context.Context, slug, uid string, change func(*fact)) (fact, int64, error) {
	var fc fact
	name := path.Join(slug, factsFile)
	f, err := storage.EditFile(ctx, t.tree, in(name), func(old storage.TreeFile) ([]byte, error) {
		var all sharedFacts
		if json.Unmarshal(old.Body, &all) != nil || all.UID != uid { // damaged, or of another task: it begins anew
			all = sharedFacts{UID: uid}
		}
		was := all.fact
		change(&all.fact)
		fc = all.fact
		if fc == was && old.Version != 0 {
			return nil, nil
		}
		return json.Marshal(all)
	})
	if err != nil {
		return fc, 0, fmt.Errorf("remember the task %s: %w", slug, err)
	}
	return fc, f.Version, nil
}

// agreed is what all nodes knew of a task when it was fetched; ok is false when
// that is not at hand.
func (t *treeShelf) agreed(slug, uid string) (fc fact, version int64, ok bool) {
	name := path.Join(slug, factsFile)
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := t.ready[name]
	delete(t.ready, name)
	var all sharedFacts
	if !ok || json.Unmarshal(f.Body, &all) != nil || all.UID != uid {
		return fact{}, 0, false
	}
	return all.fact, f.Version, true
}
