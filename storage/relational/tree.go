package relational

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// keepRemoved is how long removals are remembered. A reader whose last query is older
	// reads everything again.
	keepRemoved = 24 * time.Hour
	// treeUpkeep is the number of changes between two prunings.
	treeUpkeep = 256
)

// A Tree is the storage.Tree in the tables of a Store. Changes are serialized: they are
// rare and small, and their versions must become visible in order.
type Tree struct{ db *core }

var _ storage.Tree = Tree{}

// Tree returns the tree of small files. The schema must have its tables.
func (db *core) Tree() Tree { return Tree{db} }

// shownFiles excludes hidden files.
const shownFiles = "t.path NOT LIKE '.%' AND t.path NOT LIKE '%/.%'"

// Changes implements storage.Tree.
func (t Tree) Changes(ctx context.Context, since int64) (d storage.TreeDelta, err error) {
	err = t.db.read(ctx, func(c *Conn) error {
		var pruned int64
		if d, pruned, err = treeChanges(c, since, since <= 0); err != nil {
			return err
		}
		if !d.Whole && (since < pruned || since > d.Point) {
			d, _, err = treeChanges(c, 0, true)
		}
		return err
	})
	return result(d, err, "changes of files")
}

func treeChanges(c *Conn, since int64, whole bool) (d storage.TreeDelta, pruned int64, err error) {
	q := "SELECT c.n, c.pruned, t.path, t.version, length(t.body), t.at FROM tree_clock c LEFT JOIN tree t ON t.version > ? AND " + shownFiles
	if whole {
		since = 0
		q += " AND t.body IS NOT NULL"
	}
	d.Whole = whole
	err = c.each(q, func(r Row) error {
		d.Point, pruned = r.Int(0), r.Int(1)
		if r.Null(2) {
			return nil
		}
		f := storage.TreeFile{Path: r.Str(2)}
		if !r.Null(4) {
			f.Version, f.Size, f.At = r.Int(3), int(r.Int(4)), claybot.Time(r.Int(5))
		}
		d.Files = append(d.Files, f)
		return nil
	}, since)
	return d, pruned, err
}

func badPath(p string) error { return fmt.Errorf("invalid file path %.200q", p) }

// below returns the first path below a folder and the first after all of them.
func below(folder string) (from, to string) { return folder + "/", folder + "0" }

// List implements storage.Tree.
func (t Tree) List(ctx context.Context, folder string) (all []storage.TreeFile, err error) {
	q, args := "SELECT path, version, length(body), at FROM tree WHERE body IS NOT NULL", []any(nil)
	if folder != "" {
		if !storage.ValidTreePath(folder) {
			return nil, badPath(folder)
		}
		from, to := below(folder)
		q, args = q+" AND path >= ? AND path < ?", []any{from, to}
	}
	err = t.db.read(ctx, func(c *Conn) error {
		all = nil
		return c.each(q+" ORDER BY path", func(r Row) error {
			all = append(all, storage.TreeFile{Path: r.Str(0), Version: r.Int(1), Size: int(r.Int(2)), At: claybot.Time(r.Int(3))})
			return nil
		}, args...)
	})
	return result(all, err, "list files of %q", folder)
}

// Read implements storage.Tree.
func (t Tree) Read(ctx context.Context, paths ...string) (all []storage.TreeFile, err error) {
	var args []any
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if storage.ValidTreePath(p) {
			args = append(args, p)
		}
	}
	if len(args) == 0 {
		return nil, nil
	}
	q := "SELECT path, version, body, at FROM tree WHERE body IS NOT NULL AND path IN (?" + strings.Repeat(", ?", len(args)-1) + ") ORDER BY path"
	err = t.db.read(ctx, func(c *Conn) error {
		all = nil
		return c.each(q, func(r Row) error {
			body := slices.Clone(r.Bytes(2)) // the bytes belong to the connection
			if body == nil {
				body = []byte{}
			}
			all = append(all, storage.TreeFile{Path: r.Str(0), Version: r.Int(1), Size: len(body), At: claybot.Time(r.Int(3)), Body: body})
			return nil
		}, args...)
	})
	return result(all, err, "read files")
}

// change runs fn while no other transaction changes the tree.
func (t Tree) change(ctx context.Context, what, p string, fn func(c *Conn) (int64, error)) (int64, error) {
	v, err := write(ctx, t.db, func(c *Conn) (int64, error) {
		if err := c.lock("tree"); err != nil {
			return 0, err
		}
		return fn(c)
	})
	return result(v, err, "%s %s", what, p)
}

// nextVersion increments the clock of the tree.
func nextVersion(c *Conn) (v int64, err error) {
	if err := need(c.insert("UPDATE tree_clock SET n = n + 1 WHERE one = 1 RETURNING n", func(r Row) error { v = r.Int(0); return nil })); err != nil {
		return 0, err
	}
	if v%treeUpkeep == 0 {
		old := c.now() - keepRemoved.Milliseconds()
		if err := c.do(`UPDATE tree_clock SET pruned = (SELECT coalesce(max(version), pruned) FROM tree WHERE body IS NULL AND at < ?) WHERE one = 1`, old); err != nil {
			return 0, err
		}
		err = c.do("DELETE FROM tree WHERE body IS NULL AND at < ?", old)
	}
	return v, err
}

