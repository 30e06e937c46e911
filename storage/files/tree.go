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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// treeFresh is how long after a change a second one may leave the file's times unchanged.
const treeFresh = 4 * time.Second

// treeTemp is the prefix of files and folders that are being written, and oldTemp that of
// earlier versions.
const (
	treeTemp = ".tmp-"
	oldTemp  = ".new-"
)

// A TreeConfig configures a Tree. Dir is required.
type TreeConfig struct {
	// Dir is the directory; the first write creates it.
	Dir string
	storage.Layout
	// Marks store the files of Kept.
	Marks storage.Checkpoints
}

// A Tree is a storage.Tree on a directory, for one process. Its files have mode 0600, its
// folders mode 0700, and users may edit them: a version is a hash of the content, so every
// change is seen. Only regular files with a valid path and at most storage.MaxTreeFile
// bytes belong to it; a Tree with Watch follows links that stay inside Dir. Files are
// replaced by rename and folders are created with their first file, both durably.
//
// If another process writes a file at the same moment as the Tree, its write may be lost.
// Files that it adds to a folder while the Tree moves it may stay behind.
type Tree struct {
	cfg TreeConfig
	mu  sync.Mutex // guards all below; held while files are written

	seen  map[string]treeSeen
	point int64
	base  int64               // no earlier point is known
	told  map[string]treeTold // reported by Changes, including removed files
	kept  map[string][]byte   // the files of Kept; nil: not loaded yet
	mark  string              // the mark of these files, as read or written last
}

// treeTold is the version of a file, 0 after its removal, and the point of that change.
type treeTold struct{ at, version int64 }

var (
	_ storage.Tree      = (*Tree)(nil)
	_ storage.BatchTree = (*Tree)(nil)
)

// treeSeen is the state of a file when it was last read.
type treeSeen struct {
	info    fs.FileInfo
	fresh   bool // may have changed since without a trace
	version int64
}

func (s treeSeen) same(info fs.FileInfo) bool {
	return s.info != nil && !s.fresh && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime()) && os.SameFile(s.info, info)
}

// OpenTree returns a Tree and removes files that a crash left incomplete. If the
// directory cannot be read, every use returns an error.
func OpenTree(cfg TreeConfig) *Tree {
	// Points of other processes are invalid here.
	base := time.Now().UnixNano()
	t := &Tree{cfg: cfg, seen: make(map[string]treeSeen), told: make(map[string]treeTold), point: base, base: base}
	entries, _ := os.ReadDir(cfg.Dir)
	for _, e := range entries {
		if e.IsDir() && (strings.HasPrefix(e.Name(), treeTemp) || strings.HasPrefix(e.Name(), oldTemp)) {
			_ = os.RemoveAll(filepath.Join(cfg.Dir, e.Name())) // only garbage
		}
	}
	return t
}

// treeVersion returns the version of a file with this content.
func treeVersion(body []byte) int64 {
	sum := sha256.Sum256(body)
	return int64(binary.BigEndian.Uint64(sum[:8])>>1 | 1) //nolint:gosec // half of 64 bits fits
}

// writable returns an error for a path or content that no tree accepts.
func writable(p string, body []byte) error {
	switch {
	case !storage.ValidTreePath(p):
		return badPath(p)
	case len(body) > storage.MaxTreeFile:
		return fmt.Errorf("write %s: %w: %d bytes", p, storage.ErrTooMany, len(body))
	}
	return nil
}

func badPath(p string) error { return fmt.Errorf("invalid file path %.200q", p) }

// name returns the name of a path below Dir; ok is false if the tree cannot have it.
func (t *Tree) name(p string) (name string, ok bool) {
	switch {
	case !storage.ValidTreePath(p):
		return "", false
	case t.cfg.Folder == "":
		return p, true
	case p == t.cfg.Folder:
		return ".", true
	}
	return strings.CutPrefix(p, t.cfg.Folder+"/")
}

