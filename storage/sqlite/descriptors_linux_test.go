package sqlite

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// sharedLock is where SQLite's connections hold their lock on a main file (PENDING_BYTE + 2 and
// SHARED_SIZE of its os.h), and getOFDLock the fcntl command that asks for one (fcntl_locking(2)).
const (
	sharedLock     = 0x40000000 + 2
	sharedLockSize = 510
	getOFDLock     = 36
)

// lockHeld reports whether a process holds a lock where those of SQLite are; also this one, as the question comes
// from another open file description.
func lockHeld(t *testing.T, f *os.File) bool {
	t.Helper()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: sharedLock, Len: sharedLockSize}
	if err := syscall.FcntlFlock(f.Fd(), getOFDLock, &lock); err != nil {
		t.Fatal(err)
	}
	return lock.Type != syscall.F_UNLCK
}

// Whatever is read beside SQLite, the locks of its connections stay: without them, another program that reads the
// database and ends, such as the sqlite3 command before 3.51, writes and deletes the log of the running claybot.
func TestLocksStay(t *testing.T) {
	for name, read := range map[string]func(t *testing.T, db *DB) error{
		"a start": func(*testing.T, *DB) error { return nil },
		"readers": func(t *testing.T, db *DB) error {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, err := db.Stats(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return nil
		},
		"a check": func(t *testing.T, db *DB) error { _, err := db.Check(t.Context(), 0); return err },
		"a copy": func(t *testing.T, db *DB) error {
			return db.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db"), 0)
		},
		"a look": func(t *testing.T, db *DB) error { _, err := Look(t.Context(), db.path, false); return err },
	} {
		db := openFresh(t)
		post(t, db, "before")
		f, err := os.Open(db.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := read(t, db); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !lockHeld(t, f) {
			t.Errorf("%s: the lock is gone", name)
		}
		post(t, db, "after")
		if err := db.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if lockHeld(t, f) {
			t.Errorf("%s: a lock is left", name)
		}
		if n := len(descriptors.all); n != 0 {
			t.Errorf("%s: %d descriptors are open", name, n)
		}
		_ = f.Close() // it was not read
	}
}
