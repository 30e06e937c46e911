package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/storagetest"
)

// A census counts what is sent to the server.
type census struct {
	mu         sync.Mutex
	statements []string
	trips      int
}

func (c *census) add(trips int, sql ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips += trips
	c.statements = append(c.statements, sql...)
}

func (c *census) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.add(1, d.SQL)
	return ctx
}

func (*census) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *census) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.add(1)
	return ctx
}

func (c *census) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	c.add(0, d.SQL)
}

func (*census) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// take returns what was counted since the last call.
func (c *census) take() (statements []string, trips int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	statements, trips = c.statements, c.trips
	c.statements, c.trips = nil, 0
	return statements, trips
}

// synced counts the transactions that wait for the disk.
func synced(statements []string) (n int) {
	soft := false
	for _, sql := range statements {
		switch {
		case strings.HasPrefix(sql, "begin"):
			soft = false
		case sql == "set local synchronous_commit = off":
			soft = true
		case sql == "commit" && !soft:
			n++
		}
	}
	return n
}

// A talker takes messages of one chat through the store as a member does: intake, the run
// with its history and its end, and the receipt of the answer.
type talker struct {
	*testing.T
	db   *DB
	to   claybot.Descriptor
	sent int
}

func (c *talker) noError(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// message takes one message from its arrival to the receipt of its answer.
func (c *talker) message() {
	c.Helper()
	db, ctx := c.db, c.Context()
	c.sent++
	run := claybot.RunID(fmt.Sprintf("run-%s-%d", c.to.ChannelID, c.sent))
	met, err := db.Arrival(ctx, c.to)
	c.noError(err)
	if met.Parked || met.Asked {
		c.Fatalf("%+v", met)
	}
	if met.Agent == nil {
		a, err := db.Agents.AgentFor(ctx, c.to)
		c.noError(err)
		met.Agent = &a
	}
	posted, err := db.Post(ctx, storage.Posting{
		To: met.Agent.ID, Message: note("message-" + string(run)), MaxWaiting: 100,
		Start: &storage.Start{Node: "here", TTL: time.Hour, Run: run, With: storage.Beginning{Engine: "react"}},
	})
	c.noError(err)
	began := posted.Started
	if began == nil || began.Agent == nil || began.Agent.Descriptor != c.to {
		c.Fatalf("the run did not begin with its agent: %+v", began)
	}
	history, err := db.Agents.OpenHistory(ctx, began.Lease)
	c.noError(err)
	_, err = db.Memories(ctx, "agent/"+string(met.Agent.ID), "global")
	c.noError(err)
	c.noError(history.Buffer(ctx,
		claybot.Record{Type: claybot.RecordUser, Run: run, Text: "hello"}, claybot.Record{Type: claybot.RecordAssistant, Run: run, Text: "hello to you"}))
	claim, err := db.Claim(ctx, "here", storage.DestClaim(c.to.Route().Dest()))
	c.noError(err)
	deferring, ok := history.(storage.Deferring)
	if !ok {
		c.Fatal("the history does not defer its records")
	}
	usage := claybot.Usage{Input: 20, Output: 10, LLMCalls: 1}
	outcome := storage.Outcome{
		State: claybot.RunSucceeded, Output: "hello to you", Usage: usage, Calls: []storage.ModelCall{{Model: "m", Usage: usage, MS: 20}},
		Events: []claybot.Event{
			{Type: claybot.EventNodeStarted, Data: json.RawMessage(`{"node":"model"}`)},
			{Type: claybot.EventAssistantMessage, Data: json.RawMessage(`{"text":"hello to you"}`)},
			{Type: claybot.EventNodeFinished, Data: json.RawMessage(`{"node":"model"}`)},
			{Type: claybot.EventRunFinished},
		},
		Replies: []claybot.Outgoing{{ID: "answer-" + string(run), Kind: claybot.OutgoingAnswer, Run: run, Route: c.to.Route(), Text: "hello to you", Part: 1, Parts: 1}},
		Sending: claim, Records: deferring.Deferred(), Engine: "react",
	}
	out, err := db.Finish(ctx, began.Lease, run, outcome)
	c.noError(err)
	deferring.Settle(outcome.Records)
	c.noError(history.Close())
	if len(out) != 1 || out[0].State != claybot.SendAttempted {
		c.Fatalf("the answer is not to be sent at once: %+v", out)
	}
	c.noError(db.Resolve(ctx, claim, out[0].ID, storage.Resolution{State: claybot.SendSent, Receipt: fmt.Sprint(c.sent)}))
	c.noError(db.Yield(ctx, claim))
	if due, _, err := db.Acquire(ctx, "here", time.Hour, 1, 10); err != nil || len(due) > 0 {
		c.Fatalf("due: %+v, %v", due, err)
	}
}

// newTalkers returns people of chats, over a store whose only member is "here".
func newTalkers(t *testing.T, cfg Config, n int) []*talker {
	t.Helper()
	cfg.NoListen = true
	db := openWith(t, cfg)
	if _, err := db.RenewMember(t.Context(), storage.Member{ID: "here", Name: "here"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	all := make([]*talker, n)
	for i := range all {
		all[i] = &talker{T: t, db: db, to: claybot.User("telegram", fmt.Sprint("C", i), "U1")}
	}
	return all
}

// TestMessageCost: a message of a conversation costs no more transactions, statements and
// round trips than docs/scaling.md says.
func TestMessageCost(t *testing.T) {
	const mostSynced, mostStatements, mostTrips = 3, 19, tripsPerMessage
	var c census
	// A clock that stands still: the member need not look again for due agents.
	p := newTalkers(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), tracer: &c, Clock: func() int64 { return 1_700_000_000_000 }}, 1)[0]
	p.message()
	p.message()
	c.take()
	p.message()
	statements, trips := c.take()
	if n := synced(statements); n > mostSynced || len(statements) > mostStatements || trips > mostTrips {
		t.Errorf("%d synced transactions, %d statements, %d round trips:\n%s", n, len(statements), trips, strings.Join(statements, "\n"))
	}
	o, err := p.db.OutgoingByID(t.Context(), "answer-run-C0-3")
	if err != nil || o.State != claybot.SendSent || o.Receipt != "3" || o.Attempts != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	checkFigures(t, p.db)
}

// TestPruneCost: the removal of old messages waits for the server a few times in all, not for
// each of them.
func TestPruneCost(t *testing.T) {
	const messages, mostTrips = 40, 80
	var c census
	p := newTalkers(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), tracer: &c}, 1)[0]
	for range messages {
		p.message()
	}
	c.take()
	p.noError(p.db.Prune(t.Context(), time.Now().Add(200*24*time.Hour), storagetest.Retention))
	statements, trips := c.take()
	if trips > mostTrips {
		t.Errorf("%d round trips and %d statements for %d messages", trips, len(statements), messages)
	}
	t.Logf("%d round trips, %d statements", trips, len(statements))
	if _, err := p.db.Run(t.Context(), "run-C0-1"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the run is not removed: %v", err)
	}
	checkFigures(t, p.db)
}

