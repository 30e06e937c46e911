package relational_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A store that went back in time runs nothing again, parked messages included: each has
// the reason, is recognized when it is redelivered, and its sender can be told. A second
// call, as after a crash, keeps the notices of the first.
func TestEndRestored(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	known, unknown := theAgent.Descriptor, claybot.User("telegram", "C9", "U9")
	post(t, db, "waits")
	for id, to := range map[claybot.MessageID]claybot.Descriptor{"p1": known, "p2": unknown, "p3": unknown} {
		m := textMessage(id)
		m.Keys = []string{"key of " + string(id)}
		if _, err := db.Park(ctx, storage.Parked{To: to, Message: m, Cause: "why"}, storage.ParkRules{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Enqueue(ctx, claybot.Outgoing{ID: "o1", Kind: claybot.OutgoingNotice, Route: known.Route(), Text: "text", Part: 1, Parts: 1}); err != nil {
		t.Fatal(err)
	}
	for id, in := range map[string]time.Duration{"r1": -time.Hour, "r2": time.Hour} {
		due := claybot.At(time.Now().Add(in))
		if err := db.AddReminder(ctx, storage.Reminder{ID: id, Agent: theAgent.ID, Due: due, Note: "text"}, 10); err != nil {
			t.Fatal(err)
		}
	}
	for round, want := range []storage.Ended{{Messages: 1, Parked: 3, Sends: 1, Reminders: 1}, {}} {
		if got, err := db.EndRestored(ctx); err != nil || got != want {
			t.Errorf("call %d ended %+v, %v; want %+v", round+1, got, err, want)
		}
	}
	if left, err := db.ParkedTotals(ctx); err != nil || left.Messages != 0 {
		t.Errorf("still parked: %+v, %v", left, err)
	}
	for id, agent := range map[claybot.MessageID]claybot.AgentID{"waits": theAgent.ID, "reminder/r1": theAgent.ID, "p1": theAgent.ID, "p2": "", "p3": ""} {
		if r, err := db.Receipt(ctx, id); err != nil || r.Skipped != "restored" || r.Agent != agent {
			t.Errorf("%s: skipped %q of agent %q, %v", id, r.Skipped, r.Agent, err)
		}
	}
	if left, err := db.Reminders(ctx, theAgent.ID); err != nil || len(left) != 1 || left[0].ID != "r2" {
		t.Errorf("reminders left: %+v, %v; want the one that is not due", left, err)
	}
	m := textMessage("p1")
	m.Keys = []string{"key of p1"}
	if done, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: m}); err != nil || done.Added {
		t.Errorf("a redelivery was taken: %+v, %v", done, err)
	}
	if ids, err := db.RestoredAgents(ctx); err != nil || !slices.Equal(ids, []claybot.AgentID{theAgent.ID}) {
		t.Errorf("agents to tell: %v, %v", ids, err)
	}
	if n := count(t, db, "SELECT count(*) FROM outbox WHERE open = 1"); n != 1 {
		t.Errorf("%d notices to the person whose agent is not known, want 1", n)
	}
	checkFigures(t, db)
}

// The person of an agent is told when nothing but a reminder has ended.
func TestEndRestoredReminder(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	if err := db.AddReminder(ctx, storage.Reminder{ID: "r1", Agent: theAgent.ID, Due: 1, Note: "text"}, 10); err != nil {
		t.Fatal(err)
	}
	if got, err := db.EndRestored(ctx); err != nil || got != (storage.Ended{Reminders: 1}) {
		t.Errorf("ended %+v, %v", got, err)
	}
	if ids, err := db.RestoredAgents(ctx); err != nil || !slices.Equal(ids, []claybot.AgentID{theAgent.ID}) {
		t.Errorf("agents to tell: %v, %v", ids, err)
	}
}

// A parked message that cannot be read is ended as the others are.
func TestEndRestoredDamaged(t *testing.T) {
	db := openFresh(t)
	if _, err := db.Park(t.Context(), storage.Parked{To: theAgent.Descriptor, Message: textMessage("m1")}, storage.ParkRules{}); err != nil {
		t.Fatal(err)
	}
	spoil(t, db, "parked", "m1")
	if got, err := db.EndRestored(t.Context()); err != nil || got.Parked != 1 {
		t.Errorf("ended %+v, %v", got, err)
	}
	if _, err := db.Receipt(t.Context(), "m1"); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("receipt: %v", err)
	}
}
