package sqlite

import (
	_ "embed"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

//go:embed testdata/v4.sql
var frozenV4 string

// writeV4 makes a file from before runs could be watched: a1 waits, a2 is
// paused, a3 is idle.
func writeV4(t *testing.T, path string) {
	t.Helper()
	c, err := connect(t.Context(), path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	rows := `PRAGMA user_version = 4;
		INSERT INTO agents (id, key, descriptor, type, owner, created_at, last_user_at, last_user_n, n, waiting, first_n, first_at, last_at, due_at, wake_at, run, resume_at) VALUES
			('a1', '["user","tg","1","U1"]', '{"type":"user","connector":"tg","channelId":"1","userId":"U1"}', 'user', 'tg/U1', 1, 50, 2, 1, 1, 1, 50, 50, 50, 50, NULL, NULL),
			('a2', '["user","tg","2","U1"]', '{"type":"user","connector":"tg","channelId":"2","userId":"U1"}', 'user', 'tg/U1', 2, 40, 1, 1, 0, 0, 0, 0, NULL, 9000000000000, 'r2', 9000000000000),
			('a3', '["user","tg","3","U2"]', '{"type":"user","connector":"tg","channelId":"3","userId":"U2"}', 'user', 'tg/U2', 3, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL);
		INSERT INTO runs (id, agent, state, last_seq, messages, started, ended, awaiting) VALUES
			('r1', 'a1', 'SUCCEEDED', 1, '[]', 20, 30, NULL),
			('r2', 'a2', 'AWAITING', 1, '["m0"]', 40, 0, '{"answers":["answer/x"],"until":9000000000000}');
		INSERT INTO events VALUES ('r1', 1, 1, 'RunFinished', 30, NULL), ('r2', 1, 1, 'RunStarted', 40, NULL);
		INSERT INTO messages (id, agent, n, type, at, run, body, crc) VALUES ('m0', 'a2', 1, 'user', 40, 'r2', '{', 0);
		INSERT INTO counters VALUES ('run:SUCCEEDED', 1), ('run:AWAITING', 1), ('send:failed', 1);
		UPDATE counters SET n = CASE name WHEN 'agents' THEN 3 ELSE 1 END WHERE name IN ('agents', 'waiting')`
	for _, script := range []string{frozenV4, rows} {
		if err := c.control(script); err != nil {
			t.Fatal(err)
		}
	}
	m := textMessage("m1")
	m.Keys = []string{"tg/1/501", "second"}
	body, crc := stored(t, m)
	o := claybot.Outgoing{ID: "o1", Message: "m1", Text: "late", Route: claybot.Route{Connector: "tg", ChannelID: "1"}}
	obody, ocrc := stored(t, o)
	for _, s := range []struct {
		q    string
		args []any
	}{
		{"INSERT INTO messages (id, agent, n, type, at, body, crc) VALUES ('m1', 'a1', 1, 'user', 50, ?, ?)", []any{body, crc}},
		{"INSERT INTO keys (key, at) VALUES ('tg/1/501', 50), ('second', 50), ('of none', 50)", nil},
		{"INSERT INTO outbox (id, dest, origin, state, open, at, body, crc) VALUES ('o1', ?, 'm1', 'failed', 0, 60, ?, ?)", []any{o.Route.Dest(), obody, ocrc}},
	} {
		if _, err := c.exec(s.q, s.args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeV4 opens a file from before runs could be watched. The frozen text
// is never edited.
func TestUpgradeV4(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	writeV4(t, path)
	ctx := t.Context()
	for range 2 { // the second time there is nothing to upgrade
		db := openAt(t, path)
		checkFigures(t, db)
		var ids []claybot.AgentID
		list, err := db.AgentPage(ctx, storage.AgentQuery{})
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		if err != nil || !slices.Equal(ids, []claybot.AgentID{"a1", "a2", "a3"}) {
			t.Errorf("agents %v, %v", ids, err)
		}
		if list, err := db.AgentPage(ctx, storage.AgentQuery{Busy: true}); err != nil || len(list) != 2 {
			t.Errorf("busy agents %+v, %v", list, err)
		}
		if runs, err := db.RunPage(ctx, storage.RunQuery{}); err != nil || len(runs) != 2 || runs[0].ID != "r2" || runs[0].Awaiting == nil {
			t.Errorf("runs %+v, %v", runs, err)
		}
		for _, ref := range []string{"m1", "tg/1/501", "second", "o1"} {
			if got, err := db.FindMessages(ctx, ref); err != nil || !slices.Equal(got, []claybot.MessageID{"m1"}) {
				t.Errorf("found by %s: %v, %v", ref, got, err)
			}
		}
		if r, err := db.Receipt(ctx, "m1"); err != nil || r.Stored != 50 || r.Due != 50 || len(r.Replies) != 1 {
			t.Errorf("receipt %+v, %v", r, err)
		}
		if f, err := db.Stats(ctx); err != nil || f.OldestWaiting != 50 {
			t.Errorf("figures %+v, %v", f, err)
		}
		if list, err := db.OutgoingPage(ctx, storage.OutgoingQuery{State: claybot.SendFailed}); err != nil || len(list) != 1 {
			t.Errorf("failed %+v, %v", list, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The paused run goes on and ends as if nothing had been.
	db := openAt(t, path)
	stop := claybot.AgentMessage{ID: "stop", Type: claybot.MessageCancel}
	if done, err := db.Post(ctx, storage.Posting{To: "a2", Message: stop}); err != nil || done.Canceled != "r2" {
		t.Fatalf("posted %+v, %v", done, err)
	}
	acquired, _, err := db.Acquire(ctx, "n", time.Hour, 9, 9)
	if err != nil || len(acquired) != 2 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	for _, h := range acquired {
		if h.Run == nil {
			continue
		}
		if _, err := db.Begin(ctx, h.Lease, "x", nil, storage.Beginning{}); err != nil {
			t.Fatal(err)
		}
		end := storage.Outcome{State: claybot.RunCanceled, Events: []claybot.Event{{Type: claybot.EventRunCanceled}}}
		if _, err := db.Finish(ctx, h.Lease, "r2", end); err != nil {
			t.Fatal(err)
		}
	}
	if run, err := db.Run(ctx, "r2"); err != nil || run.State != claybot.RunCanceled || run.LastSeq != 3 {
		t.Errorf("run %+v, %v", run, err)
	}
	if _, err := db.Question(ctx, "x"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("question: %v", err)
	}
	checkFigures(t, db)
}
