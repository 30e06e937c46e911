package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/relational"
)

// TestReceiptsTogether: receipts that arrive while another one is being stored share a
// transaction. One that cannot be stored with the others is refused alone.
func TestReceiptsTogether(t *testing.T) {
	server := postgrestest.Shared(t)
	url, ctx := server.Database(t), t.Context()
	var c census
	db := newTalkers(t, Config{URL: url, tracer: &c}, 1)[0].db
	const n = 6
	claims := attempted(t, db, n)
	id := func(i int) string { return fmt.Sprint("o", i) }
	claims[n-1].Token-- // it was claimed again since
	conn := plainConn(t, url)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after Commit
	if _, err := tx.Exec(ctx, "LOCK TABLE outbox IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	c.take()
	ended := make([]chan error, n)
	resolve := func(i int) {
		ended[i] = make(chan error, 1)
		go func() {
			ended[i] <- db.Resolve(ctx, claims[i], id(i), storage.Resolution{State: claybot.SendSent, Receipt: fmt.Sprint("r", i)})
		}()
	}
	resolve(0)
	waitFor(t, func() bool {
		rows, err := server.Query(ctx, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		return rows[0][0] != "0"
	})
	for i := 1; i < n; i++ {
		resolve(i)
	}
	waitFor(t, func() bool {
		db.receipts.mu.Lock()
		defer db.receipts.mu.Unlock()
		return len(db.receipts.waiting) == n-1
	})
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		err := <-ended[i]
		o, oerr := db.OutgoingByID(ctx, id(i))
		switch {
		case oerr != nil:
			t.Fatal(oerr)
		case i < n-1 && (err != nil || o.State != claybot.SendSent || o.Receipt != fmt.Sprint("r", i) || o.Attempts != 1):
			t.Errorf("%v, %+v", err, o)
		case i == n-1 && (!errors.Is(err, storage.ErrLeaseLost) || o.State != claybot.SendAttempted):
			t.Errorf("with a claim that was lost: %v, %+v", err, o)
		}
	}
	transactions := 0
	statements, _ := c.take()
	for _, sql := range statements {
		if strings.HasPrefix(sql, "begin") {
			transactions++
		}
	}
	if transactions != 3 { // the first, those that waited, and the one that was refused
		t.Errorf("%d transactions:\n%s", transactions, strings.Join(statements, "\n"))
	}
	checkFigures(t, db)
}

// attempted enqueues messages o0, o1 and so on, each for a destination of its own, as
// attempted, and returns the claims of their destinations.
func attempted(t *testing.T, db *DB, n int) []storage.Claim {
	t.Helper()
	claims := make([]storage.Claim, n)
	for i := range claims {
		id, route := fmt.Sprint("o", i), claybot.Route{Connector: "telegram", ChannelID: fmt.Sprint("C", i)}
		var err error
		if claims[i], err = db.Claim(t.Context(), "here", storage.DestClaim(route.Dest())); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Enqueue(t.Context(), claybot.Outgoing{ID: id, Kind: claybot.OutgoingAnswer, Route: route, Text: "x", Part: 1, Parts: 1}); err != nil {
			t.Fatal(err)
		}
		if err := db.Attempt(t.Context(), claims[i], id); err != nil {
			t.Fatal(err)
		}
	}
	return claims
}

// TestReceiptsPassLocks: a receipt whose message or claim another transaction has locked
// delayed all that shared its transaction. It waits alone.
func TestReceiptsPassLocks(t *testing.T) {
	for name, lock := range map[string]string{
		"message": "SELECT 1 FROM outbox WHERE id = $1 AND $2 <> '' FOR UPDATE",
		"claim":   "SELECT 1 FROM claims WHERE name = $2 AND $1 <> '' FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			url, ctx := postgrestest.Shared(t).Database(t), t.Context()
			db := newTalkers(t, Config{URL: url}, 1)[0].db
			const n = 4
			claims := attempted(t, db, n)
			tx, err := plainConn(t, url).Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after Commit
			if tag, err := tx.Exec(ctx, lock, "o0", storable(claims[0].Name)); err != nil || tag.RowsAffected() != 1 {
				t.Fatal(tag, err)
			}
			list := make([]relational.Sent, n)
			for i, claim := range claims {
				list[i], _ = relational.SentBy(claim, fmt.Sprint("o", i), storage.Resolution{State: claybot.SendSent})
			}
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			marked, err := db.MarkSent(bounded, list)
			if err != nil || len(marked) != n-1 || marked["o0"] {
				t.Fatalf("marked %v: %v", marked, err)
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := db.Resolve(ctx, claims[0], "o0", storage.Resolution{State: claybot.SendSent}); err != nil {
				t.Error(err)
			}
			checkFigures(t, db)
		})
	}
}

// TestReceiptAlone: what others cannot be stored with is decided by Resolve as ever.
func TestReceiptAlone(t *testing.T) {
	url, ctx := postgrestest.Shared(t).Database(t), t.Context()
	db := newTalkers(t, Config{URL: url}, 1)[0].db
	route := claybot.Route{Connector: "telegram", ChannelID: "C"}
	claim, err := db.Claim(ctx, "here", storage.DestClaim(route.Dest()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Enqueue(ctx, claybot.Outgoing{ID: "o", Kind: claybot.OutgoingAnswer, Route: route, Text: "x", Part: 1, Parts: 1, At: claybot.At(time.UnixMilli(1))}); err != nil {
		t.Fatal(err)
	}
	sent := storage.Resolution{State: claybot.SendSent, Receipt: "r"}
	for range 2 { // from waiting, which no attempt precedes, and again
		if err := db.Resolve(ctx, claim, "o", sent); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Resolve(ctx, claim, "unknown", sent); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	checkFigures(t, db)
}
