package sqlite

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func openFresh(t *testing.T) *DB {
	t.Helper()
	db := openAt(t, filepath.Join(t.TempDir(), "claybot.db"))
	if err := db.IndexAgents(t.Context(), theAgent); err != nil {
		t.Fatal(err)
	}
	return db
}

func post(t *testing.T, db *DB, id claybot.MessageID) {
	t.Helper()
	if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: textMessage(id)}); err != nil {
		t.Fatal(err)
	}
}

// change runs a statement behind the store's back.
func change(t *testing.T, db *DB, q string, args ...any) {
	t.Helper()
	err := db.change(t.Context(), func(c *conn) error { _, err := c.exec(q, args...); return err })
	if err != nil {
		t.Fatal(err)
	}
}

func TestFileModes(t *testing.T) {
	db := openFresh(t)
	check := func() {
		for _, ext := range []string{"", "-wal", "-shm"} {
			st, err := os.Stat(db.path + ext)
			if err != nil {
				t.Fatal(err)
			}
			if st.Mode() != 0o600 {
				t.Errorf("claybot.db%s has mode %v", ext, st.Mode())
			}
		}
	}
	check()
	path := filepath.Join(t.TempDir(), "open.db")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, path)
	check()
}

func TestOddPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c=1&%41#ä")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	openAt(t, filepath.Join(dir, "claybot.db"))
	if st, err := os.Stat(filepath.Join(dir, "claybot.db")); err != nil || st.Size() == 0 {
		t.Fatal("the database is somewhere else", err)
	}
}

func TestDamagedFile(t *testing.T) {
	healthy := openFresh(t)
	if err := healthy.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(healthy.path)
	if err != nil {
		t.Fatal(err)
	}
	noise := bytes.Repeat([]byte("not a database. "), 600)
	schema := bytes.Clone(good)
	copy(schema[100:4096], noise)
	for name, f := range map[string]struct{ db, wal []byte }{
		"noise":                {db: noise},
		"one byte":             {db: []byte("S")},
		"half a header":        {db: good[:60]},
		"broken schema":        {db: schema},
		"lost but for its log": {wal: noise},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "claybot.db")
			for ext, b := range map[string][]byte{"": f.db, "-wal": f.wal} {
				if b != nil || ext == "" {
					if err := os.WriteFile(path+ext, b, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			db, err := Open(t.Context(), path, Config{})
			if !errors.Is(err, storage.ErrDamaged) {
				t.Fatalf("got %v, %v, want %v", db, err, storage.ErrDamaged)
			}
			for ext, b := range map[string][]byte{"": f.db, "-wal": f.wal} {
				if after, err := os.ReadFile(path + ext); b != nil && (err != nil || !bytes.Equal(after, b)) {
					t.Errorf("claybot.db%s was changed (%v)", ext, err)
				}
			}
		})
	}
}

