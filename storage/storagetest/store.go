// Package storagetest is the proof of the storage contracts: suites that every
// implementation runs. TestAgents covers storage.Agents, storage.Histories and
// storage.Files, TestStore everything else.
//
// Only tests import it.
package storagetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Store is what a message store implements.
type Store interface {
	storage.Index
	storage.AgentReader
	storage.Settings
	storage.Inbox
	storage.Leases
	storage.Receipts
	storage.Parking
	storage.ParkedReader
	storage.Runs
	storage.RunReader
	storage.Ratings
	storage.RunControl
	storage.Outbox
	storage.OutboxReader
	storage.OutboxControl
	storage.Access
	storage.Roles
	storage.CheckpointSet
	storage.Chatter
	storage.StatsReader
	storage.Ledger
	storage.Reminders
	storage.Documents
	storage.Memories
	storage.MemoryHistory
	storage.Relays
	storage.Usages
	storage.Questions
	storage.Budgets
	storage.Members
	storage.Claims
	storage.Pruner
	storage.Eraser
	// Alone says that one process uses the store: it opens it with nothing held.
	Alone() bool
	Close() error
}

// An Opener opens an empty store that t.Cleanup closes, and tells committed of
// its commits. reopen closes it and opens what it left behind, as the next
// process would.
type Opener func(t *testing.T, committed func(storage.Commit)) (s Store, reopen func() Store)

// TestStore runs the suite.
//
// Every test runs in a synctest bubble, so the store takes the time from
// package time, and hours of waiting cost nothing.
func TestStore(t *testing.T, open Opener) {
	groups := []struct {
		name  string
		tests []storeTest
	}{
		{"index", indexTests},
		{"post", postTests},
		{"parking", parkingTests},
		{"due", dueTests},
		{"lease", leaseTests},
		{"runs", runTests},
		{"settle", settleTests},
		{"outbox", outboxTests},
		{"access", accessTests},
		{"roles", roleTests},
		{"said", saidTests},
		{"kin", kinTests},
		{"amend", amendTests},
		{"ratings", ratingTests},
		{"engines", engineTests},
		{"silent", silentTests},
		{"pause", pauseTests},
		{"flows", flowTests},
		{"between", betweenTests},
		{"ledger", ledgerTests},
		{"reminders", reminderTests},
		{"documents", documentTests},
		{"memories", memoryTests},
		{"reserved", reservedTests},
		{"states", stateTests},
		{"pages", pageTests},
		{"receipts", receiptTests},
		{"operator", operatorTests},
		{"settings", settingsTests},
		{"usage", usageTests},
		{"budgets", budgetTests},
		{"relay", relayTests},
		{"commits", commitTests},
		{"questions", questionTests},
		{"nodes", nodeTests},
		{"retention", retentionTests},
		{"erase", eraseTests},
		{"races", raceTests},
		{"versions", versionTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, st := range g.tests {
				t.Run(st.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := &bed{TB: t, ctx: t.Context()}
						b.Store, b.reopen = open(t, b.commits.add)
						b.agent = b.newAgent("C1")
						st.run(b)
					})
				})
			}
		})
	}
}

type storeTest struct {
	name string
	run  func(b *bed)
}

// A bed is what one test works with: a store that knows one agent. Its methods
// fail the test when the store returns an error.
type bed struct {
	testing.TB
	Store
	ctx    context.Context
	reopen func() Store
	agent  claybot.AgentID
	// commits are those that the store has told of.
	commits commits
	sender  int           // how many nodes have sent before this one
	away    time.Duration // how long again has waited
}

// commits collects what a store tells of its commits.
type commits struct {
	mu   sync.Mutex
	list []storage.Commit
}

func (c *commits) add(done storage.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, done)
}

// take returns what came since it was last asked.
func (c *commits) take() []storage.Commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// instant is a Wait of nothing; minute holds messages for a quiet minute, ten
// at most.
var (
	instant storage.Wait
	minute  = storage.Wait{Quiet: time.Minute, Max: 10 * time.Minute}
)

