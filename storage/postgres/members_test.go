package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A crew is several open stores on one database, as several nodes have it.
type crew struct {
	*testing.T
	dbs   []*DB
	hints []chan storage.Notification
}

func newCrew(t *testing.T, url string, n int) *crew {
	t.Helper()
	c := &crew{T: t}
	for i := range n {
		heard := make(chan storage.Notification, 1000)
		db := openWith(t, Config{URL: url, notifyTime: time.Minute, OnNotification: func(h storage.Notification) {
			select {
			case heard <- h:
			default: // a hint may be lost
			}
		}})
		c.dbs, c.hints = append(c.dbs, db), append(c.hints, heard)
		if _, err := db.RenewMember(t.Context(), storage.Member{ID: c.node(i), Name: c.node(i)}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for i, db := range c.dbs { // now each knows of all
		if _, err := db.RenewMember(t.Context(), storage.Member{ID: c.node(i), Name: c.node(i)}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *crew) node(i int) string { return fmt.Sprint("node", i) }

// hears waits for a hint of which want is true.
func (c *crew) hears(i int, what string, want func(h storage.Notification) bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			c.Fatalf("node %d does not hear of %s", i, what)
		case h := <-c.hints[i]:
			if h.Member == c.node(i) {
				c.Errorf("node %d hears itself: %+v", i, h)
			}
			if want(h) {
				return
			}
		}
	}
}

func agentAt(t *testing.T, db *DB, channel string) claybot.AgentID {
	t.Helper()
	a, err := db.Agents.AgentFor(t.Context(), claybot.User("telegram", channel, "U1"))
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func note(id string) claybot.AgentMessage {
	return claybot.AgentMessage{ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: "text of " + id, From: claybot.Sender{UserID: "U1"}}
}

// acquireOne acquires the one agent that is due, as soon as a node's estimate of the server's
// clock says so: each connection that is made corrects it, to and fro.
func acquireOne(t *testing.T, db *DB, node string) storage.Acquired {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		acquired, _, err := db.Acquire(t.Context(), node, time.Hour, 1, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(acquired) == 1 {
			return acquired[0]
		}
	}
	t.Fatalf("nothing is due for %s", node)
	return storage.Acquired{}
}

func TestHints(t *testing.T) {
	c := newCrew(t, postgrestest.Shared(t).Database(t), 2)
	ctx := t.Context()
	for i := range c.dbs { // a notification before there is a listener is lost
		c.hears(i, "a beginning", func(h storage.Notification) bool { return h.Member == "" })
	}
	id := agentAt(t, c.dbs[0], "C1")
	if _, err := c.dbs[0].Post(ctx, storage.Posting{To: id, Message: note("m1")}); err != nil {
		t.Fatal(err)
	}
	c.hears(1, "an agent that is due", func(h storage.Notification) bool { return h.Due })
	acquired := acquireOne(t, c.dbs[0], c.node(0))
	run, err := c.dbs[0].Begin(ctx, acquired.Lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{})
	if err != nil {
		t.Fatal(err)
	}
	c.hears(1, "a run", func(h storage.Notification) bool { return slices.Contains(h.Runs, run.ID) })
	if _, err := c.dbs[1].Post(ctx, storage.Posting{To: id, Message: claybot.AgentMessage{ID: "stop", Type: claybot.MessageCancel}}); err != nil {
		t.Fatal(err)
	}
	c.hears(0, "a stop", func(h storage.Notification) bool {
		return len(h.Cancel) == 1 && h.Cancel[0] == storage.CancelRequest{Agent: id, Run: "r1", By: "user"}
	})
	out := claybot.Outgoing{ID: "o1", Kind: claybot.OutgoingNotice, Route: claybot.Route{Connector: "telegram", ChannelID: "C1"}, Text: "x", Part: 1, Parts: 1}
	if _, err := c.dbs[0].Enqueue(ctx, out); err != nil {
		t.Fatal(err)
	}
	c.hears(1, "something to send", func(h storage.Notification) bool { return slices.Contains(h.Dests, out.Route.Dest()) })
	// Many and long ones go in pieces, growing text among them.
	var runs []claybot.RunID
	for i := range 500 {
		runs = append(runs, claybot.RunID(fmt.Sprintf("%04d%s", i, strings.Repeat("x", 50))))
	}
	c.dbs[0].Notify(storage.Notification{Runs: runs, Grown: []storage.Growth{{Run: "r1", Step: 1, Text: strings.Repeat("é", 2000)}, {Run: "r1", Text: strings.Repeat("x", 9000)}}})
	left := len(runs)
	grown := 0
	c.hears(1, "all runs", func(h storage.Notification) bool {
		left -= len(h.Runs)
		grown += len(h.Grown)
		return left <= 0 && grown == 1
	})
}

// TestNodesShare has three nodes work on the messages of many agents: each runs once,
// in order.
func TestNodesShare(t *testing.T) {
	const agents, each = 20, 8
	c := newCrew(t, postgrestest.Shared(t).Database(t), 3)
	ctx := t.Context()
	var mu sync.Mutex
	runs := make(map[claybot.MessageID]int)
	last := make(map[claybot.AgentID]int)
	var posting, working sync.WaitGroup
	done, stop := context.WithCancel(ctx)
	defer stop()
	for i := range agents {
		id := agentAt(t, c.dbs[i%3], fmt.Sprint("C", i))
		posting.Go(func() {
			for k := range each {
				m := note(fmt.Sprintf("%s-%d", id, k))
				for _, db := range []*DB{c.dbs[(i+k)%3], c.dbs[(i+k+1)%3]} { // twice, as platforms do
					if _, err := db.Post(ctx, storage.Posting{To: id, Message: m}); err != nil {
						t.Errorf("post: %v", err)
					}
				}
			}
		})
	}
	for n, db := range c.dbs {
		for range 2 {
			working.Go(func() {
				for done.Err() == nil {
					acquired, _, err := db.Acquire(ctx, c.node(n), time.Minute, 4, 1)
					if err != nil {
						t.Errorf("acquire: %v", err)
						return
					}
					for _, h := range acquired {
						m := h.Waiting[0].ID
						run, err := db.Begin(ctx, h.Lease, claybot.RunID("run-"+m), []claybot.MessageID{m}, storage.Beginning{})
						if err != nil {
							t.Errorf("begin: %v", err)
							stop() // not all can run any more
							continue
						}
						mu.Lock()
						runs[m]++
						var k int
						if _, err := fmt.Sscanf(string(m)[len(h.Lease.Agent)+1:], "%d", &k); err != nil || k != last[h.Lease.Agent] {
							t.Errorf("message %s ran when number %d was next", m, last[h.Lease.Agent])
						}
						last[h.Lease.Agent] = k + 1
						mu.Unlock()
						_, err = db.Finish(ctx, h.Lease, run.ID, storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}})
						if err != nil {
							t.Errorf("finish: %v", err)
						}
					}
					mu.Lock()
					all := len(runs)
					mu.Unlock()
					if all == agents*each {
						stop()
					}
				}
			})
		}
	}
	posting.Wait()
	working.Wait()
	for m, n := range runs {
		if n != 1 {
			t.Errorf("message %s ran %d times", m, n)
		}
	}
	if len(runs) != agents*each {
		t.Errorf("%d messages ran, want %d", len(runs), agents*each)
	}
	checkFigures(t, c.dbs[0])
}

// TestCutConnections ends connections and restarts the server under writers: what
// was confirmed is there, in order, once.
func TestCutConnections(t *testing.T) {
	server := postgrestest.New(t, postgrestest.Config{})
	url := server.Database(t)
	db := openWith(t, Config{URL: url})
	l := newLoad(t, agentAt(t, db, "C1"))
	l.start(db, 4)
	for i := range 6 {
		l.goesOn()
		var err error
		switch i {
		case 3:
			err = server.Restart(t.Context(), postgrestest.Immediate)
		case 5:
			if err = server.Kill(t.Context()); err == nil {
				err = server.Start(t.Context())
			}
		default:
			_, err = server.Terminate(t.Context(), "application_name = 'claybot'")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l.end(db)
}

// TestOpenTogether has processes make the schema at the same time.
func TestOpenTogether(t *testing.T) {
	url := postgrestest.Shared(t).Database(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			db, err := Open(t.Context(), Config{URL: url, NoListen: true})
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestSchemaVersions: a newer schema is refused, unless it says that this version can
// work with it.
func TestSchemaVersions(t *testing.T) {
	url := postgrestest.Shared(t).Database(t)
	db := openWith(t, Config{URL: url, NoListen: true})
	set := func(oldest int) {
		t.Helper()
		_, err := db.pool.Exec(t.Context(), "INSERT INTO schema_versions (version, oldest) VALUES ($1, $2) ON CONFLICT (version) DO UPDATE SET oldest = $2", len(migrations)+1, oldest)
		if err != nil {
			t.Fatal(err)
		}
	}
	set(len(migrations))
	openWith(t, Config{URL: url, NoListen: true})
	set(len(migrations) + 1)
	_, err := Open(t.Context(), Config{URL: url, NoListen: true})
	var setup *SetupError
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "newer than this claybot") {
		t.Errorf("got %v", err)
	}
}

// TestPooler works without anything that lives for a session.
func TestPooler(t *testing.T) {
	db := openWith(t, Config{URL: postgrestest.Shared(t).Database(t), Pooler: true})
	id := agentAt(t, db, "C1")
	if _, err := db.Post(t.Context(), storage.Posting{To: id, Message: note("m1")}); err != nil {
		t.Fatal(err)
	}
	acquired := acquireOne(t, db, "n")
	run, err := db.Begin(t.Context(), acquired.Lease, "r", []claybot.MessageID{"m1"}, storage.Beginning{Engine: "react"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Finish(t.Context(), acquired.Lease, run.ID, storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}}); err != nil {
		t.Fatal(err)
	}
	checkFigures(t, db)
}

// TestServerClockSetBack: after the clock of the server was set back, what waited is due
// at once, and leases and memberships of members that are gone end within their time.
func TestServerClockSetBack(t *testing.T) {
	const ttl = 10 * time.Second
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	db, ctx := openWith(t, Config{URL: postgrestest.Shared(t).Database(t), NoListen: true, Clock: now.Load}), t.Context()
	if _, err := db.RenewMember(ctx, storage.Member{ID: "gone", Name: "gone"}, ttl); err != nil {
		t.Fatal(err)
	}
	post := func(channel string) claybot.AgentID {
		id := agentAt(t, db, channel)
		if _, err := db.Post(ctx, storage.Posting{To: id, Message: note(channel)}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	held := func(node string) (ids []claybot.AgentID) {
		list, _, err := db.Acquire(ctx, node, ttl, 10, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			ids = append(ids, h.Lease.Agent)
		}
		return ids
	}
	leased := post("C1")
	if got := held("gone"); len(got) != 1 {
		t.Fatalf("%v are due, want one agent", got)
	}
	waiting := post("C2")
	now.Add(-time.Hour.Milliseconds())
	if got := held("here"); len(got) != 1 || got[0] != waiting {
		t.Errorf("after the clock was set back %v are due, want %s", got, waiting)
	}
	now.Add(2 * ttl.Milliseconds())
	if got := held("here"); !slices.Contains(got, leased) {
		t.Errorf("after its lease %v are due, want %s", got, leased)
	}
	alive, err := db.RenewMember(ctx, storage.Member{ID: "here", Name: "here"}, ttl)
	if err != nil || len(alive) != 1 || alive[0].ID != "here" {
		t.Errorf("%+v are members, %v", alive, err)
	}
}
