package storage

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// ErrStale means that the file has changed since it was read; nothing was
// written.
var ErrStale = errors.New("it was changed meanwhile")

// MaxTreeFile is the maximum size of a file of a Tree, in bytes.
const MaxTreeFile = 1 << 20

// A Tree stores small files by path for all processes that share it: the tasks of
// cron and the heartbeat, skills, grants and tokens, logins to MCP servers. A path
// has segments between slashes (see ValidTreePath); a name is either a file or a
// folder. Folders exist as long as they contain a file. Files below a segment
// that begins with a dot are set aside: they can be listed, read and moved, but
// Changes does not report them.
//
// A write names the version that it replaces, so concurrent writers do not
// overwrite each other. Every change is atomic, and durable and visible to all
// when its method returns. A database has the tables
//
//	CREATE TABLE tree (
//		path    text COLLATE "C" PRIMARY KEY,
//		body    bytea,           -- NULL: removed; the row goes a day later
//		version bigint NOT NULL, -- from tree_clock
//		at      bigint NOT NULL  -- milliseconds, by the clock of the store
//	);
//	CREATE INDEX tree_version ON tree (version);
//	CREATE TABLE tree_clock (one int PRIMARY KEY CHECK (one = 1), n bigint NOT NULL, pruned bigint NOT NULL);
//
// Each change first increments n, which locks that row until it commits: versions
// become visible in order, and
//
//	SELECT c.n, c.pruned, t.path, t.version, octet_length(t.body), t.at
//	FROM tree_clock c LEFT JOIN tree t ON t.version > $1
//
// misses no change since n was $1.
type Tree interface {
	// Changes returns the files that were written or removed since a point that
	// an earlier call returned; since 0, all files. It is cheap if nothing has
	// changed.
	Changes(ctx context.Context, since int64) (TreeDelta, error)
	// List lists all files below a folder by path, including those set aside;
	// the empty folder is the whole tree.
	List(ctx context.Context, folder string) ([]TreeFile, error)
	// Read returns the existing ones of the files with their bodies, in the order
	// of paths.
	Read(ctx context.Context, paths ...string) ([]TreeFile, error)
	// Write creates a file if was is 0, else it replaces the version was; ErrStale
	// if the file has another version or does not exist. ErrTooMany for more than
	// MaxTreeFile bytes, ErrState if path is a folder or a parent of path is a
	// file.
	Write(ctx context.Context, path string, body []byte, was int64) (version int64, err error)
	// Remove removes version was of a file, or any version if was is 0;
	// ErrStale. A missing file is not an error.
	Remove(ctx context.Context, path string, was int64) error
	// Move renames the folder from to to; ErrState if to exists, ErrNotFound if
	// from does not. With a guard, a file below from, it returns ErrStale if that
	// file does not have the guard's version.
	Move(ctx context.Context, from, to string, guard TreeFile) error
}

// A TreeFile is one file of a Tree.
type TreeFile struct {
	Path string
	// Version changes with every change of the content.
	Version int64 // 0 only for a removed file
	Size    int   // bytes
	At      claybot.Time
	Body    []byte // only from Read
	// Err is why a file that a user created by hand cannot be read: fs.ErrNotExist
	// if its folder lacks it, ErrTooMany if Body is truncated. It is nil for files
	// written through a Tree.
	Err error
}

// A TreeDelta is a set of changes of a Tree.
type TreeDelta struct {
	Files []TreeFile // in no particular order; Version 0: removed
	Point int64      // for the next call; never 0
	// Whole means that Files is the complete listing, because the changes since
	// the point are no longer known.
	Whole bool
}

// A BatchTree is a Tree with an efficient batch write. Optional.
type BatchTree interface {
	// WriteAll implements WriteFiles.
	WriteAll(ctx context.Context, files []TreeFile) error
}