const (
	ttl     = 10 * time.Second
	nodeOne = "one"
	nodeTwo = "two"
)

// ok fails the test on an error and returns v otherwise.
func ok[T any](v T, err error) func(b *bed) T {
	return func(b *bed) T {
		b.Helper()
		b.noError(err)
		return v
	}
}

func (b *bed) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got error %v, want %v", err, want)
	}
}

// equal compares deeply; values of different types are equal when they print
// alike, so that untyped lists do.
func (b *bed) equal(what string, got, want any) {
	b.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		b.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

// again opens the store as the next process does, once what the last one held has
// run out.
func (b *bed) again() {
	b.Helper()
	b.Store = b.reopen()
	if b.Alone() {
		return
	}
	time.Sleep(ttl)
	b.away += ttl
	b.noError(b.Leave(b.ctx, b.senderID()))
	b.sender++
	b.claim()
}

// Acquire is that of the store, for a node of the present process.
func (b *bed) Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) ([]storage.Acquired, time.Time, error) {
	if b.sender > 0 {
		node = fmt.Sprint(node, "/", b.sender)
	}
	return b.Store.Acquire(ctx, node, ttl, limit, batch)
}

func (b *bed) senderID() string { return fmt.Sprint("sender", b.sender) }

// claim is the claim of dest, of a node that stays.
func (b *bed) claim() storage.Claim { return b.claimOf(dest) }

func (b *bed) claimOf(dest string) storage.Claim {
	b.Helper()
	id := b.senderID()
	ok(b.RenewMember(b.ctx, storage.Member{ID: id, Name: id}, 100*365*24*time.Hour))(b)
	return ok(b.Claim(b.ctx, id, storage.DestClaim(dest)))(b)
}

// attempt and resolveErr are those of the store by the node that has the claim of the
// message's destination.
func (b *bed) attempt(id string) error { return b.Attempt(b.ctx, b.claimFor(id), id) }

func (b *bed) resolveErr(id string, r storage.Resolution) error {
	return b.Resolve(b.ctx, b.claimFor(id), id, r)
}

func (b *bed) claimFor(id string) storage.Claim {
	b.Helper()
	o, err := b.OutgoingByID(b.ctx, id)
	if err != nil {
		return b.claim()
	}
	return b.claimOf(o.Route.Dest())
}

func (b *bed) newAgent(channel string) claybot.AgentID {
	b.Helper()
	a := claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("telegram", channel, "U1")}
	b.noError(b.IndexAgents(b.ctx, a))
	return a.ID
}

func userMessage(id string) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: "text of " + id,
		From: claybot.Sender{UserID: "U1", Name: "Ann"}, At: claybot.Now(),
	}
}

func (b *bed) typed(kind claybot.MessageType, id string) storage.Posting {
	m := userMessage(id)
	m.Type = kind
	return storage.Posting{To: b.agent, Message: m}
}

// post posts a user message that is due after w.
func (b *bed) post(id string, w storage.Wait) storage.Posted {
	b.Helper()
	return b.deliver(storage.Posting{To: b.agent, Message: userMessage(id), Wait: w})
}

func (b *bed) deliver(p storage.Posting) storage.Posted {
	b.Helper()
	return ok(b.Post(b.ctx, p))(b)
}

// acquire leases what is due, expecting n agents.
func (b *bed) acquire(node string, n int) []storage.Acquired {
	b.Helper()
	acquired, _, err := b.Acquire(b.ctx, node, ttl, 100, 100)
	b.noError(err)
	if len(acquired) != n {
		b.Fatalf("node %s acquired %d agents, want %d", node, len(acquired), n)
	}
	return acquired
}

// hold leases the one agent that is due.
func (b *bed) hold(node string) storage.Acquired {
	b.Helper()
	return b.acquire(node, 1)[0]
}

