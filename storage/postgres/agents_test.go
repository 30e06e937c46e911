package postgres

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestAgents(t *testing.T) {
	migrated := newMigrated(t)
	storagetest.TestAgents(t, func(t *testing.T) storagetest.AgentsUnderTest {
		cfg := Config{URL: migrated.take(t), NoListen: true}
		db := openWith(t, cfg)
		return storagetest.AgentsUnderTest{
			Agents: db.Agents,
			Lease:  func(id claybot.AgentID) storage.Lease { return leaseOf(t, db, id) },
			Release: func(l storage.Lease) {
				if _, err := db.pool.Exec(t.Context(), "UPDATE agents SET node = NULL WHERE id = $1", string(l.Agent)); err != nil {
					t.Error(err)
				}
			},
			Whole: func(id claybot.AgentID) []claybot.RecordType {
				rows, err := db.pool.Query(t.Context(), "SELECT CAST(body AS JSONB) ->> 'type' FROM records WHERE agent = $1 ORDER BY n", string(id))
				if err != nil {
					t.Fatal(err)
				}
				all, err := pgx.CollectRows(rows, pgx.RowTo[claybot.RecordType])
				if err != nil {
					t.Error(err)
				}
				return all
			},
			Reopen: func() storagetest.Agents {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				db = openWith(t, cfg)
				return db.Agents
			},
		}
	})
}

// leaseOf gives an agent to a node, as Acquire does when it is due.
func leaseOf(t *testing.T, db *DB, id claybot.AgentID) storage.Lease {
	t.Helper()
	l := storage.Lease{Agent: id, Node: "node"}
	err := db.pool.QueryRow(t.Context(), "UPDATE agents SET node = 'node', token = token + 1 WHERE id = $1 RETURNING token", string(id)).Scan(&l.Token)
	if err != nil && err != pgx.ErrNoRows { //nolint:errorlint // pgx returns it as it is
		t.Fatal(err)
	}
	return l
}

