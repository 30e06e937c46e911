package agentsystem_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/tools"
)

// holdEnds makes each commit that ends a run wait for the lock that a test has.
const holdEnds = `CREATE FUNCTION hold_end() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN PERFORM pg_advisory_xact_lock_shared(815); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER hold_end AFTER UPDATE ON runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
	WHEN (NEW.state IS DISTINCT FROM OLD.state AND NEW.ended IS NOT NULL) EXECUTE FUNCTION hold_end()`

// A cutter is the network between a node and the server that ends in the middle of a
// commit. It works outside of the bubble, whose time stands still meanwhile.
type cutter struct {
	*testing.T
	proxy *postgrestest.Proxy
	url   string
	conn  *pgx.Conn
	cut   sync.WaitGroup
}

// hold makes the next end of a run wait.
func (c *cutter) hold() {
	if _, err := c.conn.Exec(context.Background(), "SELECT pg_advisory_lock(815)"); err != nil {
		c.Error(err)
	}
}

// waits waits until the end of a run stands in its commit, and so many others behind
// it, for what it has locked.
func (c *cutter) waits(behind int) {
	for {
		var ends, all int
		err := c.conn.QueryRow(context.Background(), `SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 815 AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
			(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&ends, &all)
		if err != nil {
			c.Error(err)
			return
		}
		if ends == 1 && all > behind {
			return
		}
	}
}

// free lets all ends commit.
func (c *cutter) free() {
	if _, err := c.conn.Exec(context.Background(), "SELECT pg_advisory_unlock_all()"); err != nil {
		c.Error(err)
	}
}

// end ends the transaction that waits.
func (c *cutter) end() {
	if _, err := c.conn.Exec(context.Background(), `SELECT pg_terminate_backend(pid, 60000) FROM pg_locks
		WHERE locktype = 'advisory' AND objid = 815 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); err != nil {
		c.Error(err)
	}
}

// A herald hears when cron tasks end.
type herald struct {
	*line
	mu    sync.Mutex
	ended []claybot.Run
}

func (h *herald) Ended(_ claybot.Descriptor, r claybot.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = append(h.ended, r)
}

// TestAnswerOfAnEndIsLost: a node whose connection breaks in the commit that ends a
// run finds out whether it has ended, and does what follows an end: it stops subagents
// that no run waits for any more, and notifies the creator of the run, once.
func TestAnswerOfAnEndIsLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails bool
		away  time.Duration // until the server can be reached again
		// meddle is what happens while the commit waits and the connection is gone.
		meddle func(c *cutter)
	}{
		{"a failure is committed", true, 500 * time.Millisecond, (*cutter).free},
		{"a success is committed", false, 500 * time.Millisecond, (*cutter).free},
		{"the commit is under way still", true, 500 * time.Millisecond, func(c *cutter) { c.waits(1); c.free() }},
		{"the commit fails", true, 500 * time.Millisecond, func(c *cutter) { c.end(); c.free() }},
		{"the server is away for long", true, 2 * time.Minute, (*cutter).free},
	} {
		t.Run(tt.name, func(t *testing.T) { endLosesAnswer(t, tt.fails, tt.away, tt.meddle) })
	}
}

