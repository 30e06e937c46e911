package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A file of an older version gets checksums once, with all its rows, whatever a start
// that was cut short has left beside it.
func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	c, err := connect(t.Context(), path, writerPragmas) // as an older version made it
	if err == nil {
		err = errors.Join(c.control(frozenV1), c.control("PRAGMA user_version = 1"),
			c.control(`INSERT INTO marks VALUES ('a', 'b')`), c.close(), os.WriteFile(path+".new", []byte("cut short"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	if with, err := summed(path); with || err != nil {
		t.Fatalf("the old file has checksums: %v", err)
	}
	for range 2 {
		db := openAt(t, path)
		if value, err := db.Checkpoint(t.Context(), "a"); value != "b" || err != nil {
			t.Errorf("the row is %q, %v", value, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if read, suspects, err := scan(t.Context(), path, 0); err != nil || read == 0 || len(suspects) > 0 {
		t.Errorf("%d bytes read, pages without a checksum: %v, %v", read, suspects, err)
	}
	if left := names(t, filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
}

// Every page that SQLite has ever counted was written and has a checksum, also those that
// were freed: one without is damage.
func TestEveryPageHasAChecksum(t *testing.T) {
	db := openFresh(t)
	long := strings.Repeat("x", 9000)
	for i := range 60 {
		change(t, db, "INSERT INTO documents (scope, path, text, size, at) VALUES ('s', ?, ?, 9000, 1)", fmt.Sprint(i), long)
		if i%3 == 0 { // in one transaction, so that pages are freed that were never in the file
			err := db.change(t.Context(), func(c *conn) error {
				_, err := c.exec("INSERT INTO documents (scope, path, text, size, at) VALUES ('t', 'a', ?, 1, 1), ('t', 'b', ?, 1, 1)", long, long)
				if err == nil {
					_, err = c.exec("DELETE FROM documents WHERE scope = 't' OR path = ?", fmt.Sprint(i))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if i%7 == 0 {
			if err := checkpoint(t, db); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.Check(t.Context(), 0); err != nil {
		t.Errorf("in use: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, suspects, err := scan(t.Context(), db.path, 0); err != nil || len(suspects) > 0 {
		t.Errorf("pages without a checksum: %v %v", suspects, err)
	}
}

// A backup made while others write is of one moment, and whole.
func TestBackupWhileOthersWrite(t *testing.T) {
	db := openFresh(t)
	if err := db.IndexAgents(t.Context(), theAgent); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			id := claybot.MessageID(fmt.Sprint("w", i))
			_, _ = db.Post(ctx, storage.Posting{To: theAgent.ID, Message: textMessage(id)}) // it may be withdrawn at the end
		}
	}()
	for i := range 5 {
		to := filepath.Join(t.TempDir(), "copy.db")
		if err := db.Backup(t.Context(), to, 0); err != nil {
			t.Fatalf("copy %d: %v", i, err)
		}
		if err := Verify(t.Context(), to); err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
		copied := openAt(t, to)
		e, err := copied.IndexedAgentByID(t.Context(), theAgent.ID)
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := copied.Waiting(t.Context(), theAgent.ID, 1_000_000)
		if err != nil || len(waiting) != e.Waiting {
			t.Errorf("copy %d has %d messages and counts %d: %v", i, len(waiting), e.Waiting, err)
		}
	}
	stop()
	<-done
	// A copy that cannot be made leaves nothing behind.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := db.Backup(ended, filepath.Join(dir, "copy.db"), 1); err == nil || len(names(t, dir)) > 0 {
		t.Errorf("without time: %v, left %v", err, names(t, dir))
	}
}

// One flipped bit in a text is damage, though SQLite takes the page for healthy, and stays damage.
func TestFlippedBitIsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	change(t, db, "INSERT INTO documents (scope, path, text, size, at) VALUES ('s', 'a', ?, 9000, 1)", strings.Repeat("x", 9000))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndex(b, []byte(strings.Repeat("x", 500)))+100] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(t.Context(), path, Config{}); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("opened with %v, want that it is damaged", err)
		}
	}
}
