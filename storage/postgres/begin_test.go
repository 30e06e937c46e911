package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// TestBeginAgain: the id that a message has reserved becomes another transaction's run
// while this one begins. The run that is begun in the next try has the caller's id.
func TestBeginAgain(t *testing.T) {
	server := postgrestest.Shared(t)
	url, ctx := server.Database(t), t.Context()
	db := openWith(t, Config{URL: url, NoListen: true})
	if _, err := db.RenewMember(ctx, storage.Member{ID: "here", Name: "here"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	m := claybot.AgentMessage{ID: "m1", Type: claybot.MessageUser, Text: "x", Run: "reserved"}
	if _, err := db.Post(ctx, storage.Posting{To: agentAt(t, db, "C1"), Message: m}); err != nil {
		t.Fatal(err)
	}
	acquired := acquireOne(t, db, "here")
	other, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	tx, err := other.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "INSERT INTO runs (id, agent, state, started, ended) VALUES ('reserved', 'other', 'CANCELED', 1, 2)"); err != nil {
		t.Fatal(err)
	}
	type begun struct {
		run claybot.Run
		err error
	}
	ended := make(chan begun, 1)
	go func() {
		run, err := db.Begin(ctx, acquired.Lease, "own", []claybot.MessageID{"m1"}, storage.Beginning{})
		ended <- begun{run, err}
	}()
	waitFor(t, func() bool {
		rows, err := server.Query(ctx, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		return rows[0][0] != "0"
	})
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.err != nil || got.run.ID != "own" {
		t.Errorf("got run %q, %v", got.run.ID, got.err)
	}
}
