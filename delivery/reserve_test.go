package delivery_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A chat is a connector that sends nothing.
type chat struct{ connectors.Connector }

func (chat) Health() connectors.Health { return connectors.Health{State: connectors.StateLive} }
func (chat) Split(s string) []string   { return []string{s} }
func (chat) Send(context.Context, claybot.Outgoing) (string, error) {
	return "", &connectors.RetryError{After: time.Hour}
}

type meter struct{}

func (meter) Sent(claybot.Outgoing, string, time.Duration) {}
func (meter) Panicked(string)                              {}

// A reply whose receiver is revoked while its run ends fails, and holds up nothing.
func TestReservedForTheRevoked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var revoked atomic.Bool
	d := delivery.New(delivery.Config{
		Outbox: db, Reader: db, Members: cluster.Alone(storage.Member{ID: "me"}), Meter: meter{}, Log: slog.New(slog.DiscardHandler),
		Connector: func(string) connectors.Connector { return chat{} }, Active: func(string) connectors.Connector { return chat{} },
		Allowed: func(claybot.Outgoing) bool { return !revoked.Load() },
	})
	if err := d.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	o := claybot.Outgoing{ID: "o", Route: claybot.Route{Connector: "chat", ChannelID: "room"}, Text: "hello"}
	r := d.Reserve(ctx, []claybot.Outgoing{o})
	stored, err := db.Enqueue(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Attempt(ctx, r.Claim(), o.ID); err != nil {
		t.Fatal(err)
	}
	stored[0].State, stored[0].Attempts = claybot.SendAttempted, 1
	revoked.Store(true)
	r.Hand(stored)
	d.End(time.Minute, context.Canceled) // waits for the lane
	if got, err := db.OutgoingByID(ctx, o.ID); err != nil || got.State != claybot.SendFailed {
		t.Errorf("%v: %+v", err, got)
	}
}

// What was stored as attempted while the deliverer ended is waiting again: nothing of it
// has left.
func TestReservedAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := delivery.New(delivery.Config{
		Outbox: db, Reader: db, Members: cluster.Alone(storage.Member{ID: "me"}), Meter: meter{}, Log: slog.New(slog.DiscardHandler),
		Connector: func(string) connectors.Connector { return chat{} }, Active: func(string) connectors.Connector { return chat{} },
		Allowed: func(claybot.Outgoing) bool { return true },
	})
	o := claybot.Outgoing{ID: "o", Route: claybot.Route{Connector: "chat", ChannelID: "room"}, Text: "hello"}
	if r := d.Reserve(ctx, []claybot.Outgoing{o}); r.Claim() != (storage.Claim{}) {
		t.Error("reserved before the start")
	}
	if err := d.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	r := d.Reserve(ctx, []claybot.Outgoing{o})
	if r.Claim().Name != storage.DestClaim(o.Route.Dest()) {
		t.Fatalf("claim %+v", r.Claim())
	}
	if second := d.Reserve(ctx, []claybot.Outgoing{o}); second.Claim() != (storage.Claim{}) {
		t.Error("reserved twice")
	}
	stored, err := db.Enqueue(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Attempt(ctx, r.Claim(), o.ID); err != nil {
		t.Fatal(err)
	}
	stored[0].State, stored[0].Attempts = claybot.SendAttempted, 1
	d.End(0, context.Canceled)
	r.Hand(stored)
	r.Hand(nil)
	if got, err := db.OutgoingByID(ctx, o.ID); err != nil || got.State != claybot.SendWaiting || got.Attempts != 0 {
		t.Errorf("%v: %+v", err, got)
	}
	if d.IsBusy(o.Route.Dest()) {
		t.Error("the lane is left")
	}
}
