package main

import (
	"errors"
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
