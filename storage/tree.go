package storage

import (
	"context"
	"errors"
	"io/fs"
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
}

// A TreeDelta is what has changed in a Tree.
type TreeDelta struct {
	Files []TreeFile // in no particular order; of Version 0: not there any more
	Point int64      // for the next call; never 0
	// Whole: Files are all that there are, because nobody knows any more what has
	// changed since. What is not among them is not there.
	Whole bool
}

// ValidTreePath reports whether a file or folder of a Tree can have this path: at
// most 512 bytes of UTF-8, parts between slashes of which none is empty, "." or
// "..", no control characters and no backslash.
func ValidTreePath(path string) bool {
	return len(path) <= 512 && path != "." && fs.ValidPath(path) &&
		!strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}
