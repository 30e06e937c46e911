package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// lockDirectory locks a data directory. What only the operator can fix is a
// configError: with such a directory nothing can start, whichever command asks.
func lockDirectory(dir string) (*files.DirLock, error) {
	lock, err := files.Lock(dir)
	return lock, unfit(err)
}

// openDatabase opens the database of a data directory. One that a newer claybot has
// written is a configError, as it is where nodes share one. Of one that was lost, replaced
// or set back since the boot record was written, unfinished work has ended when it returns.
func openDatabase(ctx context.Context, dir string, c sqlite.Config) (*sqlite.DB, error) {
	path := filepath.Join(dir, "claybot.db")
	if _, err := os.Stat(path + sqlite.Restoring); err == nil {
		return nil, fmt.Errorf("open %s: %w: a restore was cut short; run it again: claybot restore --data-dir %s", path, storage.ErrDamaged, dir)
	}
	if err := checkGone(dir, path); err != nil {
		return nil, damagedError(dir, err)
	}
	want, err := expect(dir, path)
	if err != nil {
		return nil, err
	}
	db, err := openFile(ctx, dir, path, c)
	if err != nil {
		return nil, err
	}
	if err := want.settle(ctx, db, c.Log); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	// What a process that was killed has written down only, and what a set-back brought
	// back that nobody can notice.
	again, err := withdraw(ctx, dir, db, false)
	switch {
	case c.Log == nil:
	case err != nil:
		c.Log.Warn("failed to compare approvals with revoked.json", "err", err)
	case again.any():
		c.Log.Warn("revoked approvals withdrawn from the database", "reason", again.String())
	}
	return db, nil
}

// openFile opens the database of a data directory as it is.
func openFile(ctx context.Context, dir, path string, c sqlite.Config) (*sqlite.DB, error) {
	db, err := sqlite.Open(ctx, path, c)
	if errors.Is(err, storage.ErrDamaged) {
		return nil, damagedError(dir, err)
	}
	if err == nil || errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrFull) {
		return db, err
	}
	if s, _ := sqlite.Look(ctx, path, false); s.Version > s.Known { // err says what is wrong
		return nil, configError{err}
	}
	return nil, err
}

// unfit is the error of a directory that cannot be used. One that another process holds,
// a full disk, or what passes by itself is no matter of the configuration: whoever
// starts claybot again may have luck.
func unfit(err error) error {
	if err == nil || errors.Is(err, storage.ErrLocked) || errors.Is(err, storage.ErrFull) {
		return err
	}
	if no := syscall.Errno(0); errors.As(err, &no) && !slices.Contains(lasting, no) {
		return err
	}
	return configError{err}
}

// lasting is what the system says of a directory as long as nobody mends it. Of all
// else, such as too many open files or a network disk that is away, nobody knows.
var lasting = []syscall.Errno{
	syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOENT, syscall.EEXIST,
	syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.ENOSYS, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENXIO,
}

// unreached says why the daemon of a data directory cannot be asked. Of a directory that
// none can have, the reason is told instead.
func unreached(dir string, err error) error {
	_, _, look := files.Look(dir)
	switch {
	case errors.Is(look, fs.ErrPermission) || errors.Is(err, fs.ErrPermission):
		return configError{fmt.Errorf("data directory %s cannot be read by this user; run this as the user who runs claybot", dir)}
	case look != nil:
		return configError{look}
	}
	return err
}
