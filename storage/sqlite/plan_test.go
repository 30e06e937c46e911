package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
	"github.com/claybot/claybot/storage/storagetest"
)

// A listing is a query that a method of the store has run.
type listing struct {
	query string
	args  []any
}

// A recorder is a session that notes the queries of the store.
type recorder struct {
	*conn
	ran *[]listing
}

func (r recorder) Each(q string, f func(r row) error, args []any) error {
	*r.ran = append(*r.ran, listing{q, args})
	return r.conn.Each(q, f, args)
}

// watched is a store, but that it has a list of the queries it reads with.
func (db *DB) watched(ran *[]listing) *relational.Store {
	return relational.New(watcher{db, ran}, &dialect, db.log)
}

type watcher struct {
	*DB
	ran *[]listing
}

func (w watcher) Read(ctx context.Context, fn func(c *relational.Conn) error) error {
	return w.read(ctx, func(c *conn) error { return fn(relational.NewConn(recorder{c, w.ran}, &dialect, false)) })
}

func (w watcher) Report(ctx context.Context, fn func(c *relational.Conn) error) error {
	return w.report(ctx, func(c *conn) error { return fn(relational.NewConn(recorder{c, w.ran}, &dialect, false)) })
}

// Write lets the store see what is there, and changes nothing.
func (w watcher) Write(ctx context.Context, _ bool, fn func(c *relational.Conn) error) error {
	return w.read(ctx, func(c *conn) error {
		rc := relational.NewConn(recorder{c, w.ran}, &dialect, true)
		rc.Begin(nil)
		return fn(rc)
	})
}

func (r recorder) Exec(q string, args []any) (int64, error) {
	*r.ran = append(*r.ran, listing{q, args})
	return 0, nil
}

func (r recorder) Do(q string, args []any) (bool, error) {
	_, err := r.Exec(q, args)
	return false, err
}

// TestPrunePlans: what is old is found by an index in every table. Otherwise each hour would
// read all that is stored.
func TestPrunePlans(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "claybot.db"))
	var ran []listing
	if err := db.watched(&ran).Prune(t.Context(), time.Now(), storagetest.Retention); err != nil {
		t.Fatal(err)
	}
	if len(ran) < 12 {
		t.Fatalf("%d statements", len(ran))
	}
	for _, l := range ran {
		for _, step := range plans(t, db, l) {
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "INDEX") {
				t.Errorf("%s: %s", strings.Join(strings.Fields(l.query), " "), step)
			}
		}
	}
}

// plans returns how SQLite will run a query.
func plans(t *testing.T, db *DB, l listing) (steps []string) {
	t.Helper()
	err := db.read(t.Context(), func(c *conn) error {
		return c.each("EXPLAIN QUERY PLAN "+l.query, func(r row) error { steps = append(steps, r.Str(3)); return nil }, l.args...)
	})
	if err != nil {
		t.Fatalf("%s: %v", l.query, err)
	}
	return steps
}

// slow reports a plan that reads a whole table, or sorts.
func slow(steps []string) bool {
	for _, s := range steps {
		if strings.HasPrefix(s, "SCAN") && !strings.Contains(s, "VIRTUAL TABLE") || strings.Contains(s, "TEMP B-TREE") {
			return true
		}
	}
	return false
}

// A planner looks at the plans of what the store reads with.
type planner struct {
	t   *testing.T
	db  *DB
	ran []listing
}

// check runs do, which is to run n queries, none of them slow. It returns their
// plans.
func (p *planner) check(what string, n int, do func(s *relational.Store) error) string {
	p.t.Helper()
	p.ran = nil
	if err := do(p.db.watched(&p.ran)); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	if len(p.ran) != n {
		p.t.Errorf("%s: %d queries, want %d: %q", what, len(p.ran), n, p.ran)
	}
	var all []string
	for _, l := range p.ran {
		steps := plans(p.t, p.db, l)
		all = append(all, steps...)
		if strings.Contains(l.query, "one_unfinished_run") {
			continue // one row of each agent at most: few enough to sort
		}
		if len(steps) == 0 || slow(steps) {
			p.t.Errorf("%s: %q", what, steps)
		}
	}
	return fmt.Sprint(all)
}

