package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"modernc.org/sqlite"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// ErrMoved is in errors of a store whose files are not at their path any more: what it
// would write is lost when the process ends. It wraps storage.ErrDamaged.
var ErrMoved = fmt.Errorf("%w: the file was removed or replaced while claybot used it", storage.ErrDamaged)

// Blank reports whether there is no database at path: no file, or one without tables and
// without a log.
func Blank(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || info.Size() > pageSize {
		return false, err
	}
	logged, err := HasLog(path)
	return !logged, err
}

// HasLog reports whether the database at path has a log beside it. One that a process
// uses, or that a process used that was killed, always has.
func HasLog(path string) (bool, error) {
	_, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// CheckPlace looks whether the files of the store are still those at its path. If they
// are not, it returns an error that wraps ErrMoved, and the store is as after damage:
// Config.Damaged is called and all later calls are refused.
func (db *DB) CheckPlace(ctx context.Context) error {
	err := db.Write(ctx, true, func(*relational.Conn) error { // the writer has its files open meanwhile
		if err := db.moved(); err != nil {
			return err
		}
		return db.logMoved()
	})
	_ = db.notice(err) // the caller gets the error as it is
	return err
}

// moved is ErrMoved when the file at the path is not the one that was opened. Where that
// cannot be told, it is nil.
func (db *DB) moved() error {
	info, err := os.Stat(db.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && db.file != nil && !os.SameFile(info, db.file) {
		return ErrMoved
	}
	return nil
}

// logMoved is moved for the log. It is called by the writer, in a transaction.
func (db *DB) logMoved() error {
	info, err := os.Stat(db.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && db.wal != nil && !os.SameFile(info, db.wal):
		return fmt.Errorf("its log: %w", ErrMoved)
	case err == nil:
		db.wal = info
	}
	return nil
}

// giveUp closes a connection after an I/O error. The log stays, as after a kill, even if
// no other connection is open.
func (c *conn) giveUp() {
	if f, ok := c.c.(sqlite.FileControl); ok {
		_, _ = f.FileControlPersistWAL("main", 1) // its files are given up
	}
	_ = c.close() // as above
}
