package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/claybot/claybot/storage"
)

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Looking reads what is there, also beside a daemon, and leaves nothing behind.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "claybot.db")
	if _, err := Look(t.Context(), path, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	db, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	look := func(what string, idle bool) {
		t.Helper()
		s, err := Look(t.Context(), path, idle)
		if err != nil || s.Version != len(migrations) || s.Known != s.Version || s.Size == 0 || !s.Whole {
			t.Errorf("%s: %+v %v", what, s, err)
		}
		version, known, err := SchemaVersion(t.Context(), path, idle)
		if err != nil || version != len(migrations) || known != version {
			t.Errorf("%s: version %d of %d %v", what, version, known, err)
		}
	}
	look("in use", false)
	if err := db.SetCheckpoint(t.Context(), "a", "b"); err != nil {
		t.Errorf("writing after the look: %v", err)
	}
	look("written to", false)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := names(t, dir)
	look("closed", true)
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("looking made files: %v, then %v", before, after)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Look(ended, path, true); s.Whole {
		t.Errorf("without time: %+v %v", s, err)
	}
}

func TestLookAtDamage(t *testing.T) {
	fresh := func(t *testing.T, change func(c *conn) error) string {
		path := filepath.Join(t.TempDir(), "claybot.db")
		db, err := Open(t.Context(), path, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if change == nil {
			return path
		}
		c, err := connect(t.Context(), path, writerPragmas)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(c), c.close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newer := fresh(t, func(c *conn) error { return c.control("PRAGMA user_version = 999") })
	if s, err := Look(t.Context(), newer, true); !errors.Is(err, errNewer) || s.Version != 999 || s.Known != len(migrations) {
		t.Errorf("newer: %+v %v", s, err)
	}
	none := filepath.Join(t.TempDir(), "claybot.db")
	if err := os.WriteFile(none, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(t.Context(), none, true); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("no database: %v", err)
	}
	// Pages in the middle are overwritten.
	broken := fresh(t, nil)
	f, err := os.OpenFile(broken, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := slices.Repeat([]byte{0xA5}, 4096)
	for page := int64(2); page < 12; page++ {
		if _, err := f.WriteAt(junk, page*4096); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(t.Context(), broken, true); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("broken: %v", err)
	}
}
