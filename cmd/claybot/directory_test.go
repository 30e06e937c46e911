package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
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

// A directory that a newer claybot has upgraded is refused by all that would open it, with what to do, and none of it
// changes: neither the database nor the file of an agent with a key that only that claybot knows.
func TestNewerDirectoryIsLeftAlone(t *testing.T) {
	b := newSetupBench(t, brokenSetup{})
	e := b.at(io.Discard, io.Discard)
	e.cli = new(cli)
	e.Config = b.path
	c, _, err := e.load()
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDaemon(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.stores.agents.NewAgent(t.Context(), claybot.User("telegram", "1", "1"), claybot.Background{})
	d.close()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", filepath.Join(b.data, "claybot.db")+"?vfs="+sqlite.VFS)
	if err == nil {
		_, err = raw.ExecContext(t.Context(), "PRAGMA user_version = 999")
		err = errors.Join(err, raw.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, filepath.Join("data", "agents", string(a.ID), "state.json"), `{"of a later version": true}`)
	before := treeOf(t, b.dir)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"serve"}, "written by a newer claybot: its schema is version 999 and this claybot knows "},
		{[]string{"serve"}, "start that version or a later one"},
		{[]string{"migrate", "--check"}, "999"},
		{[]string{"export", filepath.Join(b.dir, "out")}, "start that version or a later one"},
		{[]string{"doctor"}, "its schema is version 999"},
	} {
		out, errs := b.command(tt.args...)
		if !strings.Contains(out+errs, tt.says) {
			t.Errorf("%q says %q and %q, want %q", tt.args, out, errs, tt.says)
		}
		if after := treeOf(t, b.dir); !slices.Equal(before, after) {
			t.Errorf("%q changed %q to %q", tt.args, before, after)
		}
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
