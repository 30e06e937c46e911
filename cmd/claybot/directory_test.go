package main

import (
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

// versionAt is where an SQLite file has the version of its schema.
const versionAt = 60

// What keeps a database from being opened has the exit code of its reason.
func TestOpenDatabase(t *testing.T) {
	for name, tt := range map[string]struct {
		at    int64
		write string
		want  int
		words string
	}{
		"well":    {want: exitOK},
		"newer":   {versionAt, "newr", exitConfig, "written by a newer claybot"},
		"damaged": {0, "this is no SQLite", exitDamaged, "damaged"},
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
			f, err := os.OpenFile(filepath.Join(dir, "claybot.db"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte(tt.write), tt.at); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
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

// Whoever interrupts a wait was told of it, and scripts know it by the code of shells.
func TestInterrupted(t *testing.T) {
	err := fmt.Errorf("chat: %w", interruptedError{})
	if got := exitCode(err); got != 130 || !errors.Is(err, errSilent) {
		t.Errorf("%v has the exit code %d, want 130 and silence", err, got)
	}
}
