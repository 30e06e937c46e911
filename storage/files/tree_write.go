package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Write implements storage.Tree.
func (t *Tree) Write(ctx context.Context, p string, body []byte, was int64) (version int64, err error) {
	files := []storage.TreeFile{{Path: p, Body: body, Version: was}}
	if body == nil {
		files[0].Body = []byte{}
	}
	err = t.WriteAll(ctx, files)
	return files[0].Version, err
}

// WriteAll implements storage.BatchTree.
func (t *Tree) WriteAll(ctx context.Context, files []storage.TreeFile) error {
	var kept []storage.TreeFile
	for i := range files {
		f, err := &files[i], error(nil)
		switch {
		case t.keeps(f.Path):
			kept = append(kept, *f)
			continue
		case f.Body == nil:
			f.Version, err = 0, t.Remove(ctx, f.Path, 0)
		default:
			if err = writable(f.Path, f.Body); err == nil {
				err = t.inside(ctx, "write", f.Path, true, func(root *os.Root, name string) error { return t.write(root, name, f.Body, f.Version) })
			}
			if err == nil {
				f.Version = treeVersion(f.Body)
			}
		}
		if err != nil {
			return err
		}
	}
	if len(kept) == 0 {
		return nil
	}
	if err := t.keep(ctx, kept); err != nil {
		return err
	}
	for i := range files {
		if files[i].Body != nil {
			files[i].Version = treeVersion(files[i].Body)
		}
	}
	return nil
}

func (t *Tree) write(root *os.Root, name string, body []byte, was int64) error {
	if err := t.is(root, name, was); err != nil {
		return err
	}
	delete(t.seen, path.Join(t.cfg.Folder, name))
	return replaceIn(root, name, body)
}

// is checks that a file has a version, with 0 that there is nothing of its name.
func (t *Tree) is(root *os.Root, name string, was int64) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Stat(dir); err == nil && !info.IsDir() {
			return storage.ErrState
		}
	}
	f := t.read(root, name)
	switch {
	case errors.Is(f.Err, fs.ErrNotExist) && was == 0:
		return nil
	case errors.Is(f.Err, fs.ErrNotExist):
		return storage.ErrStale
	case errors.Is(f.Err, errIrregular), errors.Is(f.Err, errLink):
		return storage.ErrState
	case f.Err != nil && !unreadable(f.Err):
		return f.Err
	case f.Version != was:
		return storage.ErrStale
	}
	return nil
}

// replaceIn gives a file new content, whole or not at all. Folders that are missing
// come with it: also as a whole or not at all.
func replaceIn(root *os.Root, name string, body []byte) error {
	top, to := path.Dir(name), name // a folder that is there, and what a rename shows in it
	for {
		_, err := root.Stat(top)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		top, to = path.Dir(top), top
	}
	from := path.Join(top, treeTemp+string(claybot.NewID()))
	file, err := from+strings.TrimPrefix(name, to), error(nil)
	if name != to {
		err = root.MkdirAll(path.Dir(file), 0o700)
	}
	if err == nil {
		err = createIn(root, file, body)
	}
	for dir := path.Dir(file); err == nil && dir != top; dir = path.Dir(dir) {
		err = syncIn(root, dir)
	}
	if err == nil {
		err = root.Rename(from, to)
	}
	if err != nil {
		_ = root.RemoveAll(from) // the error that matters is the other one
		return err
	}
	return syncIn(root, top)
}

func createIn(root *os.Root, name string, body []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncIn makes the names in a folder durable.
func syncIn(root *os.Root, dir string) error {
	d, err := root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove implements storage.Tree. Folders that are empty then go, too.
func (t *Tree) Remove(ctx context.Context, p string, was int64) error {
	t.mu.Lock()
	err := t.load(ctx)
	body, kept := t.kept[p]
	t.mu.Unlock()
	switch {
	case err != nil:
		return err
	case kept && was != 0 && was != treeVersion(body):
		return fmt.Errorf("remove %s: %w", p, storage.ErrStale)
	case t.keeps(p):
		return t.keep(ctx, []storage.TreeFile{{Path: p}})
	}
	err = t.inside(ctx, "remove", p, false, func(root *os.Root, name string) error {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && info.IsDir():
			return nil
		case err == nil && was != 0:
			err = t.is(root, name, was)
		}
		if err == nil {
			err = root.Remove(name)
		}
		dir := path.Dir(name)
		for ; err == nil && dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
		if err == nil {
			err = syncIn(root, dir)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Move implements storage.Tree. All that lies in the folder goes along, whatever
// it is, but for files of Kept, which are forgotten.
func (t *Tree) Move(ctx context.Context, from, to string, guard storage.TreeFile) error {
	target, ok := t.name(to)
	if !ok || strings.HasPrefix(to+"/", from+"/") {
		return badPath(to)
	}
	err := t.inside(ctx, "move", from, false, func(root *os.Root, name string) error {
		err := t.movable(root, name, target, guard)
		if err == nil {
			err = root.MkdirAll(path.Dir(target), 0o700)
		}
		if err == nil {
			err = root.Rename(name, target)
		}
		if err == nil {
			err = errors.Join(syncIn(root, path.Dir(target)), syncIn(root, "."), syncIn(root, path.Dir(name)))
		}
		return err
	})
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		maps.DeleteFunc(t.kept, func(p string, _ []byte) bool { return strings.HasPrefix(p, from+"/") })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move %s: %w", from, storage.ErrNotFound)
	}
	return err
}

func (t *Tree) movable(root *os.Root, from, to string, guard storage.TreeFile) error {
	info, err := root.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && t.cfg.Watch == "" && !info.IsDir() {
		return storage.ErrNotFound
	}
	if err == nil && guard.Path != "" {
		name, _ := t.name(guard.Path)
		err = t.is(root, name, guard.Version)
	}
	if err != nil {
		return err
	}
	if _, err := root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, storage.ErrState)
	}
	return nil
}