// fileVersion returns the version of a file; 0 if it does not exist.
func fileVersion(c *Conn, p string) (v int64, err error) {
	_, err = c.first("SELECT version FROM tree WHERE path = ? AND body IS NOT NULL", func(r Row) error { v = r.Int(0); return nil }, p)
	return v, err
}

// isFolder reports whether a path is a folder, or cannot be a file because one of its
// parents is a file.
func isFolder(c *Conn, p string) (bool, error) {
	from, to := below(p)
	found, err := c.first("SELECT 1 FROM tree WHERE path >= ? AND path < ? AND body IS NOT NULL LIMIT 1", func(Row) error { return nil }, from, to)
	for dir := path.Dir(p); err == nil && !found && dir != "."; dir = path.Dir(dir) {
		found, err = c.first("SELECT 1 FROM tree WHERE path = ? AND body IS NOT NULL", func(Row) error { return nil }, dir)
	}
	return found, err
}

func putFile(c *Conn, p string, body []byte, version, at int64) error {
	if body == nil {
		body = []byte{}
	}
	return c.do(`INSERT INTO tree (path, body, version, at) VALUES (?, ?, ?, ?)
		ON CONFLICT (path) DO UPDATE SET body = excluded.body, version = excluded.version, at = excluded.at`, p, Bytes(body), version, at)
}

func dropFile(c *Conn, p string, version int64) error {
	return c.do("UPDATE tree SET body = NULL, version = ?, at = ? WHERE path = ?", version, c.now(), p)
}

// Write implements storage.Tree.
func (t Tree) Write(ctx context.Context, p string, body []byte, was int64) (int64, error) {
	switch {
	case !storage.ValidTreePath(p):
		return 0, badPath(p)
	case len(body) > storage.MaxTreeFile:
		return 0, fmt.Errorf("write %s: %w: %d bytes", p, storage.ErrTooMany, len(body))
	}
	return t.change(ctx, "write", p, func(c *Conn) (int64, error) {
		version, err := fileVersion(c, p)
		if err != nil {
			return 0, err
		}
		if version == 0 { // otherwise the path is free
			if taken, err := isFolder(c, p); err != nil || taken {
				return 0, orState(err)
			}
		}
		if version != was {
			return 0, storage.ErrStale
		}
		if version, err = nextVersion(c); err != nil {
			return 0, err
		}
		return version, putFile(c, p, body, version, c.now())
	})
}

// orState returns err, or storage.ErrState if it is nil.
func orState(err error) error {
	if err == nil {
		err = storage.ErrState
	}
	return err
}

// Remove implements storage.Tree.
func (t Tree) Remove(ctx context.Context, p string, was int64) error {
	if !storage.ValidTreePath(p) {
		return badPath(p)
	}
	_, err := t.change(ctx, "remove", p, func(c *Conn) (int64, error) {
		version, err := fileVersion(c, p)
		switch {
		case err != nil || version == 0:
			return 0, err
		case was != 0 && was != version:
			return 0, storage.ErrStale
		}
		if version, err = nextVersion(c); err != nil {
			return 0, err
		}
		return version, dropFile(c, p, version)
	})
	return err
}

// Move implements storage.Tree.
func (t Tree) Move(ctx context.Context, from, to string, guard storage.TreeFile) error {
	if !storage.ValidTreePath(from) || !storage.ValidTreePath(to) || strings.HasPrefix(to+"/", from+"/") {
		return badPath(to)
	}
	_, err := t.change(ctx, "move", from, func(c *Conn) (int64, error) { return 0, moveFiles(c, from, to, guard) })
	return err
}

func moveFiles(c *Conn, from, to string, guard storage.TreeFile) error {
	type entry struct {
		path string
		body []byte
		at   int64
	}
	var all []entry
	first, last := below(from)
	if err := c.each("SELECT path, body, at FROM tree WHERE path >= ? AND path < ? AND body IS NOT NULL", func(r Row) error {
		all = append(all, entry{r.Str(0), slices.Clone(r.Bytes(1)), r.Int(2)})
		return nil
	}, first, last); err != nil {
		return err
	}
	if len(all) == 0 {
		return storage.ErrNotFound
	}
	if guard.Path != "" {
		if v, err := fileVersion(c, guard.Path); err != nil || v == 0 || v != guard.Version {
			if err == nil {
				err = storage.ErrStale
			}
			return err
		}
	}
	taken, err := isFolder(c, to)
	if err == nil && !taken {
		var v int64
		v, err = fileVersion(c, to)
		taken = v != 0
	}
	if err != nil || taken {
		return orState(err)
	}
	version, err := nextVersion(c)
	for _, f := range all {
		if err == nil {
			err = putFile(c, to+strings.TrimPrefix(f.path, from), f.body, version, f.at)
		}
		if err == nil {
			err = dropFile(c, f.path, version)
		}
	}
	return err
}
