package files

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// treeFresh is how long after a change of a file another one may leave no trace
// in its times.
const treeFresh = 4 * time.Second

// treeTemp begins the names of files that are being written.
const treeTemp = ".tmp-"

// A Tree is a storage.Tree on a directory, for one process. Its files are files,
// of mode 0600 in folders of mode 0700, which people may edit: a version is made
// of what is in a file, so whatever changes it is seen. Only regular files are, of
// at most storage.MaxTreeFile bytes, whose paths are valid; no link is followed. A
// file is replaced by rename and is durable then.
//
// Somebody else who writes a file in the very moment in which the Tree does may
// lose what he wrote. What happens elsewhere while a folder is moved may stay
// behind.
type Tree struct {
	root *os.Root
	mu   sync.Mutex // guards all below, and is held while files are written

	seen  map[string]treeSeen
	point int64
	base  int64               // no earlier point is known
	told  map[string]treeTold // what Changes knows, of files that are gone as well
}

// treeTold is the version of a file, 0 when it is gone, and the point at which it
// came to that.
type treeTold struct{ at, version int64 }

var _ storage.Tree = (*Tree)(nil)

// treeSeen is a file as it was when it was last read.
type treeSeen struct {
	info    fs.FileInfo
	fresh   bool // it may have changed since without a trace
	version int64
}

func (s treeSeen) same(info fs.FileInfo) bool {
	return s.info != nil && !s.fresh && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime()) && os.SameFile(s.info, info)
}

// OpenTree opens a directory, and makes it when it is not there.
func OpenTree(dir string) (*Tree, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, failed("open the folder "+dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, failed("open the folder "+dir, err)
	}
	// A point of another process says nothing here.
	base := time.Now().UnixNano()
	return &Tree{root: root, seen: make(map[string]treeSeen), told: make(map[string]treeTold), point: base, base: base}, nil
}

// Close lets the directory go.
func (t *Tree) Close() error { return t.root.Close() }

// treeVersion is the version of a file with this content.
func treeVersion(body []byte) int64 {
	sum := sha256.Sum256(body)
	return int64(binary.BigEndian.Uint64(sum[:8])>>1 | 1) //nolint:gosec // half of 64 bits fits
}

// Changes implements storage.Tree.
func (t *Tree) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.walk(ctx, "", false)
	if err != nil {
		return storage.TreeDelta{}, err
	}
	next := t.point + 1
	here := make(map[string]bool, len(all))
	note := func(path string, version int64) {
		if t.told[path].version != version {
			t.told[path], t.point = treeTold{next, version}, next
		}
	}
	for _, f := range all {
		here[f.Path] = true
		note(f.Path, f.Version)
	}
	for path := range t.told {
		if !here[path] {
			delete(t.seen, path)
			note(path, 0)
		}
	}
	d := storage.TreeDelta{Point: t.point, Whole: since < t.base || since > t.point}
	for _, f := range all {
		if d.Whole || t.told[f.Path].at > since {
			d.Files = append(d.Files, f)
		}
	}
	for path, told := range t.told {
		if told.version == 0 && told.at > since && !d.Whole {
			d.Files = append(d.Files, storage.TreeFile{Path: path})
		}
	}
	return d, nil
}