func endLosesAnswer(t *testing.T, fails bool, away time.Duration, meddle func(c *cutter)) {
	server := postgrestest.Shared(t)
	database := server.Database(t)
	net := &cutter{T: t, proxy: server.Proxy(t), url: schemaIn(t, database)}
	var err error
	if net.conn, err = pgx.Connect(t.Context(), net.url); err != nil {
		t.Fatal(err)
	}
	defer net.conn.Close(context.WithoutCancel(t.Context()))
	begin := make(chan struct{}) // of no bubble
	net.cut.Go(func() {
		if _, running := <-begin; !running {
			return
		}
		net.waits(0)
		net.proxy.Cut() // the driver asks to cancel what it does not hear of any more: this is lost, too
		meddle(net)
	})
	defer net.cut.Wait()
	defer close(begin)

	synctest.Test(t, func(t *testing.T) {
		c := &clusterRig{T: t, chat: new(chat), mind: newMind(t), url: net.url}
		h := new(herald)
		c.line = func(_ *member, l *line) connectors.Connector {
			l.name, h.line = "cron", l
			return h
		}
		c.index = c.open()
		var err error
		if c.agents, err = files.Open(files.Config{Dir: t.TempDir(), Index: c.index}); err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if _, err := net.conn.Exec(context.Background(), holdEnds, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		node := c.startBehind(net.proxy)
		asked := make(chan struct{})
		c.mind.before = func(ctx context.Context, r llm.Request) error { return worksOn(ctx, r, asked, fails) }
		f := claybot.Firing{Task: "abc", Instant: "t1", Quiet: true}
		err = node.system.Post(t.Context(), task, claybot.AgentMessage{
			ID: f.MessageID(), Type: claybot.MessageSystem, Kind: claybot.KindCron, Text: "count", Route: &claybot.Route{Connector: "chat", ChannelID: "dm-ann"}, Firing: &f,
		})
		if err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		run := c.runOf(f.MessageID())
		c.helper(run, "dig")
		after(5 * time.Second)
		if r := c.runOf("task/dig"); r.State != claybot.RunRunning {
			t.Fatalf("the helper is %s", r.State)
		}

		net.hold()
		begin <- struct{}{}
		close(asked)
		after(away)
		net.proxy.Restore()
		after(time.Minute)
		net.cut.Wait()
		c.endedOnce(run.ID, h, fails)
	})
}

// startBehind adds a node that reaches the store by way of a proxy, with one
// connection besides those of its renewals.
func (c *clusterRig) startBehind(p *postgrestest.Proxy) *member {
	c.Helper()
	db, err := postgres.Open(context.Background(), postgres.Config{URL: p.URL(c.url), NoListen: true, Clock: bubbleTime, Conns: 1})
	if err != nil {
		c.Fatal(err)
	}
	m := &member{c: c, name: "behind", fuse: newFuse(-1), db: db, ended: make(chan error, 1)}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() && os.Getenv("RIG_LOG") != "" {
		log = slog.New(slog.NewTextHandler(c.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	m.members = cluster.New(cluster.Config{Store: db, Claims: db, TTL: nodeTTL, Log: log, Self: storage.Member{Name: m.name, Version: "test"}})
	m.system = agentsystem.New(agentsystem.Config{
		Stores: agentsystem.Stores{
			Agents: c.agents, Index: db, Inbox: db, Runs: db, Outbox: db, Access: db, Counts: db,
			Later: db, Texts: db, Asked: db, Parking: db,
		},
		Log: log, Version: "test", Hub: runs.NewHub(), Members: m.members,
		PeopleSettings: agentsystem.PeopleSettings{Admission: func() people.Access { return people.Access{Mode: people.AccessOpen} }},
		Settings: agentsystem.Settings{
			Profile: func(claybot.Descriptor) profiles.Profile { return profiles.Profile{} },
		},
	})
	set := (&bench{acted: make(map[string]int), fuse: func() *fuse { return m.fuse }}).set(c.T)
	m.system.Handle("react", &react.Loop{
		Model: func(claybot.Agent) llm.Model { return c.mind },
		Tools: func(claybot.Agent) *tools.Set { return set },
	})
	m.line = &line{name: "chat", chat: c.chat, fuse: m.fuse}
	c.nodes = append(c.nodes, m)
	m.run(c.line(m, m.line))
	synctest.Wait()
	return m
}

// worksOn is what the model does: a helper digs for a day, and who counts ends when he
// is asked to.
func worksOn(ctx context.Context, r llm.Request, asked <-chan struct{}, fails bool) error {
	text := r.Messages[len(r.Messages)-1].Content
	switch {
	case strings.Contains(text, "dig"):
		return rest(ctx, 24*time.Hour)
	case strings.Contains(text, "count"):
		<-asked
		if fails {
			return &llm.Error{Class: llm.Permanent, Status: 400, Text: "refused for the test"}
		}
	}
	return nil
}

// helper gives a run a helper that it waits for, as a tool does.
func (c *clusterRig) helper(run claybot.Run, uid string) {
	c.Helper()
	a, err := c.agents.NewAgent(c.Context(), claybot.Descriptor{Type: claybot.AgentSubagent, UID: uid, Parent: run.Agent, Root: run.Agent, Depth: 1}, claybot.Background{})
	if err != nil {
		c.Fatal(err)
	}
	_, err = c.index.Post(c.Context(), storage.Posting{To: a.ID, Message: claybot.AgentMessage{
		ID: claybot.MessageID("task/" + uid), Type: claybot.MessageSystem, Kind: claybot.KindTask, Text: uid,
		Awaited: &claybot.Awaited{Agent: run.Agent, Run: run.ID, ID: "answer/" + claybot.MessageID(uid)},
	}})
	if err != nil {
		c.Fatal(err)
	}
}

// endedOnce requires what follows the end of a run, once.
func (c *clusterRig) endedOnce(id claybot.RunID, h *herald, failed bool) {
	c.Helper()
	want, helper := claybot.RunSucceeded, claybot.RunRunning
	if failed {
		want, helper = claybot.RunFailed, claybot.RunCanceled
	}
	run, err := c.index.Run(c.Context(), id)
	if err != nil || run.State != want {
		c.Fatalf("the run: %+v, %v", run, err)
	}
	h.mu.Lock()
	var told []string
	for _, r := range h.ended {
		told = append(told, fmt.Sprint(r.ID, " ", r.State))
	}
	h.mu.Unlock()
	if !slices.Equal(told, []string{fmt.Sprint(id, " ", want)}) {
		c.Errorf("the creator of the run is notified of %q, want that %s is %s", told, id, want)
	}
	if r := c.runOf("task/dig"); r.State != helper || failed && r.Cancel != "parent" {
		c.Errorf("the helper is %s, canceled by %q, want %s", r.State, r.Cancel, helper)
	}
	ends := 0
	for e, err := range c.index.Events(c.Context(), id, 0) {
		if err != nil {
			c.Fatal(err)
		}
		if e.Type.Ends() {
			ends++
		}
	}
	if ends != 1 {
		c.Errorf("the run has %d ends", ends)
	}
}