// due is when the store says that something is due next.
func (b *bed) due() time.Time {
	b.Helper()
	acquired, next, err := b.Acquire(b.ctx, "due", ttl, 0, 0)
	b.noError(err)
	if len(acquired) != 0 {
		b.Fatalf("limit 0 acquired %d agents", len(acquired))
	}
	return next
}

func (b *bed) dueIn(what string, want time.Duration) {
	b.Helper()
	if got := time.Until(b.due()); got != want {
		b.Fatalf("%s: due in %v, want %v", what, got, want)
	}
}

func (b *bed) dueNow(what string) {
	b.Helper()
	if next := b.due(); next.IsZero() || next.After(time.Now()) {
		b.Fatalf("%s: due at %v, want now", what, next)
	}
}

func (b *bed) neverDue(what string) {
	b.Helper()
	if next := b.due(); !next.IsZero() {
		b.Fatalf("%s: due at %v, want never", what, next)
	}
}

// begin posts a message, leases its agent and begins run id with it.
func (b *bed) begin(id claybot.RunID) (storage.Lease, claybot.Run) {
	b.Helper()
	b.post("m-"+string(id), instant)
	h := b.hold(nodeOne)
	return h.Lease, ok(b.Begin(b.ctx, h.Lease, id, ids(h.Waiting), storage.Beginning{}))(b)
}

func (b *bed) run(id claybot.RunID) claybot.Run {
	b.Helper()
	return ok(b.Run(b.ctx, id))(b)
}

// succeed ends a run well.
func (b *bed) succeed(l storage.Lease, id claybot.RunID, replies ...claybot.Outgoing) []claybot.Outgoing {
	b.Helper()
	return ok(b.Finish(b.ctx, l, id, success(replies...)))(b)
}

func success(replies ...claybot.Outgoing) storage.Outcome {
	return storage.Outcome{
		State: claybot.RunSucceeded, Output: "done", Replies: replies,
		Events: []claybot.Event{{Type: claybot.EventRunFinished}},
	}
}

func reply(id string) claybot.Outgoing {
	return claybot.Outgoing{
		ID: id, Kind: claybot.OutgoingAnswer, Text: "text of " + id, Part: 1, Parts: 1,
		Route: claybot.Route{Connector: "telegram", ChannelID: "C1", UserID: "U1"},
	}
}

var dest = reply("").Route.Dest()

func ids(ms []claybot.AgentMessage) []claybot.MessageID {
	list := make([]claybot.MessageID, len(ms))
	for i, m := range ms {
		list[i] = m.ID
	}
	return list
}

func outIDs(out []claybot.Outgoing) []string {
	list := make([]string, len(out))
	for i, o := range out {
		list[i] = o.ID
	}
	return list
}

// events lists the types of a run's events after a seq and checks that the
// count has no gap.
func (b *bed) events(id claybot.RunID, after int64) []claybot.EventType {
	b.Helper()
	var types []claybot.EventType
	for e, err := range b.Events(b.ctx, id, after) {
		b.noError(err)
		after++
		if e.Seq != after || e.Run != id || e.V != 1 || e.At == 0 {
			b.Fatalf("event %+v, want seq %d of run %s", e, after, id)
		}
		types = append(types, e.Type)
	}
	return types
}

// receiptOf returns a message's skip reason and run.
func (b *bed) receiptOf(id claybot.MessageID) (skipped string, run claybot.RunID) {
	b.Helper()
	r := ok(b.Receipt(b.ctx, id))(b)
	if r.Message.ID != id || r.Agent != b.agent {
		b.Fatalf("receipt of %s is for %s of agent %s", id, r.Message.ID, r.Agent)
	}
	if r.Run != nil {
		run = r.Run.ID
	}
	return r.Skipped, run
}

func (b *bed) figures() storage.Stats {
	b.Helper()
	return ok(b.Stats(b.ctx))(b)
}

func sorted[T ~string](list []T) []T {
	slices.Sort(list)
	return list
}

func contextCanceled(b *bed) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	return ctx, cancel
}
