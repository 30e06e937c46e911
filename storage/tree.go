package storage

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// ErrStale: the file is not the one any more that was read; nothing was written.
var ErrStale = errors.New("it was changed meanwhile")

// MaxTreeFile is the most bytes that a file of a Tree has.
const MaxTreeFile = 1 << 20

// A Tree keeps small files by path for all processes that share it: the tasks of
// cron and the heartbeat, skills, who may come in, logins at servers. A path has
// parts between slashes (see ValidTreePath); a name is a file or a folder and
// never both. Folders are there for as long as something is in them. What lies in
// a part that begins with a dot is put aside: it can be listed, read and moved,
// but Changes does not tell of it.
//
// A write that names the version it replaces makes sure that two nodes do not
// overwrite each other. Every change is durable, and visible to all, when its
// method returns, as a whole or not at all. The store of a database has
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
// Each change first counts up n, and so holds that row until it commits: versions
// become visible in their order, and
//
//	SELECT c.n, c.pruned, t.path, t.version, octet_length(t.body), t.at
//	FROM tree_clock c LEFT JOIN tree t ON t.version > $1
//
// misses nothing that was changed since n was $1.
type Tree interface {
	// Changes tells which files were written or removed since a point that an
	// earlier call returned; since 0 it is all that is there. It is cheap when
	// nothing has happened.
	Changes(ctx context.Context, since int64) (TreeDelta, error)
	// List lists all files below a folder by path, also what is put aside; the
	// empty folder is the whole tree.
	List(ctx context.Context, folder string) ([]TreeFile, error)
	// Read returns those of the files that are there, in the order of paths, with
	// their bodies.
	Read(ctx context.Context, paths ...string) ([]TreeFile, error)
	// Write makes a file, where was is 0, or replaces the version was; ErrStale
	// when it is another or not there. ErrTooMany for more than MaxTreeFile bytes,
	// ErrState where a folder has the name, or a file that of a folder on the way.
	Write(ctx context.Context, path string, body []byte, was int64) (version int64, err error)
	// Remove removes the version was of a file, or with 0 any; ErrStale. A file
	// that is not there is no error.
	Remove(ctx context.Context, path string, was int64) error
	// Move gives all that lies in the folder from the place to, which must not be
	// there: ErrState. ErrNotFound when there is no such folder. With a guard, a
	// file below from, ErrStale when that is not there in that version.
	Move(ctx context.Context, from, to string, guard TreeFile) error
}

// A TreeFile is one file of a Tree.
type TreeFile struct {
	Path string
	// Version is another number after every change of what is in the file.
	Version int64 // never 0, but for what was removed
	Size    int   // bytes
	At      claybot.Time
	Body    []byte // only from Read
	// Err is why a file that a person put there cannot be read: fs.ErrNotExist where
	// its folder lacks it, ErrTooMany where Body has the beginning alone. nil for
	// what was written by way of a Tree.
	Err error
}

// A TreeDelta is what has changed in a Tree.
type TreeDelta struct {
	Files []TreeFile // in no particular order; of Version 0: not there any more
	Point int64      // for the next call; never 0
	// Whole: Files are all that there are, because nobody knows any more what has
	// changed since. What is not among them is not there.
	Whole bool
}

// A BatchTree is a Tree that makes many changes at the price of one. Optional.
type BatchTree interface {
	// WriteAll does what WriteFiles promises.
	WriteAll(ctx context.Context, files []TreeFile) error
}

// WriteFiles writes files, each in place of its Version, and sets that to the new
// one. Files without a Body are removed in any version. It stops at the first error,
// and what comes before that is durable.
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

// readAtOnce is how many files ReadFiles asks for at once.
const readAtOnce = 100

// ReadFiles reads any number of files; those that are not there are left out.
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

// ReadFile reads one file. The error is fs.ErrNotExist when there is none, or the
// file's own, which then comes with what could be read.
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

// EditFiles replaces files by what edit makes of each, as EditFile does, with few
// calls of the store.
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

// A Layout says how a data directory has a folder of a Tree that people edit.
type Layout struct {
	// Folder is the folder of the tree that the directory is; empty: the whole tree.
	Folder string
	// Watch names the files that people edit: "*.md", or "*/TASK.md" for one in every
	// folder. Changes reports these alone, and what is wrong with them in their Err.
	// Empty: Changes reports all files, and what cannot be read is none.
	Watch string
	Kept  MarkFiles // the zero MarkFiles: none
}

// MarkFiles are files of a Tree that a data directory keeps in a mark of its
// database, because people do not edit them.
type MarkFiles struct {
	Mark string
	// Has reports whether the file of a path is one of them.
	Has func(path string) bool
	// ID names what a file of such a path is about, of which the mark has one; empty: the
	// mark cannot have this file. nil: it can have all.
	ID func(body []byte) string
	// Split makes the files of a mark. files are the others of the tree, as far as
	// they are at hand.
	Split func(mark string, files map[string][]byte) map[string][]byte
	// Join makes the mark of the files.
	Join func(files map[string][]byte) string
}

// ValidTreePath reports whether a file or folder of a Tree can have this path: at
// most 512 bytes of UTF-8, parts between slashes of which none is empty, "." or
// "..", no control characters and no backslash.
func ValidTreePath(path string) bool {
	return len(path) <= 512 && path != "." && fs.ValidPath(path) &&
		!strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}