// open opens Dir; access through it cannot leave Dir through links. With make it creates
// Dir.
func (t *Tree) open(make bool) (*os.Root, error) {
	if make {
		if err := os.MkdirAll(t.cfg.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(t.cfg.Dir)
}

// inside calls do with Dir and the name of a file in it, with mu held.
func (t *Tree) inside(ctx context.Context, what, p string, make bool, do func(root *os.Root, name string) error) error {
	name, ok := t.name(p)
	if !ok {
		return badPath(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(ctx); err != nil {
		return err
	}
	root, err := t.open(make)
	if err == nil {
		defer func() { _ = root.Close() }()
		err = do(root, name)
	}
	if err != nil {
		return failed(what+" "+p, err)
	}
	return nil
}

// Changes implements storage.Tree.
func (t *Tree) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.load(ctx)
	var all []storage.TreeFile
	switch {
	case err != nil:
	case t.cfg.Watch != "":
		all, err = t.watched(ctx)
	default:
		all, err = t.walk(ctx, t.cfg.Folder, false)
	}
	if err != nil {
		return storage.TreeDelta{}, err
	}
	for p := range t.kept {
		if !strings.Contains("/"+p, "/.") {
			all = append(all, t.keptFile(p, false))
		}
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
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	all, err := t.walk(ctx, folder, true)
	for p := range t.kept {
		if folder == "" || strings.HasPrefix(p, folder+"/") {
			all = append(all, t.keptFile(p, false))
		}
	}
	slices.SortFunc(all, func(a, b storage.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}

// Read implements storage.Tree.
func (t *Tree) Read(ctx context.Context, paths ...string) ([]storage.TreeFile, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	var root *os.Root
	var all []storage.TreeFile
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if _, kept := t.kept[p]; kept {
			all = append(all, t.keptFile(p, true))
			continue
		}
		if t.keeps(p) {
			continue
		}
		name, ok := t.name(p)
		if !ok {
			continue
		}
		if root == nil {
			var err error
			if root, err = t.open(false); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, failed("read "+p, err)
			}
			defer func() { _ = root.Close() }()
		}
		switch f := t.read(root, name); {
		case errors.Is(f.Err, fs.ErrNotExist):
		case f.Err == nil || t.cfg.Watch != "":
			f.Path = p
			all = append(all, f)
		case !unreadable(f.Err):
			return nil, failed("read "+p, f.Err)
		}
	}
	return all, nil
}

var (
	errIrregular = errors.New("it is not a regular file")
	errLink      = errors.New("it is a link")
)

// unreadable reports whether a Tree without Watch ignores a file because of err.
func unreadable(err error) bool {
	return errors.Is(err, errIrregular) || errors.Is(err, errLink) || errors.Is(err, storage.ErrTooMany) || errors.Is(err, fs.ErrPermission)
}

// read reads one file, without its path. The caller holds mu.
func (t *Tree) read(root *os.Root, name string) (f storage.TreeFile) {
	f.Body, f.At, f.Err = t.content(root, name)
	f.Size, f.Version = len(f.Body), treeVersion(f.Body)
	if f.Err != nil {
		f.Version = treeVersion([]byte(f.Err.Error()))
	}
	return f
}

func (t *Tree) content(root *os.Root, name string) ([]byte, claybot.Time, error) {
	if info, err := root.Lstat(name); t.cfg.Watch == "" && err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, 0, errLink
	}
	// Do not block on a pipe.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }() // only reads
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		return nil, 0, err
	}
	body, err := io.ReadAll(io.LimitReader(file, storage.MaxTreeFile+1))
	if err == nil && len(body) > storage.MaxTreeFile {
		body, err = body[:storage.MaxTreeFile], fmt.Errorf("%w: more than %d bytes", storage.ErrTooMany, storage.MaxTreeFile)
	}
	return body, claybot.At(info.ModTime()), err
}