// WriteFiles writes files, each replacing its Version, and sets Version to the new
// one. It removes files without a Body in any version. It stops at the first error;
// the files before it are durable.
func WriteFiles(ctx context.Context, t Tree, files []TreeFile) error {
	if b, ok := t.(BatchTree); ok {
		return b.WriteAll(ctx, files)
	}
	for i := range files {
		f, err := &files[i], error(nil)
		if f.Body == nil {
			f.Version, err = 0, t.Remove(ctx, f.Path, 0)
		} else {
			f.Version, err = t.Write(ctx, f.Path, f.Body, f.Version)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAtOnce is the number of files that ReadFiles reads per call.
const readAtOnce = 100

// ReadFiles reads any number of files and omits missing ones.
func ReadFiles(ctx context.Context, t Tree, paths []string) (map[string]TreeFile, error) {
	all := make(map[string]TreeFile, len(paths))
	for part := range slices.Chunk(paths, readAtOnce) {
		found, err := t.Read(ctx, part...)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			all[f.Path] = f
		}
	}
	return all, nil
}

// ReadFile reads one file. The error is fs.ErrNotExist if it does not exist, or
// the file's own Err, which is returned with what could be read.
func ReadFile(ctx context.Context, t Tree, path string) (TreeFile, error) {
	found, err := t.Read(ctx, path)
	if err == nil && len(found) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return TreeFile{Path: path}, err
	}
	return found[0], found[0].Err
}

// EditFiles is EditFile for many files, with few calls of the store.
func EditFiles(ctx context.Context, t Tree, paths []string, edit func(i int, old TreeFile) ([]byte, error)) ([]TreeFile, error) {
	old, err := ReadFiles(ctx, t, paths)
	if err != nil {
		return nil, err
	}
	all := make([]TreeFile, len(paths))
	var changed []TreeFile
	var at []int // of the changed ones in all
	for i, p := range paths {
		all[i] = old[p]
		all[i].Path = p
		body, err := edit(i, all[i])
		if err != nil {
			return nil, err
		}
		if body != nil {
			f := all[i]
			f.Body, f.Size = body, len(body)
			changed, at = append(changed, f), append(at, i)
		}
	}
	err = WriteFiles(ctx, t, changed)
	if err != nil && !errors.Is(err, ErrStale) {
		return nil, err
	}
	for k, i := range at {
		if all[i], err = changed[k], nil; all[i].Version == old[paths[i]].Version { // not written: another writer came first
			all[i], err = EditFile(ctx, t, paths[i], func(f TreeFile) ([]byte, error) { return edit(i, f) })
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// A Layout maps a folder of a Tree to a directory that users edit.
type Layout struct {
	// Folder is the folder of the tree that the directory holds; empty: the whole
	// tree.
	Folder string
	// Watch matches the files that users edit: "*.md", or "*/TASK.md" for one in
	// every folder. Changes reports only these, with problems in their Err. Empty:
	// Changes reports all readable files.
	Watch string
	Kept  MarkFiles // the zero MarkFiles: none
}

// MarkFiles are files of a Tree that a data directory stores in a checkpoint of
// its database, because users do not edit them.
type MarkFiles struct {
	Mark string
	// Has reports whether the file at a path is one of them.
	Has func(path string) bool
	// ID returns the identity of a file, unique within the checkpoint; empty: the
	// checkpoint cannot hold this file. nil: it can hold all.
	ID func(body []byte) string
	// Split converts a checkpoint to its files. files are the other files of the
	// tree, as far as they are known.
	Split func(mark string, files map[string][]byte) map[string][]byte
	// Join converts the files to a checkpoint.
	Join func(files map[string][]byte) string
}

// ValidTreePath reports whether a file or folder of a Tree can have this path: at
// most 512 bytes of UTF-8, parts between slashes of which none is empty, "." or
// "..", no control characters and no backslash.
func ValidTreePath(path string) bool {
	return len(path) <= 512 && path != "." && fs.ValidPath(path) &&
		!strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}