func TestMissingDirectory(t *testing.T) {
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing", "claybot.db"), Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

//go:embed testdata/v1.sql
var frozenV1 string

// TestUpgradeV1 opens a file that the first version wrote. The frozen text is
// never edited.
func TestUpgradeV1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	c, err := connect(t.Context(), path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	rows := `PRAGMA user_version = 1;
		INSERT INTO agents (id, key, descriptor, n, waiting, first_n, first_at, last_at, due_at, wake_at, node, token, run) VALUES
			('atestagent00000000000000', '["user","telegram","C1","U1"]', '{"type":"user","connector":"telegram","channelId":"C1","userId":"U1"}',
			 2, 1, 2, 50, 50, 50, 99, 'old', 7, 'r1');
		INSERT INTO runs (id, agent, state, last_seq, attempts, messages, started) VALUES ('r1', 'atestagent00000000000000', 'RUNNING', 1, 1, '["m1"]', 40);
		INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES ('r0', 'atestagent00000000000000', 'SUCCEEDED', 1, 20, 30);
		INSERT INTO events VALUES ('r1', 1, 1, 'RunStarted', 40, NULL);`
	for _, script := range []string{frozenV1, rows} {
		if err := c.control(script); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range []claybot.AgentMessage{textMessage("m1"), textMessage("m2")} {
		body, crc := stored(t, m)
		run := []any{"r1", nil}[i]
		if _, err := c.exec("INSERT INTO messages VALUES (?, ?, ?, 'user', 50, NULL, ?, NULL, ?, ?)", m.ID, theAgent.ID, i+1, run, body, crc); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to upgrade
		db := openAt(t, path)
		f, err := db.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Agents != 1 || f.Waiting != 1 || f.Runs[claybot.RunRunning] != 1 || f.Runs[claybot.RunSucceeded] != 1 {
			t.Errorf("figures %+v", f)
		}
		acquired, _, err := db.Acquire(t.Context(), "new", time.Second, 1, 10)
		if err != nil || len(acquired) != 1 || acquired[0].Lease.Token <= 7 || acquired[0].Run.ID != "r1" || len(acquired[0].Bound) != 1 || len(acquired[0].Waiting) != 1 {
			t.Fatalf("acquired %+v, %v", acquired, err)
		}
		checkFigures(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewerSchema(t *testing.T) {
	db := openFresh(t)
	change(t, db, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), db.path, Config{})
	if !errors.Is(err, errNewer) || !strings.Contains(err.Error(), "start that version or a later one") {
		t.Fatalf("got %v", err)
	}
}

// TestFull runs out of space: nothing is confirmed, what was stored stays, and
// the store goes on when there is space again.
func TestFull(t *testing.T) {
	for name, limit := range map[string][2]string{
		"full":      {"PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000"},
		"read-only": {"PRAGMA query_only = 1", "PRAGMA query_only = 0"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openFresh(t)
			post(t, db, "before")
			// Not in a transaction: the writer is idle.
			if err := db.writer.control(limit[0]); err != nil {
				t.Fatal(err)
			}
			m := textMessage("refused")
			m.Text = strings.Repeat("x", 100_000)
			p := storage.Posting{To: theAgent.ID, Message: m}
			for range 3 {
				if posted, err := db.Post(t.Context(), p); !errors.Is(err, storage.ErrFull) || posted.Added {
					t.Fatalf("posted %+v, error %v, want %v", posted, err, storage.ErrFull)
				}
			}
			if err := db.writer.control(limit[1]); err != nil {
				t.Fatal(err)
			}
			if got := waitingIDs(t, db); len(got) != 1 {
				t.Fatalf("waiting after the refusal: %v", got)
			}
			if posted, err := db.Post(t.Context(), p); err != nil || !posted.Added {
				t.Fatalf("with space again: %+v, %v", posted, err)
			}
			checkFigures(t, db)
		})
	}
}

// TestBusy: another connection holds the file for longer than the store waits.
func TestBusy(t *testing.T) {
	db := openFresh(t)
	post(t, db, "before")
	other, err := connect(t.Context(), db.path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }() // the test is over
	// Not in a transaction: the writer is idle.
	if err := db.writer.control("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	if err := other.control("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	p := storage.Posting{To: theAgent.ID, Message: textMessage("refused")}
	if _, err := db.Post(t.Context(), p); !errors.Is(err, storage.ErrBusy) {
		t.Fatalf("got %v, want %v", err, storage.ErrBusy)
	}
	if err := other.control("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if posted, err := db.Post(t.Context(), p); err != nil || !posted.Added {
		t.Fatalf("when it is free again: %+v, %v", posted, err)
	}
}

// TestBatch puts calls that fail, panic and refuse into one transaction with
// good ones: only they fail.
func TestBatch(t *testing.T) { synctest.Test(t, testBatch) }

func testBatch(t *testing.T) {
	db := openFresh(t)
	bad := errors.New("bad")
	index := func(ctx context.Context, name string, end func(c *conn) error) error {
		a := claybot.Agent{ID: claybot.AgentID(name), Descriptor: claybot.User("telegram", name, "U1")}
		return db.ending(end).IndexAgents(ctx, a)
	}
	well := func(*conn) error { return nil }
	calls := map[string]func(ctx context.Context, name string) error{
		"good 1": func(ctx context.Context, name string) error { return index(ctx, name, well) },
		"good 2": func(ctx context.Context, name string) error { return index(ctx, name, well) },
		"refused": func(ctx context.Context, _ string) error {
			return db.change(ctx, func(*conn) error { return bad })
		},
		"damaged": func(ctx context.Context, _ string) error {
			return db.change(ctx, func(*conn) error { return storage.ErrDamaged })
		},
		"wrote and failed": func(ctx context.Context, name string) error {
			return index(ctx, name, func(*conn) error { return bad })
		},
		"panic": func(ctx context.Context, name string) error {
			return index(ctx, name, func(*conn) error { panic("oh") })
		},
		"panic without a visible write": func(ctx context.Context, _ string) error {
			return db.change(ctx, func(c *conn) error {
				_, _ = c.Exec("INSERT INTO agents (id, key, descriptor) VALUES ('unseen', 'unseen', '')", nil)
				panic("oh")
			})
		},
		"conflict": func(ctx context.Context, name string) error {
			return index(ctx, name, func(c *conn) error {
				_, err := c.exec("INSERT INTO agents (id, key, descriptor) VALUES (?, ?, '')", name, name)
				return err
			})
		},
	}
	var group sync.WaitGroup
	gate := make(chan struct{})
	group.Go(func() { // keeps the writer busy until all others queue
		_ = db.change(t.Context(), func(*conn) error { <-gate; return nil })
	})
	for name, do := range calls {
		group.Go(func() {
			if err := do(t.Context(), name); (err == nil) != strings.HasPrefix(name, "good") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Wait() // all of them queue
	ctx, cancel := context.WithCancel(t.Context())
	group.Go(func() {
		if err := index(ctx, "withdrawn", well); !errors.Is(err, context.Canceled) {
			t.Errorf("withdrawn: %v", err)
		}
	})
	synctest.Wait()
	cancel()
	synctest.Wait()
	close(gate)
	group.Wait()
	var got []string
	err := db.read(t.Context(), func(c *conn) error {
		return c.each("SELECT id FROM agents ORDER BY id", func(r row) error { got = append(got, r.Str(0)); return nil })
	})
	if want := []string{string(theAgent.ID), "good 1", "good 2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("stored %q, %v, want %q", got, err, want)
	}
	checkFigures(t, db) // the tally is that of the good calls
}
