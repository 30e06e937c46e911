package relational_test

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestAcquireMends has a damaged run of a helper end in the same Acquire that takes
// its parent, which is told of it: what was loaded of the parent is not so any more.
func TestAcquireMends(t *testing.T) {
	kid := claybot.Agent{ID: "akidagent000000000000000", Descriptor: claybot.Descriptor{
		Type: claybot.AgentSubagent, UID: "1", Parent: theAgent.ID, Name: "digger",
	}}
	db := openFresh(t)
	ctx := t.Context()
	if err := db.IndexAgents(ctx, kid); err != nil {
		t.Fatal(err)
	}
	m := textMessage("task")
	m.Type = claybot.MessageSystem
	if _, err := db.Post(ctx, storage.Posting{To: kid.ID, Message: m}); err != nil {
		t.Fatal(err)
	}
	acquired, _, err := db.Acquire(ctx, "old", time.Hour, 1, 10)
	if err != nil || len(acquired) != 1 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "k1", []claybot.MessageID{"task"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	post(t, db, "m1") // the parent is due as well
	change(t, db, "UPDATE runs SET messages = '[' WHERE id = 'k1'")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, db.path)
	acquired, _, err = db.Acquire(ctx, "new", time.Hour, 10, 10)
	if err != nil || len(acquired) != 1 || acquired[0].Lease.Agent != theAgent.ID {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	var ids []claybot.MessageID
	for _, m := range acquired[0].Waiting {
		ids = append(ids, m.ID)
	}
	if want := []claybot.MessageID{"m1", "failure/k1"}; !slices.Equal(ids, want) {
		t.Errorf("taken %q, want %q", ids, want)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "w1", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
		t.Error(err)
	}
	post(t, db, "m2")
	waiting, err := db.Waiting(ctx, theAgent.ID, 10)
	ids = nil
	for _, m := range waiting {
		ids = append(ids, m.ID)
	}
	if want := []claybot.MessageID{"failure/k1", "m2"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("waiting %q, %v, want %q", ids, err, want)
	}
	checkFigures(t, db)
}
