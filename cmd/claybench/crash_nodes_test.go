package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// provableDatabase is an empty database of nodes a and b, or skips the test where
// there is no PostgreSQL.
func provableDatabase(t *testing.T) *database {
	t.Helper()
	s := postgrestest.Shared(t)
	db := &database{s, s.Database(t)}
	const known = "SELECT 1 FROM pg_roles WHERE rolname = 'node_a'" // to the server, by an earlier test
	rows, err := db.query(t.Context(), known)
	if err == nil && len(rows) == 0 {
		err = db.admit(t.Context(), []string{"a", "b"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// act runs statements as a node.
func act(t *testing.T, db *database, node, sql string) {
	t.Helper()
	if _, err := db.query(t.Context(), "SET SESSION AUTHORIZATION "+nodeRole(node)+"; SET ROLE "+postgrestest.User+"; "+sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// proofSchema is as much of the tables as the proof looks at.
const proofSchema = `
	CREATE TABLE agents (id text PRIMARY KEY, node text, token bigint NOT NULL DEFAULT 0);
	CREATE TABLE runs (id text PRIMARY KEY, agent text);
	CREATE TABLE events (run text, seq bigint, type text, data text, PRIMARY KEY (run, seq));
	CREATE TABLE records (agent text, n bigint);
	CREATE TABLE claims (name text PRIMARY KEY, node text, token bigint);
	CREATE TABLE outbox (id text PRIMARY KEY, dest text, state text);`

// The proof of stale writes sees those that are there, and no others.
func TestProof(t *testing.T) {
	db := provableDatabase(t)
	if _, err := db.query(t.Context(), proofSchema); err != nil {
		t.Fatal(err)
	}
	if err := watchWrites(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	const (
		hold    = "UPDATE agents SET node = '%n', token = token + 1 WHERE id = 'x';"
		release = "UPDATE agents SET node = NULL WHERE id = 'x';"
		next    = "INSERT INTO events SELECT 'r', coalesce(max(seq), 0) + 1, 'NodeStarted', NULL FROM events WHERE run = 'r';"
		claim   = "INSERT INTO claims VALUES ('out/d', '%n', 1) ON CONFLICT (name) DO UPDATE SET node = excluded.node, token = claims.token + 1;"
		record  = "INSERT INTO records VALUES ('x', 1);"
	)
	type step struct{ node, sql string }
	for _, tt := range []struct {
		name  string
		steps []step
		want  string // the doubts that are true
	}{
		{"in order", []step{{"a", hold + next + record}, {"a", next + release}, {"b", hold + next + record + release}}, ""},
		{"released before its last event", []step{{"a", "BEGIN;" + hold + "COMMIT; BEGIN;" + release + next + "COMMIT;"}}, ""},
		{"a message that never ran", []step{{"a", hold}, {"b", "INSERT INTO runs VALUES ('s', 'x'); INSERT INTO events VALUES ('s', 1, 'RunCanceled', NULL);"}}, ""},
		{"an event of who lost it", []step{{"a", hold + next}, {"b", hold}, {"a", next}}, "writes by others than the holder: 1"},
		{"a record of who lost it", []step{{"a", hold + next}, {"b", hold}, {"a", record}}, "writes by others than the holder: 1"},
		{"an event without a holder", []step{{"a", hold + release}, {"a", next}}, "writes without a holder: 1"},
		{"a gap", []step{{"a", hold + next + "INSERT INTO events VALUES ('r', 3, 'NodeStarted', NULL);"}}, "events with gaps: 1"},
		{"sent in order", []step{{"a", claim + "UPDATE outbox SET state = 'attempted'; UPDATE outbox SET state = 'sent';"}}, ""},
		{"interrupted by the next one", []step{{"a", claim + "UPDATE outbox SET state = 'attempted';"}, {"b", claim + "UPDATE outbox SET state = 'ambiguous';"}}, ""},
		{"sent by who lost the claim", []step{{"a", claim + "UPDATE outbox SET state = 'attempted';"}, {"b", claim}, {"a", "UPDATE outbox SET state = 'sent';"}}, "writes by others than the holder: 1"},
		{"sent without a claim", []step{{"a", "UPDATE outbox SET state = 'attempted';"}}, "writes without a holder: 1"},
		{"two processes with one id", []step{{"a", strings.ReplaceAll(hold, "%n", "same")}, {"b", strings.ReplaceAll(hold, "%n", "same")}}, "holders with two names: 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := db.query(t.Context(), "TRUNCATE agents, runs, events, records, claims, outbox, rig.holds, rig.writes; INSERT INTO outbox VALUES ('o', 'd', 'waiting'); INSERT INTO agents VALUES ('x'); INSERT INTO runs VALUES ('r', 'x')")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range tt.steps {
				for _, q := range strings.SplitAfter(s.sql, ";") { // each in a transaction of its own
					if strings.HasPrefix(s.sql, "BEGIN;") {
						q = s.sql
					}
					act(t, db, s.node, strings.ReplaceAll(q, "%n", s.node+"-1"))
					if q == s.sql {
						break
					}
				}
			}
			found, stories, err := ask(t.Context(), db, doubts("public"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(stories, "; "); got != tt.want || (found > 0) != (tt.want != "") {
				t.Errorf("got %d, %q, want %q", found, got, tt.want)
			}
		})
	}
}

// The proof sees a write that checked its token before the next holder came and was
// committed after it.
func TestProofOfCommits(t *testing.T) {
	db := provableDatabase(t)
	if _, err := db.query(t.Context(), proofSchema+"INSERT INTO agents VALUES ('x'); INSERT INTO runs VALUES ('r', 'x')"); err != nil {
		t.Fatal(err)
	}
	if err := watchWrites(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	act(t, db, "a", "UPDATE agents SET node = 'a-1', token = token + 1")
	// The write waits for an advisory lock before its commit, as a process would
	// that is frozen there.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	act(t, db, "b", "CREATE TABLE gate (open boolean)")
	written := make(chan error, 1)
	go func() {
		_, err := db.query(ctx, "SET SESSION AUTHORIZATION node_a; SET ROLE "+postgrestest.User+`; BEGIN; INSERT INTO events VALUES ('r', 1, 'RunStarted', NULL);
			DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$; COMMIT`)
		written <- err
	}()
	for { // the insert was done, and sees the first holder
		n, err := db.count(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			break
		}
	}
	act(t, db, "b", "UPDATE agents SET node = 'b-1', token = token + 1")
	act(t, db, "b", "INSERT INTO gate VALUES (true)")
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if _, stories, err := ask(ctx, db, doubts("public")); err != nil || strings.Join(stories, "; ") != "writes after the next holder: 1" {
		t.Errorf("got %q, %v", stories, err)
	}
}

// A message that two runs had, or one run twice, is found.
func TestTwice(t *testing.T) {
	db := provableDatabase(t)
	if _, err := db.query(t.Context(), "CREATE TABLE events (run text, seq bigint, type text, data text)"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, rows string
		want       int64
	}{
		{"each once", `('r', 1, 'RunStarted', '{"messages":["m1","m2"]}'), ('r', 2, 'RunResumed', '{"attempt":2,"messages":null}'), ('r', 3, 'NodeStarted', NULL)`, 0},
		{"two runs", `('r', 1, 'RunStarted', '{"messages":["m1"]}'), ('s', 1, 'RunStarted', '{"messages":["m1"]}')`, 1},
		{"joined again", `('r', 1, 'RunStarted', '{"messages":["m1"]}'), ('r', 2, 'MessagesInjected', '{"messages":["m1"]}')`, 1},
		{"named elsewhere", `('r', 1, 'RunStarted', '{"messages":["m1"]}'), ('r', 2, 'ToolCalled', '{"messages":["m1"]}')`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := db.query(t.Context(), "TRUNCATE events; INSERT INTO events VALUES "+tt.rows); err != nil {
				t.Fatal(err)
			}
			if got, _, err := ask(t.Context(), db, []doubt{twice("public")}); err != nil || got != tt.want {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
		})
	}
}

// A takeover is counted for agents that had a run with the node that was struck.
func TestTakeover(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return zero.Add(d) }
	hold := func(at time.Duration, who, node string) trace { return trace{at: after(at), who: who, node: node} }
	event := func(at time.Duration, e claybot.EventType) trace { return trace{at: after(at), event: e} }
	const s = time.Second
	for _, tt := range []struct {
		name   string
		before []trace
		after  []trace
		want   time.Duration
		ok     bool
	}{
		{"at work", []trace{hold(0, "node_a", "a-1"), event(1, "RunStarted")}, []trace{hold(3*s, "node_b", "b-1"), event(4*s, "RunResumed")}, 4 * s, true},
		{"of another node", []trace{hold(0, "node_b", "b-1"), event(1, "RunStarted")}, []trace{event(4*s, "RunResumed")}, 0, false},
		{"let go", []trace{hold(0, "node_a", "a-1"), event(1, "RunStarted"), hold(2, "node_a", "")}, []trace{event(4*s, "RunResumed")}, 0, false},
		{"its run had ended", []trace{hold(0, "node_a", "a-1"), event(1, "RunFinished")}, []trace{event(4*s, "RunStarted")}, 0, false},
		{"its run waits", []trace{hold(0, "node_a", "a-1"), event(1, "AwaitingInput")}, []trace{event(4*s, "RunResumed")}, 0, false},
		{"never went on", []trace{hold(0, "node_a", "a-1"), event(1, "RunStarted")}, nil, 0, false},
		{"nothing known", nil, []trace{event(4*s, "RunStarted")}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := takeover(tt.before, tt.after, "node_a", zero)
			if got != tt.want || ok != tt.ok {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
}
