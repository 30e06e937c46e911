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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// walk lists the files below a folder by path. It is called with mu held.
func (t *Tree) walk(ctx context.Context, folder string, aside bool) ([]storage.TreeFile, error) {
	start, ok := ".", true
	if folder != "" {
		start, ok = t.name(folder)
	}
	root, err := t.open(false)
	if errors.Is(err, fs.ErrNotExist) || !ok {
		return nil, nil
	}
	if err != nil {
		return nil, failed("list files", err)
	}
	defer func() { _ = root.Close() }()
	var all []storage.TreeFile
	err = fs.WalkDir(root.FS(), start, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
			return nil // gone meanwhile, or not for us
		case err != nil:
			return err
		case name == start:
			return nil
		case strings.HasPrefix(e.Name(), treeTemp), !storage.ValidTreePath(name), !aside && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular(), t.keeps(path.Join(t.cfg.Folder, name)):
			return nil
		}
		if info, err := e.Info(); err == nil { // else it is gone meanwhile
			if f := t.look(root, name, info); f.Err == nil {
				all = append(all, f)
			} else if !unreadable(f.Err) && !errors.Is(f.Err, fs.ErrNotExist) {
				return f.Err
			}
		}
		return nil
	})
	if err != nil {
		return nil, failed("list files", err)
	}
	slices.SortFunc(all, func(a, b storage.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// look finds out the version of a file, which it reads only when it may have changed.
// It is called with mu held.
func (t *Tree) look(root *os.Root, name string, info fs.FileInfo) storage.TreeFile {
	p := path.Join(t.cfg.Folder, name)
	if old := t.seen[p]; old.same(info) {
		return storage.TreeFile{Path: p, Version: old.version, Size: int(info.Size()), At: claybot.At(info.ModTime())}
	}
	f := t.read(root, name)
	if f.Path, f.Body = p, nil; f.Err == nil {
		t.seen[p] = treeSeen{info, time.Since(info.ModTime()).Abs() < treeFresh, f.Version}
	}
	return f
}

// watched lists the files that people edit. A file that has not changed costs one
// system call. It is called with mu held.
func (t *Tree) watched(ctx context.Context) ([]storage.TreeFile, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(t.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var root *os.Root
	if err == nil {
		root, err = t.open(false)
	}
	if err != nil {
		return nil, failed("list files", err)
	}
	defer func() { _ = root.Close() }()
	folder, file := path.Split(t.cfg.Watch)
	var all []storage.TreeFile
	for _, e := range entries {
		name := e.Name()
		match, _ := path.Match(file, name)
		switch {
		case strings.HasPrefix(name, treeTemp), folder == "" && !match, folder != "" && strings.HasPrefix(name, "."):
			continue
		case folder != "" && !e.IsDir(): // a link, perhaps
			info, err := root.Stat(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = append(all, t.faulty(name, err))
			}
			if err != nil || !info.IsDir() {
				continue
			}
		}
		if folder != "" {
			name = path.Join(name, file)
		}
		info, err := os.Lstat(filepath.Join(t.cfg.Dir, filepath.FromSlash(name)))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = root.Stat(name)
		}
		switch {
		case err == nil:
			all = append(all, t.look(root, name, info))
		case folder != "" || !errors.Is(err, fs.ErrNotExist): // else it is gone this moment, or a link to nothing
			all = append(all, t.faulty(name, err))
		}
	}
	return all, nil
}

// faulty is a file that cannot be read.
func (t *Tree) faulty(name string, err error) storage.TreeFile {
	return storage.TreeFile{Path: path.Join(t.cfg.Folder, name), Version: treeVersion([]byte(err.Error())), Err: err}
}

// load reads the files of Kept at the first use. It is called with mu held.
func (t *Tree) load(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if t.kept != nil || t.cfg.Kept.Has == nil {
		return nil
	}
	mark, err := t.cfg.Marks.Checkpoint(ctx, t.cfg.Kept.Mark)
	if err != nil {
		return fmt.Errorf("read the mark %s: %w", t.cfg.Kept.Mark, err)
	}
	t.kept, t.mark = make(map[string][]byte), mark
	if mark != "" {
		maps.Copy(t.kept, t.cfg.Kept.Split(mark, nil))
	}
	return nil
}

// keeps reports whether the file of a path is one of Kept, whatever the directory has there.
func (t *Tree) keeps(p string) bool { return t.cfg.Kept.Has != nil && t.cfg.Kept.Has(p) }

func (t *Tree) keptFile(p string, whole bool) storage.TreeFile {
	body := t.kept[p]
	f := storage.TreeFile{Path: p, Version: treeVersion(body), Size: len(body)}
	if whole {
		f.Body = slices.Clone(body)
	}
	return f
}

// keep writes files of Kept, or removes those without a body, with one change of the
// mark. What is written replaces other files of the same ID.
func (t *Tree) keep(ctx context.Context, files []storage.TreeFile) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(ctx); err != nil {
		return err
	}
	next := maps.Clone(t.kept)
	written := make(map[string]string) // path by ID
	for _, f := range files {
		if f.Body == nil {
			delete(next, f.Path)
			continue
		}
		old, there := next[f.Path]
		if there && f.Version != treeVersion(old) || !there && f.Version != 0 {
			return fmt.Errorf("write %s: %w", f.Path, storage.ErrStale)
		}
		if id := t.cfg.Kept.ID; id != nil {
			written[id(f.Body)] = f.Path
		}
		next[f.Path] = slices.Clone(f.Body)
	}
	if len(written) > 0 { // one pass for all: an ID may be costly to read
		maps.DeleteFunc(next, func(p string, body []byte) bool {
			at, ok := written[t.cfg.Kept.ID(body)]
			return ok && p != at
		})
	}
	mark := t.cfg.Kept.Join(next)
	if mark != t.mark {
		if err := t.cfg.Marks.SetCheckpoint(ctx, t.cfg.Kept.Mark, mark); err != nil {
			return fmt.Errorf("write the mark %s: %w", t.cfg.Kept.Mark, err)
		}
	}
	t.kept, t.mark = next, mark
	return nil
}
