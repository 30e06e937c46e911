package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// rewrite adds checksums to the pages of a file without: it copies the file and replaces
// it atomically and durably. A crash leaves the old file or the new one. No connection
// may be open. It takes as long as copying and temporarily needs the space of a copy; it
// runs once, after an upgrade from a version without checksums.
func rewrite(ctx context.Context, path string) error {
	if done, err := summed(path); err != nil || done {
		return err
	}
	c, err := connect(ctx, path, []string{"journal_mode(WAL)"})
	if err != nil {
		return err
	}
	err = c.control("PRAGMA wal_checkpoint(TRUNCATE)")
	if err = errors.Join(err, c.close()); err != nil {
		return err
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return fmt.Errorf("rewrite %s: its log is in use", path)
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := copySummed(path, fresh); err != nil {
		_ = os.Remove(fresh) // only garbage; the next try removes it first
		return err
	}
	for _, name := range []string{path + "-wal", path + "-shm"} { // empty, left by a crashed process
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

// copySummed copies a database that no process uses to a new file whose pages have
// checksums, and syncs it.
func copySummed(from, to string) error {
	if err := registered(); err != nil {
		return err
	}
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString(from)
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, name)
	slot := tls.Alloc(8)
	defer tls.Free(8)
	rc := sqlite3.Xsqlite3_open_v2(tls, name, slot, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_URI, 0)
	db := *at[uintptr](slot)
	defer sqlite3.Xsqlite3_close_v2(tls, db)
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("rewrite %s: code %d", from, rc)
	}
	main, err := libc.CString("main")
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, main)
	*at[int32](slot) = reserved
	if rc := sqlite3.Xsqlite3_file_control(tls, db, main, sqlite3.SQLITE_FCNTL_RESERVE_BYTES, slot); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("rewrite %s: code %d", from, rc)
	}
	q, err := libc.CString("PRAGMA temp_store = MEMORY; PRAGMA secure_delete = 1; VACUUM INTO " + quoteText(uri(to, "vfs="+VFS)))
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, q)
	if rc := sqlite3.Xsqlite3_exec(tls, db, q, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		text := libc.GoString(sqlite3.Xsqlite3_errmsg(tls, db))
		return classify(codeError{code: int(sqlite3.Xsqlite3_extended_errcode(tls, db)), text: "rewrite " + from + ": " + text})
	}
	return private(to)
}

// private makes a new file durable and readable only by its owner.
func private(name string) error {
	if err := os.Chmod(name, 0o600); err != nil {
		return err
	}
	return syncFile(name)
}

// syncFile syncs a file or directory.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
