package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
)

// marks yields the marks that all stores have.
func (a *Archive) marks(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		for r, err := range a.cfg.Tables.Rows(ctx, t) {
			if err == nil && (a.keeps(text(r[0])) || text(r[0]) == stampKey) {
				continue // a file of the tree, or of this directory alone
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// tree yields the files that nodes share in a tree.
func (a *Archive) tree(ctx context.Context) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		files := make(map[string][]byte)
		at := make(map[string]int64)
		err := a.collect(ctx, files, at)
		if err == nil {
			err = a.spread(ctx, files)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, p := range slices.Sorted(maps.Keys(files)) {
			body := files[p]
			if body == nil {
				body = []byte{}
			}
			if !yield(storage.Row{p, body, at[p]}, nil) {
				return
			}
		}
	}
}

// spread adds the files that are made of marks.
func (a *Archive) spread(ctx context.Context, files map[string][]byte) error {
	marks := make(map[string]string)
	for r, err := range a.cfg.Tables.Rows(ctx, storage.Table{Name: storage.TableCheckpoints, Columns: []string{"key", "value"}}) {
		if err != nil {
			return err
		}
		if a.keeps(text(r[0])) {
			marks[text(r[0])] = text(r[1])
		}
	}
	if a.gathered != nil { // what was loaded is what there is, if the marks are those
		if !maps.Equal(marks, a.gather(a.gathered)) {
			return fmt.Errorf("%w: the marks of files", storage.ErrDiffers)
		}
		maps.Copy(files, a.gathered)
		return nil
	}
	made := make(map[string][]byte)
	for _, k := range a.cfg.Kept {
		if m, ok := marks[k.Mark]; ok {
			maps.Copy(made, k.Split(m, files))
		}
	}
	maps.Copy(files, made)
	return nil
}

// gather makes the marks of files.
func (a *Archive) gather(files map[string][]byte) map[string]string {
	marks := make(map[string]string)
	for _, k := range a.cfg.Kept {
		part := maps.Clone(files)
		maps.DeleteFunc(part, func(p string, body []byte) bool { return !takes(k, p, body) })
		if len(part) > 0 {
			marks[k.Mark] = k.Join(part)
		}
	}
	return marks
}

// takes reports whether a mark can have a file.
func takes(k storage.MarkFiles, p string, body []byte) bool {
	return k.Has(p) && (k.ID == nil || k.ID(body) != "")
}

func (a *Archive) keeps(mark string) bool {
	return slices.ContainsFunc(a.cfg.Kept, func(k storage.MarkFiles) bool { return k.Mark == mark })
}

// collect reads the files of the tree. They are small and few.
func (a *Archive) collect(ctx context.Context, files map[string][]byte, at map[string]int64) error {
	for _, p := range slices.Sorted(maps.Keys(a.cfg.Names)) {
		name := a.cfg.Dir + "/" + a.cfg.Names[p]
		if err := a.pick(p, name, files, at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, folder := range a.cfg.Folders {
		top := filepath.Join(a.cfg.Dir, folder)
		err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
			if err == nil {
				err = context.Cause(ctx)
			}
			if errors.Is(err, fs.ErrNotExist) && name == top {
				return nil
			}
			if err != nil || e.IsDir() {
				return err
			}
			rel, err := filepath.Rel(a.cfg.Dir, name)
			if err != nil {
				return err
			}
			return a.pick(filepath.ToSlash(rel), name, files, at)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pick reads one file.
func (a *Archive) pick(p, name string, files map[string][]byte, at map[string]int64) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(path.Base(p), treeTemp):
		return nil
	case !info.Mode().IsRegular():
		a.remark("%s is not a regular file and stays where it is", p)
		return nil
	case info.Size() > storage.MaxTreeFile:
		a.remark("%s has more than %d bytes and stays where it is", p, storage.MaxTreeFile)
		return nil
	case !storage.ValidTreePath(p):
		a.remark("%q is not a path that nodes can share, and stays where it is", p)
		return nil
	}
	body, err := read(a.fs, name, storage.MaxTreeFile)
	files[p], at[p] = body, info.ModTime().UnixMilli()
	return err
}

// loadTree writes files of the tree, and the marks that some of them are here.
func (a *Archive) loadTree(ctx context.Context, rows iter.Seq2[storage.Row, error]) error {
	gathered := make(map[string][]byte)
	err := each(ctx, rows, func(r storage.Row) error {
		p := text(r[0])
		body, _ := r[1].([]byte)
		if slices.ContainsFunc(a.cfg.Kept, func(k storage.MarkFiles) bool { return takes(k, p, body) }) {
			gathered[p] = slices.Clone(body)
			return nil
		}
		return a.put(p, body, number(r[2]))
	})
	if err != nil || len(gathered) == 0 {
		return err
	}
	a.gathered = gathered
	marks := a.gather(gathered)
	return a.cfg.Tables.Load(ctx, storage.Table{Name: storage.TableCheckpoints, Columns: []string{"key", "value"}}, func(yield func(storage.Row, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(marks)) {
			if !yield(storage.Row{key, marks[key]}, nil) {
				return
			}
		}
	})
}

// put writes one file.
func (a *Archive) put(p string, body []byte, at int64) error {
	if !storage.ValidTreePath(p) {
		return fmt.Errorf("invalid file path %.200q", p)
	}
	name, ok := a.cfg.Names[p]
	if top, _, _ := strings.Cut(p, "/"); !ok && !slices.Contains(a.cfg.Folders, top) {
		return fmt.Errorf("%.200q has no known place in a data directory", p)
	}
	if !ok {
		name = filepath.FromSlash(p)
	}
	name = filepath.Join(a.cfg.Dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := write(unsynced{a.fs}, name, body); err != nil {
		return err
	}
	changed := time.UnixMilli(at)
	return os.Chtimes(name, changed, changed)
}
