package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A NamedTree is a storage.Tree for one process that holds a data directory. It
// keeps all files in memory. Files with a name in the directory are durable: the
// tree reads each at its first use and replaces it with every change. All other
// files end with the process.
//
// Nothing else changes the files of the directory while the process holds it, so
// the tree doesn't read them again.
type NamedTree struct {
	dir    string
	names  map[string]string
	load   func(path, file string) ([]byte, error)
	fs     FS
	remove func(file string) error

	mu    sync.Mutex
	files map[string]namedFile
	point int64
	base  int64 // no earlier point is known
}

// A namedFile is a file of a NamedTree, with Version 0 once it is removed. at is
// the point of its last change.
type namedFile struct {
	storage.TreeFile
	at int64
}

var _ storage.Tree = (*NamedTree)(nil)

// OpenNamed opens a tree over a directory. names gives the files on disk by their
// paths in the tree. load reads such a file; fs.ErrNotExist means that there is
// none, and the next write then replaces what is in its place.
func OpenNamed(dir string, names map[string]string, load func(path, file string) ([]byte, error)) *NamedTree {
	now := time.Now().UnixNano() // a point of another process says nothing here
	return &NamedTree{
		dir: dir, names: names, load: load, fs: osFS{}, remove: os.Remove,
		files: make(map[string]namedFile), point: now, base: now,
	}
}

// need loads the files of paths that have a name on disk; mu is held.
func (t *NamedTree) need(paths ...string) error {
	for _, p := range paths {
		name, ok := t.names[p]
		if _, loaded := t.files[p]; loaded || !ok {
			continue
		}
		body, err := t.load(p, filepath.Join(t.dir, name))
		if err == nil {
			t.set(p, body)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// needAll loads every file that has a name on disk; mu is held.
func (t *NamedTree) needAll(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for p := range t.names {
		if err := t.need(p); err != nil {
			return err
		}
	}
	return nil
}

// set gives a file another content in memory and returns its version; mu is held.
func (t *NamedTree) set(path string, body []byte) int64 {
	t.point++
	t.files[path] = namedFile{storage.TreeFile{
		Path: path, Version: t.point, Size: len(body), At: claybot.Now(), Body: slices.Clone(body),
	}, t.point}
	return t.point
}

// gone removes a file from memory; mu is held.
func (t *NamedTree) gone(path string) {
	t.point++
	t.files[path] = namedFile{storage.TreeFile{Path: path}, t.point}
}

// below lists the files in a folder by path, without their bodies; mu is held.
func (t *NamedTree) below(folder string) (all []storage.TreeFile) {
	for p, f := range t.files {
		if f.Version != 0 && (folder == "" || strings.HasPrefix(p, folder+"/")) {
			f.Body = nil
			all = append(all, f.TreeFile)
		}
	}
	slices.SortFunc(all, func(a, b storage.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Changes implements storage.Tree.
func (t *NamedTree) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.needAll(ctx); err != nil {
		return storage.TreeDelta{}, err
	}
	d := storage.TreeDelta{Point: t.point, Whole: since < t.base || since > t.point}
	for p, f := range t.files {
		aside := strings.HasPrefix(p, ".") || strings.Contains(p, "/.")
		if !aside && (d.Whole && f.Version != 0 || !d.Whole && f.at > since) {
			f.Body = nil
			d.Files = append(d.Files, f.TreeFile)
		}
	}
	return d, nil
}

// List implements storage.Tree.
func (t *NamedTree) List(ctx context.Context, folder string) ([]storage.TreeFile, error) {
	if folder != "" && !storage.ValidTreePath(folder) {
		return nil, badPath(folder)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.needAll(ctx); err != nil {
		return nil, err
	}
	return t.below(folder), nil
}

// Read implements storage.Tree.
func (t *NamedTree) Read(ctx context.Context, paths ...string) (all []storage.TreeFile, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := errors.Join(context.Cause(ctx), t.need(paths...)); err != nil {
		return nil, err
	}
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if f := t.files[p]; f.Version != 0 {
			f.Body = slices.Clone(f.Body)
			all = append(all, f.TreeFile)
		}
	}
	return all, nil
}

// Write implements storage.Tree. A file that the directory can't take is
// storage.ErrFull.
func (t *NamedTree) Write(ctx context.Context, p string, body []byte, was int64) (int64, error) {
	if err := writable(p, body); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.needAll(ctx); err != nil {
		return 0, err
	}
	taken := len(t.below(p)) > 0
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		taken = taken || t.files[dir].Version != 0
	}
	switch {
	case taken:
		return 0, fmt.Errorf("write %s: %w", p, storage.ErrState)
	case t.files[p].Version != was:
		return 0, fmt.Errorf("write %s: %w", p, storage.ErrStale)
	}
	if name, ok := t.names[p]; ok {
		if err := replace(t.fs, t.dir, name, body); err != nil {
			return 0, fmt.Errorf("write %s: %w: %w", filepath.Join(t.dir, name), storage.ErrFull, err)
		}
	}
	return t.set(p, body), nil
}

// Remove implements storage.Tree. It removes a file of the directory even where
// load found none.
func (t *NamedTree) Remove(ctx context.Context, p string, was int64) error {
	if !storage.ValidTreePath(p) {
		return badPath(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.needAll(ctx); err != nil {
		return err
	}
	version := t.files[p].Version
	if version != 0 && was != 0 && version != was {
		return fmt.Errorf("remove %s: %w", p, storage.ErrStale)
	}
	if name, ok := t.names[p]; ok {
		if err := t.remove(filepath.Join(t.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("remove "+p, err)
		}
		if err := t.fs.SyncDir(t.dir); err != nil {
			return failed("remove "+p, err)
		}
	}
	if version != 0 {
		t.gone(p)
	}
	return nil
}

// Move implements storage.Tree. Files with a name on disk stay where they are: it
// refuses their folders with storage.ErrState.
func (t *NamedTree) Move(ctx context.Context, from, to string, guard storage.TreeFile) error {
	if !storage.ValidTreePath(from) || !storage.ValidTreePath(to) || strings.HasPrefix(to+"/", from+"/") {
		return badPath(to)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.needAll(ctx); err != nil {
		return err
	}
	all := t.below(from)
	fixed := t.files[to].Version != 0 || len(t.below(to)) > 0
	for p := range t.names {
		fixed = fixed || strings.HasPrefix(p, from+"/") || strings.HasPrefix(p, to+"/")
	}
	switch {
	case len(all) == 0:
		return fmt.Errorf("move %s: %w", from, storage.ErrNotFound)
	case guard.Path != "" && t.files[guard.Path].Version != guard.Version:
		return fmt.Errorf("move %s: %w", from, storage.ErrStale)
	case fixed:
		return fmt.Errorf("move %s: %w", from, storage.ErrState)
	}
	for _, f := range all {
		t.set(to+strings.TrimPrefix(f.Path, from), t.files[f.Path].Body)
		t.gone(f.Path)
	}
	return nil
}