// List implements storage.Tree.
func (t *Tree) List(ctx context.Context, folder string) ([]storage.TreeFile, error) {
	if folder != "" && !storage.ValidTreePath(folder) {
		return nil, badPath(folder)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.walk(ctx, folder, true)
}

// writable is an error for what no tree takes as a file.
func writable(p string, body []byte) error {
	switch {
	case !storage.ValidTreePath(p):
		return badPath(p)
	case len(body) > storage.MaxTreeFile:
		return fmt.Errorf("write %s: %w: %d bytes", p, storage.ErrTooMany, len(body))
	}
	return nil
}

func badPath(p string) error { return fmt.Errorf("%.200q is no path of a file", p) }

// walk lists the files below a folder by path. It is called with mu held.
func (t *Tree) walk(ctx context.Context, folder string, aside bool) ([]storage.TreeFile, error) {
	start := folder
	if start == "" {
		start = "."
	}
	var all []storage.TreeFile
	err := fs.WalkDir(t.root.FS(), start, func(name string, e fs.DirEntry, err error) error {
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
		case !e.Type().IsRegular():
			return nil
		}
		f, ok, err := t.look(name, e)
		if ok {
			all = append(all, f)
		}
		return err
	})
	if err != nil {
		return nil, failed("list files", err)
	}
	slices.SortFunc(all, func(a, b storage.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// look finds out the version of one file; ok is false when it is none. It is
// called with mu held.
func (t *Tree) look(name string, e fs.DirEntry) (f storage.TreeFile, ok bool, err error) {
	info, err := e.Info()
	if err != nil || info.Size() > storage.MaxTreeFile {
		return f, false, nil // gone meanwhile, or too large
	}
	old := t.seen[name]
	f = storage.TreeFile{Path: name, Version: old.version, Size: int(info.Size()), At: claybot.At(info.ModTime())}
	if old.same(info) {
		return f, true, nil
	}
	read, err := t.read(name)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, fs.ErrPermission) {
		return f, false, nil
	}
	f.Version, f.Size = read.Version, read.Size
	t.seen[name] = treeSeen{info, time.Since(info.ModTime()).Abs() < treeFresh, read.Version}
	return f, true, err
}

// read reads a regular file that is not too long, else it is storage.ErrNotFound.
func (t *Tree) read(name string) (storage.TreeFile, error) {
	var none storage.TreeFile
	info, err := t.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	var file *os.File
	if err == nil { // not to block, should it have become a pipe
		file, err = t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return none, fmt.Errorf("file %s: %w", name, storage.ErrNotFound)
	}
	if err != nil {
		return none, failed("read "+name, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	if info, err = file.Stat(); err != nil || !info.Mode().IsRegular() {
		return none, fmt.Errorf("file %s: %w", name, storage.ErrNotFound)
	}
	body, err := io.ReadAll(io.LimitReader(file, storage.MaxTreeFile+1))
	if err != nil {
		return none, failed("read "+name, err)
	}
	if len(body) > storage.MaxTreeFile {
		return none, fmt.Errorf("file %s: %w", name, storage.ErrNotFound)
	}
	return storage.TreeFile{Path: name, Version: treeVersion(body), Size: len(body), At: claybot.At(info.ModTime()), Body: body}, nil
}

// Read implements storage.Tree.
func (t *Tree) Read(ctx context.Context, paths ...string) ([]storage.TreeFile, error) {
	var all []storage.TreeFile
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if !storage.ValidTreePath(p) {
			continue
		}
		f, err := t.read(p)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// Write implements storage.Tree.
func (t *Tree) Write(ctx context.Context, name string, body []byte, was int64) (int64, error) {
	if err := writable(name, body); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if err := t.is(name, was, true); err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	if err := t.replace(name, body); err != nil {
		return 0, failed("write "+name, err)
	}
	return treeVersion(body), nil
}

// is checks that a file has a version, with 0 that there is nothing of its name.
func (t *Tree) is(name string, was int64, free bool) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := t.root.Lstat(dir); err == nil && !info.IsDir() {
			return storage.ErrState
		}
	}
	info, err := t.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && was == 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return storage.ErrStale
	case err != nil:
		return err
	case free && !info.Mode().IsRegular():
		return storage.ErrState
	}
	f, err := t.read(name)
	if err == nil && f.Version != was || errors.Is(err, storage.ErrNotFound) {
		return storage.ErrStale
	}
	return err
}

// replace gives a file new content, whole or not at all.
func (t *Tree) replace(name string, body []byte) error {
	dir := path.Dir(name)
	if err := t.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp := path.Join(dir, treeTemp+string(claybot.NewID()))
	file, err := t.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = file.Write(body)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err == nil {
		err = t.root.Rename(tmp, name)
	}
	if err != nil {
		_ = t.root.Remove(tmp) // the error that matters is the other one
		return err
	}
	return t.sync(dir)
}

// sync makes the names in a folder durable, and in those above it.
func (t *Tree) sync(dir string) error {
	for {
		d, err := t.root.Open(filepath.FromSlash(dir))
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil || dir == "." {
			return err
		}
		dir = path.Dir(dir)
	}
}

// Remove implements storage.Tree. Folders that are empty then go, too.
func (t *Tree) Remove(ctx context.Context, name string, was int64) error {
	if !storage.ValidTreePath(name) {
		return badPath(name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	info, err := t.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !info.Mode().IsRegular():
		return nil
	case err == nil && was != 0:
		err = t.is(name, was, false)
	}
	if err == nil {
		err = t.root.Remove(name)
	}
	dir := path.Dir(name)
	for ; err == nil && dir != "." && t.root.Remove(dir) == nil; dir = path.Dir(dir) {
	}
	if err == nil {
		err = t.sync(dir)
	}
	if err != nil {
		return failed("remove "+name, err)
	}
	return nil
}

// Move implements storage.Tree. All that lies in the folder goes along, whatever
// it is.
func (t *Tree) Move(ctx context.Context, from, to string, guard storage.TreeFile) error {
	if !storage.ValidTreePath(from) || !storage.ValidTreePath(to) || strings.HasPrefix(to+"/", from+"/") {
		return badPath(to)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := t.movable(from, to, guard)
	if err == nil {
		err = t.root.MkdirAll(path.Dir(to), 0o700)
	}
	if err == nil {
		err = t.root.Rename(from, to)
	}
	if err == nil {
		err = errors.Join(t.sync(path.Dir(to)), t.sync(path.Dir(from)))
	}
	if err != nil {
		return failed("move "+from, err)
	}
	return nil
}

func (t *Tree) movable(from, to string, guard storage.TreeFile) error {
	info, err := t.root.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
		return storage.ErrNotFound
	}
	if err == nil && guard.Path != "" {
		err = t.is(guard.Path, guard.Version, false)
	}
	if err != nil {
		return err
	}
	if _, err := t.root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, storage.ErrState)
	}
	return nil
}
