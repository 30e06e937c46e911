package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func TestPrune(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	count := func(q string) (n int64) {
		t.Helper()
		err := db.read(ctx, func(c *conn) error {
			_, err := c.first(q, func(r row) error { n = r.int(0); return nil })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 2*pruneChunk + 1 { // more than two transactions
		change(t, db, "INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES (?, 'a', 'SUCCEEDED', 1, 1, 2)", fmt.Sprint("old", i))
		if i%100 == 0 {
			change(t, db, "INSERT INTO events VALUES (?, 1, 1, 'RunFinished', 2, NULL)", fmt.Sprint("old", i))
		}
	}
	post(t, db, "m1")
	held, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(ctx, held[0].Lease, "open", []claybot.MessageID{"m1"}); err != nil {
		t.Fatal(err)
	}
	change(t, db, "INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES ('new', 'a', 'FAILED', 1, 1, ?)", now())
	change(t, db, "INSERT INTO events VALUES ('new', 1, 1, 'RunFailed', 2, NULL)")

	if err := db.Prune(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	if n := count("SELECT count(*) FROM events WHERE run LIKE 'old%'"); n != 0 {
		t.Errorf("%d old events stay", n)
	}
	if n := count("SELECT count(*) FROM events WHERE run IN ('new', 'open')"); n != 2 {
		t.Errorf("%d of 2 events stay", n)
	}
	if _, err := db.Run(ctx, "old0"); err != nil {
		t.Errorf("the run itself: %v", err)
	}
	if n := count("SELECT count(*) FROM runs WHERE pruned = 1"); n != 2*pruneChunk+1 {
		t.Errorf("%d runs pruned", n)
	}
}

func TestPruneKeys(t *testing.T) {
	db := openFresh(t)
	for i := range 10 {
		m := textMessage(claybot.MessageID(fmt.Sprint("m", i)))
		m.Keys = []string{fmt.Sprint("k", i)}
		if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	change(t, db, "UPDATE keys SET at = 1 WHERE n <= 6")
	for _, step := range []struct {
		keep, removed int
	}{{10, 0}, {7, 3}, {1, 3}, {0, 0}} { // the last four are young
		n, err := write(t.Context(), db, func(c *conn) (int, error) { return c.pruneKeys(2, step.keep) })
		if err != nil || n != step.removed {
			t.Errorf("keep %d: removed %d, %v, want %d", step.keep, n, err, step.removed)
		}
	}
	// The row keeps its keys for good: no sign of a reused id.
	m := textMessage("m1")
	m.Keys = []string{"k1"}
	if p, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: m}); err != nil || p.Added {
		t.Errorf("posted %+v, %v", p, err)
	}
}