// TestListPlans: whatever is filtered by, a page is read from an index in the
// order of the list.
func TestListPlans(t *testing.T) {
	p := &planner{t: t, db: openFresh(t)}
	ctx := t.Context()
	p.agents(ctx)
	p.runs(ctx)
	p.outgoing(ctx)
	for _, agent := range []claybot.AgentID{"", "a"} {
		p.check(fmt.Sprintf("open questions of %q", agent), 1, func(s *relational.Store) error { _, err := s.OpenQuestions(ctx, agent, 50); return err })
	}
	p.check("backlog", 1, func(s *relational.Store) error { _, err := s.Backlog(ctx, "web", 50); return err })
	p.check("latencies", 1, func(s *relational.Store) error { _, err := s.Latencies(ctx, "", ""); return err })
	for _, by := range [][]string{nil, {storage.ByDay}, {storage.ByDay, storage.ByModel}, {storage.ByDay, storage.ByModel, storage.ByType}} {
		steps := p.check(fmt.Sprintf("spent by %v", by), 1, func(s *relational.Store) error { _, err := s.Spent(ctx, storage.SpentQuery{By: by}); return err })
		if !strings.Contains(steps, "spent_days") {
			t.Errorf("spent by %v reads the rows of agents: %s", by, steps)
		}
	}
	if q := "SELECT * FROM runs ORDER BY ended"; !slow(plans(t, p.db, listing{query: q})) {
		t.Errorf("the check itself does not see that %q is slow", q)
	}
}

func (p *planner) agents(ctx context.Context) {
	p.t.Helper()
	p.check("agents of an owner", 1, func(s *relational.Store) error { _, err := s.OwnedAgents(ctx, "telegram/1"); return err })
	p.check("agents of a channel", 1, func(s *relational.Store) error { _, err := s.ChannelAgents(ctx, "telegram", "1"); return err })
	for _, kind := range []claybot.AgentType{"", claybot.AgentUser, claybot.AgentCron} {
		for _, owner := range []string{"", "telegram/1"} {
			for _, parent := range []claybot.AgentID{"", "p"} {
				for _, busy := range []bool{false, true} {
					q := storage.AgentQuery{Type: kind, Owner: owner, Parent: parent, Busy: busy}
					p.check(fmt.Sprintf("agents %+v", q), 1, func(s *relational.Store) error { _, err := s.AgentPage(ctx, q); return err })
				}
			}
		}
	}
}

func (p *planner) runs(ctx context.Context) {
	p.t.Helper()
	for _, agent := range []claybot.AgentID{"", "a"} {
		for state, n := range map[claybot.RunState]int{
			"":                   2, // and the ids that are reserved
			claybot.RunSucceeded: 1, claybot.RunFailed: 1, claybot.RunCanceled: 1, claybot.RunRunning: 1, claybot.RunAwaiting: 1, claybot.RunPending: 1,
		} {
			q := storage.RunQuery{Agent: agent, State: state, Before: "r"}
			p.check(fmt.Sprintf("runs %+v", q), n, func(s *relational.Store) error { _, err := s.RunPage(ctx, q); return err })
		}
	}
	change(p.t, p.db, "INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES ('r', 'a', 'SUCCEEDED', 1, 1, 1)")
	change(p.t, p.db, "INSERT INTO events VALUES ('r', 1, 1, 'RunFinished', 2, NULL)")
	p.check("events", 1, func(s *relational.Store) error {
		n := 0
		for _, err := range s.Events(ctx, "r", 0) {
			if n++; err != nil {
				return err
			}
		}
		if n != 1 {
			p.t.Errorf("%d events", n)
		}
		return nil
	})
}

func (p *planner) outgoing(ctx context.Context) {
	p.t.Helper()
	for _, dest := range []string{"", "d"} {
		for _, state := range []claybot.SendState{"", claybot.SendWaiting, claybot.SendAttempted, claybot.SendSent, claybot.SendAmbiguous, claybot.SendFailed} {
			for _, open := range []bool{false, true} {
				if ended := state == claybot.SendSent || state == claybot.SendFailed; ended && open {
					continue // there are none, which needs no query
				}
				q := storage.OutgoingQuery{Dest: dest, State: state, Open: open}
				p.check(fmt.Sprintf("outgoing %+v", q), 1, func(s *relational.Store) error { _, err := s.OutgoingPage(ctx, q); return err })
			}
		}
	}
}