// TestHistoryMoved: an append whose answer got lost has happened. What was to be saved
// with it is not saved again, and the next append says so.
func TestHistoryMoved(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	ctx := t.Context()
	id := agentAt(t, db, "C1")
	l := leaseOf(t, db, id)
	record := func(text string) claybot.Record { return claybot.Record{Type: claybot.RecordUser, At: 1, Text: text} }
	unaware, err := db.Agents.OpenHistory(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := unaware.Buffer(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	aware, err := db.Agents.OpenHistory(ctx, l) // stands for the append whose answer is lost
	if err != nil {
		t.Fatal(err)
	}
	if err := aware.Append(ctx, record("one"), record("two")); err != nil {
		t.Fatal(err)
	}
	if err := unaware.Append(ctx, record("two")); err == nil {
		t.Error("the append was made twice")
	}
	for _, h := range []storage.History{unaware, aware} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	records, err := db.Agents.Records(ctx, id)
	if err != nil || len(records) != 2 || records[0].Text != "one" || records[1].Text != "two" {
		t.Errorf("got %+v, %v", records, err)
	}
}

// TestHistoryGoesOn: a process that had a history open a moment ago reads what is new, also
// from other members, and reads all again if the newest record that it knows has changed.
func TestHistoryGoesOn(t *testing.T) {
	address := schemaOf(t, postgrestest.Shared(t).Database(t))
	db, other := openWith(t, Config{URL: address, NoListen: true}), openWith(t, Config{URL: address, NoListen: true})
	ctx := t.Context()
	id := agentAt(t, db, "C1")
	change := func(q string) {
		t.Helper()
		if _, err := db.pool.Exec(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name   string
		by     *DB
		before string // what happens in the database first
		texts  string // that are found
		add    []string
	}{
		{"the first time", db, "", "", []string{"one", "two", "three"}},
		{"from memory", db, "UPDATE records SET body = 'damaged' WHERE n = 2", "one two three", nil},
		{"by another member", other, "", "two three", []string{"four"}},
		{"with what another member added", db, "", "one two three four", []string{"five"}},
		{"the newest record is gone", db, "DELETE FROM records WHERE n = 6", "two three four", nil},
		{"the newest record is another one", db, "UPDATE records SET crc = crc + 1 WHERE n = 5", "two three", nil},
	} {
		if step.before != "" {
			change(step.before)
		}
		h, err := step.by.Agents.OpenHistory(ctx, leaseOf(t, step.by, id))
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var texts []string
		for _, r := range h.Records() {
			texts = append(texts, r.Text)
		}
		if got := strings.Join(texts, " "); got != step.texts {
			t.Errorf("%s: found %q, want %q", step.name, got, step.texts)
		}
		for _, text := range step.add {
			if err := h.Append(ctx, claybot.Record{Type: claybot.RecordUser, At: 1, Text: text}); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		}
		if err := h.Close(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
}

// TestDeferredRecords: what a history buffers is stored with the end of the run, once and in
// order, or not at all.
func TestDeferredRecords(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	ctx := t.Context()
	id := agentAt(t, db, "C1")
	record := func(text string) claybot.Record { return claybot.Record{Type: claybot.RecordUser, At: 1, Text: text} }
	texts := func() string {
		t.Helper()
		records, err := db.Agents.Records(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range records {
			all = append(all, r.Text)
		}
		return strings.Join(all, " ")
	}
	for i, tt := range []struct {
		name  string
		moved bool // another record comes between
		want  string
	}{
		{"stored with the end", false, "a0 b0 c0"},
		{"once more", false, "a0 b0 c0 a1 b1 c1"},
		{"not, if the history has moved", true, "a0 b0 c0 a1 b1 c1 other"},
	} {
		n := strconv.Itoa(i)
		if _, err := db.Post(ctx, storage.Posting{To: id, Message: claybot.AgentMessage{ID: claybot.MessageID("m" + n), Type: claybot.MessageUser, Text: "x"}}); err != nil {
			t.Fatal(err)
		}
		acquired, _, err := db.Acquire(ctx, "node", time.Hour, 1, 10)
		if err != nil || len(acquired) != 1 {
			t.Fatalf("%s: acquired %d, %v", tt.name, len(acquired), err)
		}
		l := acquired[0].Lease
		run := claybot.RunID("r" + n)
		if _, err := db.Begin(ctx, l, run, []claybot.MessageID{claybot.MessageID("m" + n)}, storage.Beginning{}); err != nil {
			t.Fatal(err)
		}
		h, err := db.Agents.OpenHistory(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Buffer(ctx, record("a"+n), record("b"+n), record("c"+n)); err != nil {
			t.Fatal(err)
		}
		d := h.(storage.Deferring)
		deferred := d.Deferred()
		if tt.moved {
			other, err := db.Agents.OpenHistory(ctx, l)
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Append(ctx, record("other")); err != nil {
				t.Fatal(err)
			}
		}
		end := storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}}, Records: deferred}
		if _, err = db.Finish(ctx, l, run, end); (err != nil) != tt.moved {
			t.Errorf("%s: finish: %v", tt.name, err)
		}
		if err == nil {
			d.Settle(deferred)
			if _, err := db.Finish(ctx, l, run, end); err == nil {
				t.Errorf("%s: it was ended twice", tt.name)
			}
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: close: %v", tt.name, err)
		}
		if got := texts(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestHistoryAfterALostAnswer: an append that has happened although its answer is lost is
// found the next time, also if nothing else is known to have been written in between.
func TestHistoryAfterALostAnswer(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	ctx := t.Context()
	id := agentAt(t, db, "C1")
	record := func(text string) claybot.Record { return claybot.Record{Type: claybot.RecordUser, At: 1, Text: text} }
	l := leaseOf(t, db, id)
	open := func(l storage.Lease) storage.History {
		t.Helper()
		h, err := db.Agents.OpenHistory(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for i, fails := range []bool{false, true, false} {
		h := open(l)
		if fails { // the append happens elsewhere, and fails here
			other := open(l)
			if err := other.Append(ctx, record("one")); err != nil {
				t.Fatal(err)
			}
			if err := h.Append(ctx, record("one")); err == nil {
				t.Fatal("it was appended twice")
			}
		}
		if want := i / 2; len(h.Records()) != want {
			t.Errorf("opening %d: %d records, want %d", i+1, len(h.Records()), want)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		next := leaseOf(t, db, id)
		next.Before = l.Token
		l = next
	}
}
