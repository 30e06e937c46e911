package relational_test

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

var otherAgent = claybot.Agent{ID: "anotheragent000000000000", Descriptor: claybot.User("telegram", "C2", "U2")}

// beginBoth gives theAgent an unfinished run r1 of m1 and m2 with m3 waiting,
// and otherAgent an unfinished run r2.
func beginBoth(t *testing.T, wait storage.Wait) *store {
	t.Helper()
	db := openFresh(t)
	ctx := t.Context()
	if err := db.IndexAgents(ctx, otherAgent); err != nil {
		t.Fatal(err)
	}
	post(t, db, "m1")
	second := textMessage("m2")
	second.Context.ThreadID = "T2"
	for _, p := range []storage.Posting{{To: theAgent.ID, Message: second}, {To: otherAgent.ID, Message: textMessage("x1")}} {
		if _, err := db.Post(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	acquired, _, err := db.Acquire(ctx, "old", time.Hour, 10, 10)
	if err != nil || len(acquired) != 2 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	for _, h := range acquired {
		id := claybot.RunID("r1")
		if h.Lease.Agent == otherAgent.ID {
			id = "r2"
		}
		if _, err := db.Begin(ctx, h.Lease, id, idsOf(h.Waiting), storage.Beginning{}); err != nil {
			t.Fatal(err)
		}
		if err := db.Append(ctx, h.Lease, id, true, claybot.Event{Type: claybot.EventToolCalled}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: textMessage("m3"), Wait: wait}); err != nil {
		t.Fatal(err)
	}
	return db
}

func idsOf(ms []claybot.AgentMessage) (ids []claybot.MessageID) {
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	return ids
}

// acquireAfter damages the store with q, opens it anew and returns what a node
// then holds.
func acquireAfter(t *testing.T, db *store, q string) (*store, map[claybot.AgentID]storage.Acquired) {
	t.Helper()
	change(t, db, q)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, db.path)
	acquired, _, err := db.Acquire(t.Context(), "new", time.Hour, 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	of := make(map[claybot.AgentID]storage.Acquired)
	for _, h := range acquired {
		of[h.Lease.Agent] = h
	}
	if h := of[otherAgent.ID]; h.Run == nil || h.Run.ID != "r2" || len(h.Bound) != 1 {
		t.Fatalf("the other agent is affected: %+v", h)
	}
	return db, of
}

// runNext runs all that waits for a held agent as run r3.
func runNext(t *testing.T, db *store, h storage.Acquired) {
	t.Helper()
	ctx := t.Context()
	if h.Run != nil || !slices.Equal(idsOf(h.Waiting), []claybot.MessageID{"m3"}) {
		t.Fatalf("acquired %+v, want m3 waiting and no run", h)
	}
	if _, err := db.Begin(ctx, h.Lease, "r3", idsOf(h.Waiting), storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	end := storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}}
	if _, err := db.Finish(ctx, h.Lease, "r3", end); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedRun(t *testing.T) {
	for name, q := range map[string]string{
		"messages":   `UPDATE runs SET messages = '["x' WHERE id = 'r1'`,
		"outcome":    `UPDATE runs SET outcome = '{' WHERE id = 'r1'`,
		"draft":      `UPDATE runs SET draft = 'x' WHERE id = 'r1'`,
		"everything": `UPDATE runs SET messages = '{}', outcome = '', draft = '"', last_seq = 0 WHERE id = 'r1'`,
	} {
		t.Run(name, func(t *testing.T) {
			db, acquired := acquireAfter(t, beginBoth(t, storage.Wait{}), q)
			ctx := t.Context()
			run, err := db.Run(ctx, "r1")
			if err != nil || run.State != claybot.RunFailed || run.Error == nil || run.Error.Code != relational.CodeDamaged || run.Ended == 0 ||
				run.Draft != nil || !slices.Equal(run.Messages, []claybot.MessageID{"m1", "m2"}) {
				t.Errorf("run %+v, %v", run, err)
			}
			var types []claybot.EventType
			for e, err := range db.Events(ctx, "r1", 0) {
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, e.Type)
				if e.Seq != int64(len(types)) {
					t.Errorf("event %s has seq %d", e.Type, e.Seq)
				}
			}
			if want := []claybot.EventType{claybot.EventRunStarted, claybot.EventToolCalled, claybot.EventRunFailed}; !slices.Equal(types, want) || run.LastSeq != 3 {
				t.Errorf("events %v, last %d", types, run.LastSeq)
			}
			out, err := db.Unsent(ctx, theAgent.Descriptor.Route().Dest(), 0, 10)
			if err != nil || len(out) != 1 {
				t.Fatalf("unsent %+v, %v", out, err)
			}
			if o := out[0]; o.ID != "damaged/r1" || o.Kind != claybot.OutgoingNotice || o.Message != "m2" || o.Route.ThreadID != "T2" ||
				o.Text != "Something went wrong while I worked on this." {
				t.Errorf("notice %+v", o)
			}
			if r, err := db.Receipt(ctx, "m1"); err != nil || r.Run == nil || r.Run.State != claybot.RunFailed || len(r.Replies) != 1 {
				t.Errorf("receipt %+v, %v", r, err)
			}
			runNext(t, db, acquired[theAgent.ID])
			checkFigures(t, db)
		})
	}
}

// TestDamagedRunTellsWhomItCan spoils what the notice is made from as well.
func TestDamagedRunTellsWhomItCan(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil   string
		message claybot.MessageID // that the notice answers; empty: there is none
	}{
		"the newest message": {"UPDATE messages SET crc = crc + 1 WHERE id = 'm2'", "m1"},
		"all messages":       {"UPDATE messages SET crc = crc + 1 WHERE run = 'r1'", ""},
		"the descriptor":     {"UPDATE agents SET descriptor = '{' WHERE id = '" + string(theAgent.ID) + "'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := beginBoth(t, storage.Wait{})
			change(t, db, tt.spoil)
			db, acquired := acquireAfter(t, db, `UPDATE runs SET messages = '' WHERE id = 'r1'`)
			out, err := db.Unsent(t.Context(), theAgent.Descriptor.Route().Dest(), 0, 10)
			if err != nil || (tt.message == "") != (len(out) == 0) || len(out) > 0 && out[0].Message != tt.message {
				t.Errorf("unsent %+v, %v, want one for %q", out, err, tt.message)
			}
			runNext(t, db, acquired[theAgent.ID])
			checkFigures(t, db)
		})
	}
}

