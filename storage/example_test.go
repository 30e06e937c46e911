package storage_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// The way of one message through a store: an intake posts it, a worker leases its agent,
// runs it, and ends the run together with its reply.
func Example() {
	dir, err := os.MkdirTemp("", "claybot-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "claybot.db"), sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ann := claybot.Agent{ID: "atestagent00000000000000", Descriptor: claybot.User("telegram", "7", "ann")}
	if err := db.IndexAgents(ctx, ann); err != nil {
		log.Fatal(err)
	}
	if err := handle(ctx, db, ann.ID); err != nil {
		log.Fatal(err)
	}

	// Output:
	// posted: true, again: false
	// run has 1 message
	// outbox: Hello, Ann!
}

// A store is what this worker needs of one.
type store interface {
	storage.Inbox
	storage.Leases
	storage.Runs
	storage.Outbox
}

func handle(ctx context.Context, db store, agent claybot.AgentID) error {
	message := storage.Posting{To: agent, Message: claybot.AgentMessage{ID: "telegram/7/1", Type: claybot.MessageUser, Text: "Hello"}}
	first, err := db.Post(ctx, message)
	if err != nil {
		return err
	}
	again, err := db.Post(ctx, message) // a redelivery changes nothing
	if err != nil {
		return err
	}
	fmt.Printf("posted: %v, again: %v\n", first.Added, again.Added)

	all, _, err := db.Acquire(ctx, "worker", time.Minute, 1, 10)
	if err != nil {
		return err
	}
	acquired := all[0]
	run, err := db.Begin(ctx, acquired.Lease, "run-1", []claybot.MessageID{acquired.Waiting[0].ID}, storage.Beginning{Engine: "react"})
	if err != nil {
		return err
	}
	fmt.Printf("run has %d message\n", len(run.Messages))

	reply := claybot.Outgoing{ID: "run-1/reply", Text: "Hello, Ann!", Route: claybot.Route{Connector: "telegram", ChannelID: "7"}}
	replies, err := db.Finish(ctx, acquired.Lease, run.ID, storage.Outcome{
		State: claybot.RunSucceeded, Output: reply.Text, Replies: []claybot.Outgoing{reply},
		Events: []claybot.Event{{Type: claybot.EventRunFinished}},
	})
	if err != nil {
		return err
	}
	unsent, err := db.Unsent(ctx, replies[0].Route.Dest(), 0, 10)
	if err != nil {
		return err
	}
	for _, o := range unsent {
		fmt.Println("outbox:", o.Text)
	}
	return nil
}
