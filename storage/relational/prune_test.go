package relational_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestPrune(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	for i := range 2*relational.PruneChunk + 1 { // more than two transactions
		change(t, db, "INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES (?, 'a', 'SUCCEEDED', 1, 1, ?)",
			fmt.Sprint("old", i), time.Now().Add(-8*24*time.Hour).UnixMilli())
		if i%100 == 0 {
			change(t, db, "INSERT INTO events VALUES (?, 1, 1, 'RunFinished', 2, NULL)", fmt.Sprint("old", i))
		}
	}
	post(t, db, "m1")
	acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "open", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	change(t, db, "INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES ('new', 'a', 'FAILED', 1, 1, ?)", claybot.Now())
	change(t, db, "INSERT INTO events VALUES ('new', 1, 1, 'RunFailed', 2, NULL)")

	if err := db.Prune(ctx, time.Now(), storagetest.Retention); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count(*) FROM events WHERE run LIKE 'old%'"); n != 0 {
		t.Errorf("%d old events stay", n)
	}
	if n := count(t, db, "SELECT count(*) FROM events WHERE run IN ('new', 'open')"); n != 2 {
		t.Errorf("%d of 2 events stay", n)
	}
	if _, err := db.Run(ctx, "old0"); err != nil {
		t.Errorf("the run itself: %v", err)
	}
	if n := count(t, db, "SELECT count(*) FROM runs WHERE pruned = 1"); n != 2*relational.PruneChunk+1 {
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
		var n int
		do(t, db, func(c *relational.Conn) (err error) { n, err = c.PruneKeys(2, step.keep); return err })
		if n != step.removed {
			t.Errorf("keep %d: removed %d, want %d", step.keep, n, step.removed)
		}
	}
	// The row keeps its keys for good: no sign of a reused id.
	m := textMessage("m1")
	m.Keys = []string{"k1"}
	if p, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: m}); err != nil || p.Added {
		t.Errorf("posted %+v, %v", p, err)
	}
}

// A row from the future, which a wrong clock wrote, stays, and what is old behind it goes.
func TestPruneBehindTheFuture(t *testing.T) {
	db := openFresh(t)
	for i := range 4 {
		if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: textMessage(claybot.MessageID(fmt.Sprint("m", i))), Skip: "empty"}); err != nil {
			t.Fatal(err)
		}
	}
	change(t, db, "UPDATE messages SET at = 1 WHERE id IN ('m0', 'm2')")
	change(t, db, "UPDATE messages SET at = ? WHERE id = 'm1'", time.Now().Add(1000*24*time.Hour).UnixMilli())
	if err := db.Prune(t.Context(), time.Now(), storagetest.Retention); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[claybot.MessageID]bool{"m0": false, "m1": true, "m2": false, "m3": true} {
		if _, err := db.Receipt(t.Context(), id); (err == nil) != want {
			t.Errorf("%s: %v, want it kept: %v", id, err, want)
		}
	}
}

// TestPruneLongAfter: after 90 days a run is gone; its message and the ledger
// tell what became of them all the same.
func TestPruneLongAfter(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	fire := func(task, instant string) claybot.MessageID {
		t.Helper()
		f := &claybot.Firing{Task: task, Instant: instant}
		m := textMessage(f.MessageID())
		m.Type, m.Firing = claybot.MessageSystem, f
		if _, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: m}); err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	run := func(id claybot.RunID, messages ...claybot.MessageID) {
		t.Helper()
		acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
		if err != nil || len(acquired) != 1 {
			t.Fatalf("acquired %+v, %v", acquired, err)
		}
		if _, err := db.Begin(ctx, acquired[0].Lease, id, messages, storage.Beginning{}); err != nil {
			t.Fatal(err)
		}
		end := storage.Outcome{
			State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}, Usage: claybot.Usage{CostMicroUSD: 5},
		}
		if _, err := db.Finish(ctx, acquired[0].Lease, id, end); err != nil {
			t.Fatal(err)
		}
	}
	run("r1", fire("daily", "1"), fire("yearly", "1"), fire("yearly", "manual/1"), fire("done", "manual/2"))
	run("r2", fire("daily", "2"))
	change(t, db, "UPDATE runs SET ended = 1 WHERE id = 'r1'")
	change(t, db, "UPDATE ledger SET entered = 1 WHERE message IN ('cron/daily/1', 'cron/yearly/1', 'cron/yearly/manual/1', 'cron/done/manual/2')")
	for range 2 {
		if err := db.Prune(ctx, time.Now(), storagetest.Retention); err != nil {
			t.Fatal(err)
		}
	}
	checkFigures(t, db)
	if _, err := db.Run(ctx, "r1"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the old run: %v", err)
	}
	if _, err := db.Run(ctx, "r2"); err != nil {
		t.Errorf("the new run: %v", err)
	}
	if f, err := db.Stats(ctx); err != nil || f.Runs[claybot.RunSucceeded] != 1 {
		t.Errorf("figures %+v, %v", f, err)
	}
	if r, err := db.Receipt(ctx, "cron/daily/1"); err != nil || r.Run == nil || r.Run.ID != "r1" || r.Run.Agent != theAgent.ID {
		t.Errorf("receipt %+v, %v", r, err)
	}
	for task, want := range map[string][]string{"daily": {"2"}, "yearly": {"1"}, "done": nil} {
		rows, err := db.Firings(ctx, task, 10)
		var got []string
		for _, r := range rows {
			got = append(got, r.Instant)
			if r.State != "SUCCEEDED" || r.Cost != 5 || r.Ended == 0 || r.Started == 0 || r.Run == "" {
				t.Errorf("row %+v", r)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("task %s: rows %v, %v, want %v", task, got, err, want)
		}
	}
}

// Marks of repeats are removed after a day, also one that says that there is none;
// all other marks stay.
func TestPruneRepeats(t *testing.T) {
	db := openFresh(t)
	for key, value := range map[string]string{
		storage.CheckpointRepeats + "old": "1700000000000 ", storage.CheckpointRepeats + "none": " ", storage.CheckpointRepeats + "new": "1700000000001 1600000000000",
		"repeat": "1600000000000", "telegram/poll": "1600000000000",
	} {
		if err := db.SetCheckpoint(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 0} {
		var n int
		do(t, db, func(c *relational.Conn) (err error) { n, err = c.PruneRepeats(1700000000001); return err })
		if n != want {
			t.Errorf("removed %d, want %d", n, want)
		}
	}
	if n := count(t, db, "SELECT count(*) FROM marks WHERE key IN ('repeats/new', 'repeat', 'telegram/poll')"); n != 3 {
		t.Errorf("%d of 3 marks stay", n)
	}
}
