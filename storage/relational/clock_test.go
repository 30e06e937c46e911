package relational_test

import (
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// setBack makes all times of arrival what they are once the clock is set back by an
// hour.
func setBack(t *testing.T, db *store) {
	t.Helper()
	change(t, db, `UPDATE agents SET first_at = first_at + 3600000, last_at = last_at + 3600000, due_at = due_at + 3600000,
		hold_at = CASE WHEN hold_at > 0 THEN hold_at + 3600000 ELSE 0 END,
		wake_at = CASE WHEN node IS NULL THEN wake_at + 3600000 ELSE wake_at END`)
	change(t, db, "UPDATE messages SET at = at + 3600000 WHERE run IS NULL AND skipped IS NULL")
}

// TestClockSetBack: a message that was accepted before the clock was set back waits no
// longer than it was meant to.
func TestClockSetBack(t *testing.T) {
	const ttl = time.Minute
	debounced := storage.Wait{Quiet: 2 * time.Second, Max: 10 * time.Second}
	album := textMessage("m2")
	album.Context.GroupID = "album"
	hold := func(t *testing.T, db *store) storage.Lease {
		t.Helper()
		acquired, _, err := db.Acquire(t.Context(), "n", ttl, 10, 10)
		if err != nil || len(acquired) != 1 {
			t.Fatalf("got %d agents, %v, want 1", len(acquired), err)
		}
		return acquired[0].Lease
	}
	deliver := func(t *testing.T, db *store, m claybot.AgentMessage, w storage.Wait) {
		t.Helper()
		if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: m, Wait: w}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		late time.Duration // the agent is due after it at the latest
		do   func(t *testing.T, db *store)
	}{
		{"while a run works", 0, func(t *testing.T, db *store) {
			finishAfter(t, db, hold(t, db), textMessage("m2"), storage.Wait{})
		}},
		{"while a run works, debounced", debounced.Quiet, func(t *testing.T, db *store) {
			finishAfter(t, db, hold(t, db), textMessage("m2"), debounced)
		}},
		{"while a run works, an album", 750 * time.Millisecond, func(t *testing.T, db *store) {
			finishAfter(t, db, hold(t, db), album, storage.Wait{})
		}},
		{"before a release", 0, func(t *testing.T, db *store) {
			l := hold(t, db)
			setBack(t, db)
			if err := db.Release(t.Context(), l, storage.Wait{}, true); err != nil {
				t.Fatal(err)
			}
		}},
		{"before a settlement", 0, func(t *testing.T, db *store) {
			l := hold(t, db)
			deliver(t, db, textMessage("m2"), storage.Wait{})
			setBack(t, db)
			if _, err := db.Settle(t.Context(), l, "m1", storage.Settlement{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"before the next message", 0, func(t *testing.T, db *store) {
			setBack(t, db)
			deliver(t, db, textMessage("m2"), storage.Wait{})
		}},
		{"while the agent is idle", 0, func(t *testing.T, db *store) {
			deliver(t, db, textMessage("m2"), debounced)
			if _, _, err := db.Acquire(t.Context(), "other", ttl, 0, 10); err != nil {
				t.Fatal(err)
			}
			setBack(t, db)
			db.SetBack(time.Hour)
		}},
		{"while the process was down", 0, func(t *testing.T, db *store) { setBack(t, db) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := openFresh(t)
			post(t, db, "m1")
			test.do(t, db)
			_, next, err := db.Acquire(t.Context(), "n", ttl, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			if wait := time.Until(next); next.IsZero() || wait > test.late {
				t.Errorf("the agent is due in %v, want %v at the latest", wait, test.late)
			}
		})
	}
}

// finishAfter ends a run of l during which m arrived and the clock was set back.
func finishAfter(t *testing.T, db *store, l storage.Lease, m claybot.AgentMessage, w storage.Wait) {
	t.Helper()
	if _, err := db.Begin(t.Context(), l, "r1", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: m, Wait: w}); err != nil {
		t.Fatal(err)
	}
	setBack(t, db)
	end := storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}, Wait: w}
	if _, err := db.Finish(t.Context(), l, "r1", end); err != nil {
		t.Fatal(err)
	}
}
