package relational_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
	"github.com/claybot/claybot/storage/storagetest"
)

// TestPruneTellsOfLoss: events that a sink never heard of are removed after 30
// days, and that is logged once with how many there were.
func TestPruneTellsOfLoss(t *testing.T) {
	var log bytes.Buffer
	db := openWith(t, filepath.Join(t.TempDir(), "claybot.db"), slog.New(slog.NewTextHandler(&log, nil)))
	ctx := t.Context()
	if err := db.Sinks(ctx, true, "web", "log"); err != nil {
		t.Fatal(err)
	}
	do(t, db, func(c *relational.Conn) error {
		for i := range 2*relational.PruneChunk + 5 { // more than two transactions
			if err := c.CancelReserved(theAgent.ID, claybot.RunID(fmt.Sprint("r", i)), "m", "test"); err != nil {
				return err
			}
		}
		return nil
	})
	for _, sink := range []string{"web", "log"} { // both know the first, none the others
		if err := db.Published(ctx, sink, "r0", 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := db.Prune(ctx, time.Now().Add(31*24*time.Hour), storagetest.Retention); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := log.String(), fmt.Sprintf("runs=%d events=%d", 2*relational.PruneChunk+4, 2*relational.PruneChunk+4); strings.Count(got, "never told") != 1 || !strings.Contains(got, want) {
		t.Errorf("log %q, want %q once", got, want)
	}
	if list, err := db.Backlog(ctx, "web", 10); err != nil || len(list) != 0 {
		t.Errorf("backlog %v, %v", list, err)
	}
}

// TestRelayRowsGo: nothing is kept of a run that has ended and of which all
// sinks know all.
func TestRelayRowsGo(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	if err := db.Sinks(ctx, true, "web", "log"); err != nil {
		t.Fatal(err)
	}
	post(t, db, "m1")
	acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	rows := func(want int64, q string) {
		t.Helper()
		if n := count(t, db, "SELECT count(*) FROM relays WHERE "+q); n != want {
			t.Errorf("%d rows with %s, want %d", n, q, want)
		}
	}
	publish := func(sink string, seq int64) {
		t.Helper()
		if err := db.Published(ctx, sink, "r1", seq); err != nil {
			t.Fatal(err)
		}
	}
	rows(2, "since IS NOT NULL AND published_at IS NULL")
	publish("web", 1)
	rows(1, "since IS NULL AND published_at > 0 AND seq = 1")
	if _, err := db.Finish(ctx, acquired[0].Lease, "r1", storage.Outcome{
		State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}},
	}); err != nil {
		t.Fatal(err)
	}
	rows(2, "since IS NOT NULL")
	publish("web", 2)
	rows(1, "sink = 'log'")
	publish("log", 5)
	rows(0, "true")
}

// TestDamagedRows: what cannot be read is shown with what is known of it, and
// holds up nothing else.
func TestDamagedRows(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	change(t, db, "INSERT INTO runs (id, agent, state, last_seq, started, ended, outcome) VALUES ('r1', 'a', 'FAILED', 7, 1, 2, '[')")
	change(t, db, "INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES ('r2', 'a', 'SUCCEEDED', 1, 1, 2)")
	if runs, err := db.RunPage(ctx, storage.RunQuery{}); err != nil || len(runs) != 2 || runs[1].ID != "r1" || runs[1].LastSeq != 7 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	if err := db.IndexAgents(ctx, claybot.Agent{ID: "a2", Descriptor: claybot.User("tg", "2", "2"), CreatedAt: 5}); err != nil {
		t.Fatal(err)
	}
	if err := db.SaveAgentSettings(ctx, "a2", claybot.Settings{Model: "big"}); err != nil {
		t.Fatal(err)
	}
	if err := db.SaveAgentSettings(ctx, theAgent.ID, claybot.Settings{Model: "big"}); err != nil {
		t.Fatal(err)
	}
	change(t, db, "UPDATE agents SET descriptor = '{' WHERE id = 'a2'")
	change(t, db, "UPDATE settings SET body = '{' WHERE agent = 'a2'")
	if list, err := db.AgentPage(ctx, storage.AgentQuery{}); err != nil || len(list) != 2 || list[0].ID != "a2" || list[0].CreatedAt != 5 {
		t.Errorf("agents %+v, %v", list, err)
	}
	if all, err := db.AgentSettings(ctx); err != nil || len(all) != 1 || all[theAgent.ID].Model != "big" {
		t.Errorf("settings %+v, %v", all, err)
	}
	o := claybot.Outgoing{ID: "o1", Text: "text", Route: claybot.Route{Connector: "tg", ChannelID: "1"}}
	if _, err := db.Enqueue(ctx, o); err != nil {
		t.Fatal(err)
	}
	spoil(t, db, "outbox", "o1")
	if list, err := db.OutgoingPage(ctx, storage.OutgoingQuery{Open: true}); err != nil || len(list) != 1 || list[0].ID != "o1" || list[0].Cause != relational.CauseDamaged {
		t.Errorf("outgoing %+v, %v", list, err)
	}
	if _, err := db.Retry(ctx, "o1"); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("retry: %v", err)
	}
	if got, err := db.Discard(ctx, "o1", "dropped"); err != nil || got.State != claybot.SendFailed {
		t.Errorf("discard: %+v, %v", got, err)
	}
	change(t, db, "INSERT INTO questions (id, run, agent, asked, open, body) VALUES ('q1', 'r1', 'a', 1, 1, '{'), ('q2', 'r1', 'a', 1, 1, '{}')")
	if list, err := db.OpenQuestions(ctx, "", 9); err != nil || len(list) != 1 || list[0].ID != "q2" {
		t.Errorf("questions %+v, %v", list, err)
	}
	if _, err := db.Question(ctx, "q1"); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("question: %v", err)
	}
	change(t, db, "DELETE FROM questions")
	// A damaged message that reserved a run id ends without a run.
	m := textMessage("m1")
	m.Run = "reserved"
	if _, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: m}); err != nil {
		t.Fatal(err)
	}
	spoil(t, db, "messages", "m1")
	if acquired, _, err := db.Acquire(ctx, "n", time.Hour, 9, 9); err != nil || len(acquired) != 0 {
		t.Errorf("acquired %+v, %v", acquired, err)
	}
	if run, err := db.Run(ctx, "reserved"); err != nil || run.State != claybot.RunCanceled || run.LastSeq != 1 {
		t.Errorf("run %+v, %v", run, err)
	}
	if ids, err := db.FindMessages(ctx, "reserved"); err != nil || !slices.Equal(ids, []claybot.MessageID{"m1"}) {
		t.Errorf("found %v, %v", ids, err)
	}
}
