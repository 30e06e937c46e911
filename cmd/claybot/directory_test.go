package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// What keeps a database from being opened has the exit code of its reason.
func TestOpenDatabase(t *testing.T) {
	for name, tt := range map[string]struct {
		change string // of the file
		want   int
		words  string
	}{
		"well":    {want: exitOK},
		"newer":   {"PRAGMA user_version = 999", exitConfig, "written by a newer claybot"},
		"damaged": {"", exitDamaged, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db, err := openDatabase(t.Context(), dir, sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "claybot.db")
			switch {
			case tt.want == exitDamaged:
				err = os.WriteFile(path, []byte("this is no SQLite"), 0o600)
			case tt.change != "":
				raw, oerr := sql.Open("sqlite", path+"?vfs="+sqlite.VFS)
				if oerr != nil {
					t.Fatal(oerr)
				}
				_, err = raw.ExecContext(t.Context(), tt.change)
				err = errors.Join(err, raw.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			db, err = openDatabase(t.Context(), dir, sqlite.Config{})
			if err == nil {
				err = db.Close()
			}
			if got := exitCode(err); got != tt.want || tt.words != "" && !strings.Contains(fmt.Sprint(err), tt.words) {
				t.Errorf("%v has the exit code %d, want %d and %q", err, got, tt.want, tt.words)
			}
		})
	}
}

// A directory that is held, a disk that is full, and what passes by itself are not a
// matter of the configuration.
func TestUnfit(t *testing.T) {
	at := func(no syscall.Errno) error {
		return fmt.Errorf("data directory: %w", &fs.PathError{Op: "open", Path: "claybot.lock", Err: no})
	}
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("it is a file"), exitConfig},
		{fmt.Errorf("%w: by process 1", storage.ErrLocked), exitLocked},
		{fmt.Errorf("make it: %w: %w", storage.ErrFull, syscall.ENOSPC), exitError},
		{at(syscall.EMFILE), exitError},
		{at(syscall.ENFILE), exitError},
		{at(syscall.EIO), exitError},
		{at(syscall.ESTALE), exitError},
		{at(syscall.ENOLCK), exitError},
		{at(syscall.EINTR), exitError},
		{at(syscall.EACCES), exitConfig},
		{at(syscall.EPERM), exitConfig},
		{at(syscall.EROFS), exitConfig},
		{at(syscall.ENOTDIR), exitConfig},
		{at(syscall.ELOOP), exitConfig},
		{at(syscall.EOPNOTSUPP), exitConfig}, // no locks there
	} {
		if got := exitCode(unfit(tt.err)); got != tt.want {
			t.Errorf("%v has the exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}

// A person who interrupts a wait was told of it, and scripts know it by the code of shells.
func TestInterrupted(t *testing.T) {
	err := fmt.Errorf("chat: %w", interruptedError{})
	if got := exitCode(err); got != 130 || !errors.Is(err, errSilent) {
		t.Errorf("%v has the exit code %d, want 130 and silence", err, got)
	}
}
