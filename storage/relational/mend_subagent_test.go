package relational_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestDamagedRunOfSubagent: the parent is told once, or gets the answer that
// it waits for (SA-20, SA-21, SA-32).
func TestDamagedRunOfSubagent(t *testing.T) {
	kid := claybot.Agent{ID: "akidagent000000000000000", Descriptor: claybot.Descriptor{
		Type: claybot.AgentSubagent, UID: "1", Parent: theAgent.ID, Name: "digger",
	}}
	orphan := kid
	orphan.Descriptor.Parent = "gone"
	for name, tt := range map[string]struct {
		agent   claybot.Agent
		awaited bool
		damage  string
		want    string // text of the notice, or the error of the answer
	}{
		"notice": {
			kid, false, "UPDATE runs SET messages = '[' WHERE id = 'k1'",
			`The subagent "digger" (akidagent000000000000000) failed in run k1: what is stored of the run cannot be read.`,
		},
		"nameless": {
			kid, false, "UPDATE runs SET outcome = '[' WHERE id = 'k1'; UPDATE agents SET descriptor = '{' WHERE id = 'akidagent000000000000000'",
			"The subagent akidagent000000000000000 failed in run k1: what is stored of the run cannot be read.",
		},
		"answer": {kid, true, "UPDATE runs SET messages = '[' WHERE id = 'k1'", "what is stored of the run cannot be read"},
		"answer for a damaged message": {
			kid, true,
			"UPDATE runs SET messages = '[' WHERE id = 'k1'; UPDATE messages SET crc = crc + 1 WHERE id = 'task'", "what is stored of the run cannot be read",
		},
		"orphan":        {orphan, false, "UPDATE runs SET messages = '[' WHERE id = 'k1'", ""},
		"ended already": {kid, true, "UPDATE runs SET messages = '[', state = 'SUCCEEDED' WHERE id = 'k1'; UPDATE counters SET n = n - 1 WHERE name = 'run:RUNNING'; INSERT INTO counters VALUES ('run:SUCCEEDED', 1)", ""},
		"damaged pause": {
			kid, false, "UPDATE runs SET state = 'AWAITING', awaiting = '{' WHERE id = 'k1'; UPDATE counters SET n = n - 1 WHERE name = 'run:RUNNING'; UPDATE counters SET n = n + 1 WHERE name = 'run:AWAITING'",
			`The subagent "digger" (akidagent000000000000000) failed in run k1: what is stored of the run cannot be read.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := openFresh(t)
			ctx := t.Context()
			if err := db.IndexAgents(ctx, tt.agent); err != nil {
				t.Fatal(err)
			}
			post(t, db, "m1")
			acquired, _, err := db.Acquire(ctx, "old", time.Hour, 1, 10)
			if err != nil || len(acquired) != 1 {
				t.Fatalf("acquired %+v, %v", acquired, err)
			}
			if _, err := db.Begin(ctx, acquired[0].Lease, "w1", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
				t.Fatal(err)
			}
			until := claybot.At(time.Now().Add(time.Hour))
			pause := storage.Pause{Awaiting: claybot.Awaiting{Answers: []claybot.MessageID{"answer"}, Until: until}}
			if err := db.Suspend(ctx, acquired[0].Lease, "w1", pause); err != nil {
				t.Fatal(err)
			}
			m := textMessage("task")
			m.Type = claybot.MessageSystem
			if tt.awaited {
				m.Awaited = &claybot.Awaited{Agent: theAgent.ID, Run: "w1", ID: "answer"}
			}
			if _, err := db.Post(ctx, storage.Posting{To: kid.ID, Message: m}); err != nil {
				t.Fatal(err)
			}
			acquired, _, err = db.Acquire(ctx, "old", time.Hour, 1, 10)
			if err != nil || len(acquired) != 1 {
				t.Fatalf("acquired %+v, %v", acquired, err)
			}
			if _, err := db.Begin(ctx, acquired[0].Lease, "k1", []claybot.MessageID{"task"}, storage.Beginning{}); err != nil {
				t.Fatal(err)
			}
			change(t, db, tt.damage)
			for range 3 { // once, whatever happens
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				db = openAt(t, db.path)
				if _, _, err := db.Acquire(ctx, "new", time.Hour, 10, 10); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if r, err := db.Receipt(ctx, "answer"); err == nil {
				got = r.Message.Answer.Error
				if !tt.awaited || r.Run == nil || r.Run.ID != "w1" || r.Message.Answer.RunID != "k1" || r.Message.Answer.AgentID != kid.ID {
					t.Errorf("answer %+v for %+v", r.Message.Answer, r.Run)
				}
			}
			waiting, err := db.Waiting(ctx, theAgent.ID, 10)
			if err != nil || len(waiting) > 1 || len(waiting) == 1 && got != "" {
				t.Fatalf("waiting %+v, %v", waiting, err)
			}
			for _, m := range waiting {
				got = m.Text
				if m.ID != "failure/k1" || m.Type != claybot.MessageSystem || m.Kind != claybot.KindFailure || m.From.Agent != kid.ID {
					t.Errorf("notice %+v", m)
				}
			}
			if got != tt.want {
				t.Errorf("told %q, want %q", got, tt.want)
			}
			if dests, err := db.UnsentDests(ctx); err != nil || len(dests) != 0 {
				t.Errorf("a background agent answered at %q, %v", dests, err)
			}
			checkFigures(t, db)
		})
	}
}

// TestDamagedMessageIsAnswered: a run that waits for an unreadable message
// is told when it is found.
func TestDamagedMessageIsAnswered(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	if err := db.IndexAgents(ctx, otherAgent); err != nil {
		t.Fatal(err)
	}
	post(t, db, "m1")
	acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil || len(acquired) != 1 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "w1", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	m := textMessage("task")
	m.Awaited = &claybot.Awaited{Agent: theAgent.ID, Run: "w1", ID: "answer"}
	if _, err := db.Post(ctx, storage.Posting{To: otherAgent.ID, Message: m}); err != nil {
		t.Fatal(err)
	}
	spoil(t, db, "messages", "task")
	if acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10); err != nil || len(acquired) != 0 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	run, err := db.Run(ctx, "w1")
	if err != nil || !reflect.DeepEqual(run.Messages, []claybot.MessageID{"m1", "answer"}) {
		t.Errorf("run %+v, %v", run, err)
	}
	checkFigures(t, db)
}

// TestAnswerForDamagedRun: the answer is stored and wakes the agent, whose run
// ends then.
func TestAnswerForDamagedRun(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	post(t, db, "m1")
	acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil || len(acquired) != 1 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "w1", []claybot.MessageID{"m1"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	until := claybot.At(time.Now().Add(time.Hour))
	pause := storage.Pause{Awaiting: claybot.Awaiting{Answers: []claybot.MessageID{"a1", "a2"}, Until: until}}
	if err := db.Suspend(ctx, acquired[0].Lease, "w1", pause); err != nil {
		t.Fatal(err)
	}
	change(t, db, "UPDATE runs SET awaiting = 'x' WHERE id = 'w1'")
	m := claybot.AgentMessage{ID: "a1", Type: claybot.MessageAnswer, Run: "w1", Answer: &claybot.Result{OK: true}}
	if p, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: m}); err != nil || !p.Added || p.Skipped != "" {
		t.Fatalf("posted %+v, %v", p, err)
	}
	if _, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10); err != nil {
		t.Fatal(err)
	}
	run, err := db.Run(ctx, "w1")
	if err != nil || run.State != claybot.RunFailed || !reflect.DeepEqual(run.Messages, []claybot.MessageID{"m1", "a1"}) {
		t.Errorf("run %+v, %v", run, err)
	}
	out, err := db.Unsent(ctx, theAgent.Descriptor.Route().Dest(), 0, 10)
	if err != nil || len(out) != 1 || out[0].Message != "m1" {
		t.Errorf("unsent %+v, %v", out, err)
	}
	checkFigures(t, db)
}
