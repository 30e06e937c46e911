package agentsystem_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// TestHistoryCutAfterCrash: a history that was cut at the end of a line after a kill is
// noticed when the agent is opened, however soon the kill came after its last turn or
// reset.
func TestHistoryCutAfterCrash(t *testing.T) {
	for _, last := range []string{"turn", "reset"} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.start()
				for i := range 5 {
					r.say(fmt.Sprint("turn ", i))
				}
				if last == "reset" {
					r.post(ann, claybot.AgentMessage{ID: "chat/reset", Type: claybot.MessageReset, FirstHand: true})
				}
				synctest.Wait() // what is only begun has no recorded end yet
				id := r.agent(ann)
				r.crash()
				path := filepath.Join(r.dir, "agents", string(id), "history.jsonl")
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				lines := slices.Collect(bytes.Lines(whole))
				if err := os.WriteFile(path, bytes.Join(lines[:len(lines)-1], nil), 0o600); err != nil {
					t.Fatal(err)
				}
				if told := r.openHistory(id); len(told) != 1 || !strings.Contains(told[0], "could not be read") {
					t.Errorf("%d of %d lines are left, and the person is told %q", len(lines)-1, len(lines), told)
				}
			})
		})
	}
}

// openHistory opens the history of an agent as the next process does, and returns what
// its person is told.
func (r *rig) openHistory(id claybot.AgentID) (told []string) {
	r.Helper()
	db, err := sqlite.Open(r.Context(), filepath.Join(r.dir, "claybot.db"), sqlite.Config{})
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	agents, err := files.Open(files.Config{Dir: r.dir, Index: db, OnDamage: func(_ claybot.AgentID, text string) { told = append(told, text) }})
	if err != nil {
		r.Fatal(err)
	}
	defer agents.Close()
	h, err := agents.OpenHistory(r.Context(), storage.Lease{Agent: id, Node: "n", Token: 1 << 40})
	if err == nil {
		err = h.Close()
	}
	if err != nil {
		r.Fatal(err)
	}
	return told
}
