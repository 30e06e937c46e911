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

// lockDirectory locks a data directory. A problem that only the operator can fix is a
// configError.
func lockDirectory(dir string) (*files.DirLock, error) {
	lock, err := files.Lock(dir)
	return lock, unfit(err)
}

// openDatabase opens the database of a data directory. A schema of a newer claybot is a
// configError. If the database was lost, replaced or rolled back since the boot record was
// written, openDatabase ends its unfinished work.
func openDatabase(ctx context.Context, dir string, c sqlite.Config) (*sqlite.DB, error) {
	path := filepath.Join(dir, "claybot.db")
	if _, err := os.Stat(path + sqlite.Restoring); err == nil {
		return nil, fmt.Errorf("open %s: %w: a restore was interrupted; run it again: claybot restore --data-dir %s", path, storage.ErrDamaged, dir)
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
	// Revocations that a killed process only recorded, and approvals that an undetected
	// rollback brought back.
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

// unfit is the error of a directory that cannot be used. A lock of another process, a full
// disk and temporary problems are no configErrors: a later start may succeed.
func unfit(err error) error {
	if err == nil || errors.Is(err, storage.ErrLocked) || errors.Is(err, storage.ErrFull) {
		return err
	}
	if no := syscall.Errno(0); errors.As(err, &no) && !slices.Contains(lasting, no) {
		return err
	}
	return configError{err}
}

// lasting are the errors of a directory that persist until someone fixes it. Others, such
// as too many open files or an unreachable network disk, may pass.
var lasting = []syscall.Errno{
	syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOENT, syscall.EEXIST,
	syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.ENOSYS, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENXIO,
}

// unreached says why the daemon of a data directory cannot be reached, or why no daemon can
// use the directory.
func unreached(dir string, err error) error {
	_, _, look := files.Look(dir)
	switch {
	case errors.Is(look, fs.ErrPermission) || errors.Is(err, fs.ErrPermission):
		return configError{fmt.Errorf("this user cannot read the data directory %s; run this as the user who runs claybot", dir)}
	case look != nil:
		return configError{look}
	}
	return err
}
