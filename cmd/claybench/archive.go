package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A ledger is a store of messages as the judges read it.
type ledger interface {
	storage.Index
	storage.Receipts
	storage.RunReader
	storage.Ledger
}

// An archive is what a daemon left in its store.
type archive struct {
	db       ledger
	close    func() error
	children map[string][]storage.IndexEntry // subagents by name
	// told counts in which histories a message stands, and how often.
	told map[claybot.MessageID]map[claybot.AgentID]int
	// results are the texts of all results that one call of a run has.
	results map[callKey][]string
}

type callKey struct {
	run  claybot.RunID
	call string
}

// openArchive reads the data directory below dir. No daemon may run there.
func openArchive(ctx context.Context, dir string) (*archive, error) {
	data := filepath.Join(dir, "data")
	db, err := sqlite.Open(ctx, filepath.Join(data, "claybot.db"), sqlite.Config{})
	if err != nil {
		return nil, err
	}
	a := &archive{
		db: db, close: db.Close, children: make(map[string][]storage.IndexEntry),
		told: make(map[claybot.MessageID]map[claybot.AgentID]int), results: make(map[callKey][]string),
	}
	err = a.read(ctx, func(id claybot.AgentID) error {
		return a.readHistory(id, filepath.Join(data, "agents", string(id), "history.jsonl"))
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return a, nil
}

// read reads all agents, the history of each by history.
func (a *archive) read(ctx context.Context, history func(id claybot.AgentID) error) error {
	for e, err := range a.db.IndexedAgents(ctx) {
		if err != nil {
			return err
		}
		if e.Descriptor.Type == claybot.AgentSubagent {
			a.children[e.Descriptor.Name] = append(a.children[e.Descriptor.Name], e)
		}
		if err := history(e.ID); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) readHistory(id claybot.AgentID, path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("agent %s is in the index and has no history", id)
	}
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // cut by a kill; the next append would repair it
		}
		var r claybot.Record
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%s: %w in %q", path, err, line)
		}
		a.note(id, r)
	}
	return nil
}

// note takes one record of an agent in.
func (a *archive) note(id claybot.AgentID, r claybot.Record) {
	if r.MessageID != "" {
		if a.told[r.MessageID] == nil {
			a.told[r.MessageID] = make(map[claybot.AgentID]int)
		}
		a.told[r.MessageID][id]++
	}
	if r.Type == claybot.RecordTool {
		k := callKey{r.Run, r.ToolCallID}
		a.results[k] = append(a.results[k], r.Text)
	}
}

// heard is how often an agent's history has a message, and how often those of
// all others have it.
func (a *archive) heard(agent claybot.AgentID, id claybot.MessageID) (here, elsewhere int) {
	for who, n := range a.told[id] {
		if who == agent {
			here += n
		} else {
			elsewhere += n
		}
	}
	return here, elsewhere
}
