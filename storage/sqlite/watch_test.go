package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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

// heard collects what a store tells of its commits.
type heard struct {
	mu   sync.Mutex
	list []storage.Commit
}

func (h *heard) add(c storage.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, c)
}

// TestToldOnlyOfCommits: of calls that were tried in one transaction, rolled
// back and tried again, only what was committed is told, once.
func TestToldOnlyOfCommits(t *testing.T) { synctest.Test(t, testToldOnlyOfCommits) }

func testToldOnlyOfCommits(t *testing.T) {
	var h heard
	db := openWith(t, filepath.Join(t.TempDir(), "claybot.db"), Config{Committed: h.add})
	if err := db.Sinks(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	cancel := func(c *conn, name string) error {
		return c.cancelReserved(theAgent.ID, claybot.RunID(name), "m", "test")
	}
	var group sync.WaitGroup
	gate := make(chan struct{})
	group.Go(func() { // keeps the writer busy until all others queue
		_, _ = write(t.Context(), db, func(*conn) (int, error) { <-gate; return 0, nil })
	})
	for name, fn := range map[string]func(c *conn) error{
		"good 1":  func(c *conn) error { return cancel(c, "good 1") },
		"failed":  func(c *conn) error { return errors.Join(cancel(c, "failed"), bad) },
		"panic":   func(c *conn) error { _ = cancel(c, "panic"); panic("oh") },
		"good 2":  func(c *conn) error { return cancel(c, "good 2") },
		"refused": func(*conn) error { return bad },
	} {
		group.Go(func() {
			_, err := write(t.Context(), db, func(c *conn) (int, error) { return 0, fn(c) })
			if (err == nil) != strings.HasPrefix(name, "good") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Wait() // all of them queue
	close(gate)
	group.Wait()
	var told, owed []string
	for _, c := range h.list {
		for _, e := range c.Events {
			told = append(told, string(e.Run))
		}
	}
	backlog, err := db.Backlog(t.Context(), "web", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range backlog {
		owed = append(owed, string(u.Run))
	}
	want := []string{"good 1", "good 2"}
	for _, list := range [][]string{told, owed} {
		if slices.Sort(list); !slices.Equal(list, want) {
			t.Errorf("got %q, want %q", list, want)
		}
	}
}

// TestWatcherPanics: the store outlives whom it tells.
func TestWatcherPanics(t *testing.T) {
	var log bytes.Buffer
	db := openWith(t, filepath.Join(t.TempDir(), "claybot.db"), Config{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Committed: func(storage.Commit) { panic("oh") },
	})
	for i := range 3 {
		a := theAgent
		a.ID, a.Descriptor.UserID = claybot.AgentID(fmt.Sprint("a", i)), fmt.Sprint(i)
		if err := db.IndexAgents(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := db.Figures(t.Context()); err != nil || f.Agents != 3 || !strings.Contains(log.String(), "panic in a watcher") {
		t.Errorf("%d agents, %v, log %q", f.Agents, err, log.String())
	}
}

// TestPruneTellsOfLoss: events that a sink never heard of are removed after 30
// days, and that is logged once with how many there were.
func TestPruneTellsOfLoss(t *testing.T) {
	var log bytes.Buffer
	db := openWith(t, filepath.Join(t.TempDir(), "claybot.db"), Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ctx := t.Context()
	if err := db.Sinks(ctx, "web", "log"); err != nil {
		t.Fatal(err)
	}
	_, err := write(ctx, db, func(c *conn) (int, error) {
		for i := range 2*pruneChunk + 5 { // more than two transactions
			if err := c.cancelReserved(theAgent.ID, claybot.RunID(fmt.Sprint("r", i)), "m", "test"); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sink := range []string{"web", "log"} { // both know the first, none the others
		if err := db.Published(ctx, sink, "r0", 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := db.Prune(ctx, time.Now().Add(31*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := log.String(), fmt.Sprintf("runs=%d events=%d", 2*pruneChunk+4, 2*pruneChunk+4); strings.Count(got, "never told") != 1 || !strings.Contains(got, want) {
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
	if err := db.Sinks(ctx, "web", "log"); err != nil {
		t.Fatal(err)
	}
	post(t, db, "m1")
	held, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(ctx, held[0].Lease, "r1", []claybot.MessageID{"m1"}, ""); err != nil {
		t.Fatal(err)
	}
	rows := func(want int64, q string) {
		t.Helper()
		err := db.read(ctx, func(c *conn) error {
			return c.each("SELECT count(*) FROM relays WHERE "+q, func(r row) error {
				if r.int(0) != want {
					t.Errorf("%d rows with %s, want %d", r.int(0), q, want)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
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
	if _, err := db.Finish(ctx, held[0].Lease, "r1", storage.Outcome{
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
	if list, err := db.OutgoingPage(ctx, storage.OutgoingQuery{Open: true}); err != nil || len(list) != 1 || list[0].ID != "o1" || list[0].Cause != causeDamaged {
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
	if held, _, err := db.Acquire(ctx, "n", time.Hour, 9, 9); err != nil || len(held) != 0 {
		t.Errorf("held %+v, %v", held, err)
	}
	if run, err := db.Run(ctx, "reserved"); err != nil || run.State != claybot.RunCanceled || run.LastSeq != 1 {
		t.Errorf("run %+v, %v", run, err)
	}
	if ids, err := db.FindMessages(ctx, "reserved"); err != nil || !slices.Equal(ids, []claybot.MessageID{"m1"}) {
		t.Errorf("found %v, %v", ids, err)
	}
}