func TestDanglingRun(t *testing.T) {
	for name, q := range map[string]string{
		"no such run":         `DELETE FROM runs WHERE id = 'r1'; UPDATE counters SET n = n - 1 WHERE name = 'run:RUNNING'`,
		"another agent's run": `DELETE FROM runs WHERE id = 'r1'; UPDATE counters SET n = n - 1 WHERE name = 'run:RUNNING'; UPDATE agents SET run = 'r2'`,
		"an ended run": `UPDATE runs SET state = 'CANCELED', ended = 1 WHERE id = 'r1'; UPDATE counters SET n = n - 1 WHERE name = 'run:RUNNING';
			INSERT INTO counters VALUES ('run:CANCELED', 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			db, acquired := acquireAfter(t, beginBoth(t, storage.Wait{}), q)
			runNext(t, db, acquired[theAgent.ID])
			checkFigures(t, db)
		})
	}
}

// TestDamagedRunKeepsTheWait: what waits for company goes on waiting when the
// run that made its agent due is gone.
func TestDamagedRunKeepsTheWait(t *testing.T) {
	long := storage.Wait{Quiet: time.Hour, Max: time.Hour}
	db, acquired := acquireAfter(t, beginBoth(t, long), `UPDATE runs SET messages = '' WHERE id = 'r1'`)
	if h, ok := acquired[theAgent.ID]; ok {
		t.Errorf("acquired %+v before its time", h)
	}
	again, next, err := db.Acquire(t.Context(), "new", time.Minute, 10, 10)
	if err != nil || len(again) != 0 || time.Until(next) < 50*time.Minute || time.Until(next) > time.Hour {
		t.Errorf("acquired %+v, next %v, %v", again, next, err)
	}
	checkFigures(t, db)
}
