package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres"
)

// shared is a store in PostgreSQL that the rig itself uses.
type shared = postgres.DB

// openStore opens the store of a database. It makes the tables where there are none.
func openStore(ctx context.Context, url string) (*shared, error) {
	return postgres.Open(ctx, postgres.Config{URL: url, NoListen: true})
}

// openShared reads what nodes have left in their database. None may run.
func openShared(ctx context.Context, db *database, schema string) (*archive, error) {
	store, err := openStore(ctx, db.url)
	if err != nil {
		return nil, err
	}
	a := &archive{
		db: store, close: store.Close, children: make(map[string][]storage.IndexEntry),
		told: make(map[claybot.MessageID]map[claybot.AgentID]int), results: make(map[callKey][]string),
	}
	known := make(map[claybot.AgentID]bool)
	err = a.read(ctx, func(id claybot.AgentID) error { known[id] = true; return nil })
	if err == nil {
		err = a.readRecords(ctx, db, schema, known)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return a, nil
}

// readRecords reads all histories at once, which each agent of the index must have.
func (a *archive) readRecords(ctx context.Context, db *database, schema string, agents map[claybot.AgentID]bool) error {
	rows, err := db.query(ctx, "SELECT agent, body FROM "+schema+".records ORDER BY agent, n")
	if err != nil {
		return err
	}
	for _, row := range rows {
		id := claybot.AgentID(row[0])
		var r claybot.Record
		if err := json.Unmarshal([]byte(row[1]), &r); err != nil {
			return fmt.Errorf("a record of agent %s: %w in %q", id, err, row[1])
		}
		a.note(id, r)
		delete(agents, id)
	}
	for id := range agents {
		return fmt.Errorf("agent %s is in the index and has no history", id)
	}
	return nil
}
