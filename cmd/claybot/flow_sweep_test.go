package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
)

// The agent of a run goes when its runs are kept no longer, with its subagents; one that has a run, or is
// younger, stays, and so does a thread, and so does every agent of another kind.
func TestSweepFlows(t *testing.T) {
	d := idleDaemon(t, func(*configs.Config) {})
	ctx := t.Context()
	make := func(of claybot.Descriptor) claybot.AgentID {
		a, err := d.stores.agents.AgentFor(ctx, of)
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	old := make(claybot.Descriptor{Type: claybot.AgentFlow, UID: "aaaaaaaaaaaaaaaaaaaaaaaa", Name: "f"})
	busy := make(claybot.Descriptor{Type: claybot.AgentFlow, UID: "bbbbbbbbbbbbbbbbbbbbbbbb", Name: "f"})
	chat := make(claybot.User("telegram", "C1", "U1"))
	child, err := d.stores.agents.NewAgent(ctx, claybot.Descriptor{Type: claybot.AgentSubagent, UID: "c", Parent: old, Root: old, Depth: 1}, claybot.Background{})
	if err != nil {
		t.Fatal(err)
	}
	thread, err := d.stores.agents.NewAgent(ctx, claybot.Thread("telegram/U1:f", "telegram/U1"), claybot.Background{Tools: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.stores.db.Post(ctx, storage.Posting{To: busy, Message: claybot.AgentMessage{ID: "m", Type: claybot.MessageSystem, Kind: claybot.KindTrigger, At: claybot.Now()}}); err != nil {
		t.Fatal(err)
	}
	left := func(at time.Time) (ids []claybot.AgentID) {
		t.Helper()
		if err := d.sweepFlows(ctx, at); err != nil {
			t.Fatal(err)
		}
		for _, id := range []claybot.AgentID{old, child.ID, busy, chat, thread.ID} {
			_, err := d.stores.db.IndexedAgentByID(ctx, id)
			switch {
			case err == nil:
				ids = append(ids, id)
			case !errors.Is(err, storage.ErrNotFound):
				t.Fatal(err)
			}
		}
		return ids
	}
	if ids := left(time.Now().Add(time.Hour)); len(ids) != 5 {
		t.Errorf("left at first: %v", ids)
	}
	ids := left(time.Now().Add(d.config.Load().Retention.Runs + time.Hour))
	if len(ids) != 2 || ids[0] != busy || ids[1] != chat {
		t.Errorf("left: %v, want %s and %s", ids, busy, chat)
	}
}

// A version goes when it was not in force for as long as runs are kept, unless a run that has not ended
// began with it; one that comes into force again is kept.
func TestSweepVersions(t *testing.T) {
	d := idleDaemon(t, func(*configs.Config) {})
	ctx, db := t.Context(), d.stores.db
	for _, key := range []string{"a/old", "a/waits", "a/back", "a/now", "a/queued", "b/there"} {
		if err := db.SetCheckpoint(ctx, flowVersions+key, "text"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.SetCheckpoint(ctx, flowsInForce, `{"a":"now"}`), db.SetCheckpoint(ctx, flowMembers+"right", `{"b":"there"}`)); err != nil {
		t.Fatal(err)
	}
	a, err := d.stores.agents.AgentFor(ctx, claybot.Descriptor{Type: claybot.AgentFlow, UID: "aaaaaaaaaaaaaaaaaaaaaaaa", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Post(ctx, storage.Posting{To: a.ID, Message: claybot.AgentMessage{ID: "m", Type: claybot.MessageSystem, Kind: claybot.KindTrigger, At: claybot.Now()}}); err != nil {
		t.Fatal(err)
	}
	held, _, err := db.Acquire(ctx, d.stores.members.Node(), time.Minute, 1, 10)
	if err != nil || len(held) != 1 {
		t.Fatal(err, held)
	}
	if _, err := db.Begin(ctx, held[0].Lease, "r1", []claybot.MessageID{"m"}, storage.Beginning{Engine: "flow:a@waits"}); err != nil {
		t.Fatal(err)
	}
	queued := claybot.AgentMessage{ID: "m2", Type: claybot.MessageSystem, Kind: claybot.KindTrigger, At: claybot.Now(), Flow: &claybot.FlowStart{Name: "a", Version: "queued"}}
	if _, err := db.Post(ctx, storage.Posting{To: a.ID, Message: queued}); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	left := func(after time.Duration, want ...string) {
		t.Helper()
		if err := d.sweepVersions(ctx, at.Add(after)); err != nil {
			t.Fatal(err)
		}
		all, err := db.ListCheckpoints(ctx, flowVersions)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range all {
			got = append(got, c.Key[len(flowVersions):])
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	keep := d.config.Load().Retention.Runs
	left(0, "a/back", "a/now", "a/old", "a/queued", "a/waits", "b/there")
	left(keep-time.Hour, "a/back", "a/now", "a/old", "a/queued", "a/waits", "b/there")
	if err := db.SetCheckpoint(ctx, flowsInForce, `{"a":"back"}`); err != nil {
		t.Fatal(err)
	}
	left(keep+time.Hour, "a/back", "a/now", "a/queued", "a/waits", "b/there")
	left(2*keep+2*time.Hour, "a/back", "a/queued", "a/waits", "b/there")
	d.config.Load().Retention.Runs = 0
	if err := db.SetCheckpoint(ctx, flowsInForce, `{}`); err != nil {
		t.Fatal(err)
	}
	left(100*keep, "a/back", "a/queued", "a/waits", "b/there")
}