// Shares of the updates that change no index (heap-only tuples, HOT), after many messages
// of several chats in a cluster. The other tables have indexes of what a message changes:
// here is how often it does.
func TestHotUpdates(t *testing.T) {
	const chats, each = 10, 30
	url := schemaOf(t, postgrestest.Shared(t).Database(t))
	talkers := newTalkers(t, Config{URL: url}, chats)
	db, ctx := talkers[0].db, t.Context()
	// With another member, claims are released after each answer. A member learns of the
	// others when it renews itself, so that "here" comes last.
	other := openWith(t, Config{URL: url, NoListen: true})
	for _, m := range []struct {
		db *DB
		id string
	}{{other, "other"}, {db, "here"}} {
		if _, err := m.db.RenewMember(ctx, storage.Member{ID: m.id, Name: m.id}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for range each {
		for _, p := range talkers {
			p.message()
		}
	}
	type updates struct{ all, hot int64 }
	got := make(map[string]updates)
	conn := plainConn(t, url)
	defer func() {
		if t.Failed() {
			t.Logf("updates: %+v", got)
		}
	}()
	if err := db.Close(); err != nil { // a connection reports its statistics at the latest when it ends
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		rows, err := conn.Query(ctx, "SELECT relname, n_tup_upd, n_tup_hot_upd, n_tup_ins FROM pg_stat_user_tables WHERE schemaname = current_schema()")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		inserted := int64(0)
		for rows.Next() {
			var table string
			var u updates
			var n int64
			if err := rows.Scan(&table, &u.all, &u.hot, &n); err != nil {
				t.Fatal(err)
			}
			if got[table] = u; table == "messages" {
				inserted = n
			}
		}
		return inserted >= chats*each && got["outbox"].all >= chats*each && got["runs"].all >= chats*each && got["claims"].all >= chats*each
	})
	for table, most := range map[string]int64{"messages": 0, "agents": 2, "runs": 1, "outbox": 1, "records": 0, "events": 0} {
		if n := got[table].all; n > most*chats*each+2*chats { // an agent is created by three writes
			t.Errorf("%s: %d updates for %d messages, want at most %d each", table, n, chats*each, most)
		}
	}
	for table, u := range got {
		if u.all > 0 {
			t.Logf("%s: %d of %d updates are HOT", table, u.hot, u.all)
		}
	}
	if c := got["claims"]; c.hot*10 < c.all*9 {
		t.Errorf("claims: %d of %d updates are HOT, want nine of ten", c.hot, c.all)
	}
}

// TestIdleMember: a member that is alone finds an agent that one of its own commits made
// due, or that one that has left had released, without waiting for the next look.
func TestIdleMember(t *testing.T) {
	url, ctx := schemaOf(t, postgrestest.Shared(t).Database(t)), t.Context()
	var c census
	now := func() int64 { return 1_700_000_000_000 }
	db := newTalkers(t, Config{URL: url, tracer: &c, Clock: now}, 1)[0].db
	acquire := func() int {
		t.Helper()
		acquired, _, err := db.Acquire(ctx, "here", time.Hour, 1, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(acquired)
	}
	acquire()
	c.take()
	if n := acquire(); n != 0 {
		t.Errorf("acquired %d", n)
	}
	if statements, _ := c.take(); len(statements) > 0 {
		t.Errorf("asked again: %q", statements)
	}
	if _, err := db.Post(ctx, storage.Posting{To: agentAt(t, db, "C1"), Message: note("own")}); err != nil {
		t.Fatal(err)
	}
	if n := acquire(); n != 1 {
		t.Errorf("acquired %d after a message", n)
	}
	other := openWith(t, Config{URL: url, NoListen: true, Clock: now})
	if _, err := other.RenewMember(ctx, storage.Member{ID: "other", Name: "other"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	renew := func() {
		t.Helper()
		if _, err := db.RenewMember(ctx, storage.Member{ID: "here", Name: "here"}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	acquire()
	acquire()
	if _, err := other.Post(ctx, storage.Posting{To: agentAt(t, other, "C2"), Message: note("released")}); err != nil {
		t.Fatal(err)
	}
	if err := other.Leave(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	renew()
	if n := acquire(); n != 1 {
		t.Errorf("acquired %d after the other member left", n)
	}
}
