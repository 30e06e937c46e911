package storagetest

import (
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const day = 24 * time.Hour

// Retention is what stores keep in most tests, as long as at the defaults of the configuration.
var Retention = storage.Retention{Events: 7 * day, Runs: 90 * day, Outgoing: 90 * day, Ledger: 90 * day, Usage: 400 * day}

// says lets the agent answer a message, and the answer arrive.
func (b *bed) says(n int) {
	b.Helper()
	id := fmt.Sprint(n)
	l, _ := b.begin(claybot.RunID("r" + id))
	b.succeed(l, claybot.RunID("r"+id), reply("o"+id))
	b.noError(b.attempt("o" + id))
	b.resolve("o"+id, storage.Resolution{State: claybot.SendSent, Receipt: id})
}

// kept is what is left of what was said: events, run, message and answer.
func (b *bed) kept(n int, want string) {
	b.Helper()
	id, got := fmt.Sprint(n), ""
	for _, part := range []struct {
		name string
		find func() error
	}{
		{"run", func() error { _, err := b.Run(b.ctx, claybot.RunID("r"+id)); return err }},
		{"message", func() error { _, err := b.Receipt(b.ctx, claybot.MessageID("m-r"+id)); return err }},
		{"answer", func() error { _, err := b.OutgoingByID(b.ctx, "o"+id); return err }},
	} {
		err := part.find()
		if err == nil {
			got += part.name + " "
			continue
		}
		b.is(err, storage.ErrNotFound)
	}
	if len(b.events(claybot.RunID("r"+id), 0)) > 0 {
		got = "events " + got
	}
	b.equal("kept of "+id, got, want)
}

var retentionTests = []storeTest{
	{"by age", func(b *bed) {
		keep := storage.Retention{Events: 2 * day, Outgoing: 4 * day, Runs: 6 * day}
		b.says(1)
		b.says(2)
		for _, step := range []struct {
			after time.Duration
			kept  string
		}{
			{2*day - time.Hour, "events run message answer "},
			{2*day + time.Hour, "run message answer "},
			{4*day + time.Hour, "run message "},
			{6*day - time.Hour, "run message "},
			{6*day + time.Hour, ""},
		} {
			b.noError(b.Prune(b.ctx, time.Now().Add(step.after), keep))
			b.kept(1, step.kept)
		}
		b.kept(2, "message ") // the newest of its user
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{})
		b.equal("the agent", ok(b.IndexedAgentByID(b.ctx, b.agent))(b).ID, b.agent)
		b.says(3)
		b.kept(3, "events run message answer ")
		b.noError(b.Prune(b.ctx, time.Now().Add(6*day+time.Hour), keep))
		b.kept(2, "")
	}},
	{"deletions with the newest message of a user", func(b *bed) {
		b.says(1)
		b.amending(claybot.MessageDelete, "d1", "m-r1", "")
		b.says(2)
		b.amending(claybot.MessageDelete, "d2", "m-r2", "")
		b.noError(b.Prune(b.ctx, time.Now().Add(7*day), storage.Retention{Events: day, Runs: 6 * day}))
		b.kept(1, "answer ")
		_, err := b.Receipt(b.ctx, "d1")
		b.is(err, storage.ErrNotFound)
		b.kept(2, "message answer ")
		b.equal("deletion", ok(b.Receipt(b.ctx, "d2"))(b).Message.Amends, claybot.MessageID("m-r2"))
	}},
	{"notes of edits with the newest message of a user", func(b *bed) {
		b.says(1)
		b.amending(claybot.MessageEdit, "e1", "m-r1", "noted")
		b.says(2)
		b.amending(claybot.MessageEdit, "e2", "m-r2", "noted")
		silent := b.typed(claybot.MessageSystem, "s1")
		silent.Message.Silent = true
		b.deliver(silent)
		tick := b.typed(claybot.MessageSystem, "s2")
		tick.Wait = instant
		b.deliver(tick)
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r3", ids(h.Waiting), storage.Beginning{}))(b)
		b.succeed(h.Lease, "r3")
		b.noError(b.Prune(b.ctx, time.Now().Add(7*day), storage.Retention{Events: day, Runs: 6 * day}))
		b.kept(2, "message answer ")
		for id, kept := range map[claybot.MessageID]bool{"m-r1": false, "e1": false, "e2": true, "s1": false, "s2": false} {
			_, err := b.Receipt(b.ctx, id)
			if b.equal(string(id)+" kept", err == nil, kept); err != nil {
				b.is(err, storage.ErrNotFound)
			}
		}
	}},
	{"runs go with their events", func(b *bed) {
		b.says(1)
		b.noError(b.Prune(b.ctx, time.Now().Add(7*day), storage.Retention{Runs: 6 * day}))
		b.kept(1, "message answer ")
	}},
	{"for ever", func(b *bed) {
		b.says(1)
		b.noError(b.Prune(b.ctx, time.Now().Add(10_000*day), storage.Retention{}))
		b.kept(1, "events run message answer ")
	}},
	{"what was not delivered stays with its run", func(b *bed) {
		l, _ := b.begin("r1")
		b.succeed(l, "r1", reply("o1"))
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Cause: "blocked"})
		for _, step := range []struct {
			after time.Duration
			kept  string
		}{{29 * day, "run message answer "}, {31 * day, "message "}} {
			b.noError(b.Prune(b.ctx, time.Now().Add(step.after), storage.Retention{Events: day, Outgoing: day, Runs: 30 * day}))
			b.kept(1, step.kept)
		}
	}},
	{"warnings of budgets are sent once", func(b *bed) {
		warning := reply("budget/all/80/1")
		ok(b.Enqueue(b.ctx, warning))(b)
		b.noError(b.attempt(warning.ID))
		b.resolve(warning.ID, storage.Resolution{State: claybot.SendSent})
		b.noError(b.Prune(b.ctx, time.Now().Add(100*day), storage.Retention{Outgoing: day}))
		b.equal("again", len(ok(b.Enqueue(b.ctx, warning))(b)), 0)
	}},
	{"what is not over stays", func(b *bed) {
		keep := storage.Retention{Events: day, Outgoing: day, Runs: day, Ledger: day, Usage: 62 * day}
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("skipped"), Skip: "empty"})
		l, _ := b.begin("r1")
		ok(b.Enqueue(b.ctx, reply("unsent")))(b)
		b.post("waits", instant)
		b.ask(l, "r1", question("q1"))
		b.noError(b.Prune(b.ctx, time.Now().Add(20*day), keep))
		_, err := b.Receipt(b.ctx, "skipped")
		b.is(err, storage.ErrNotFound)
		_, run := b.receiptOf("m-r1")
		b.equal("the run", []any{run, b.run("r1").State}, []any{claybot.RunID("r1"), claybot.RunAwaiting})
		b.receiptOf("waits")
		b.open("", "q1")
		b.equal("not sent", b.unsent().ID, "unsent")
	}},
	{"a busy year stays as large as a month", func(b *bed) {
		keep := storage.Retention{Events: 7 * day, Outgoing: 30 * day, Runs: 30 * day, Ledger: 30 * day, Usage: 62 * day}
		sizes := func() string {
			runs, outgoing := b.runPages(storage.RunQuery{Limit: 10}), b.outgoingPages(storage.OutgoingQuery{Limit: 10})
			days := ok(b.Spent(b.ctx, storage.SpentQuery{By: []string{storage.ByDay}}))(b)
			return fmt.Sprint(len(runs), " runs, ", len(outgoing), " outgoing, ", len(days), " days")
		}
		n, before := 0, ""
		for today := range 366 {
			n++
			b.says(n)
			time.Sleep(day)
			b.noError(b.Prune(b.ctx, time.Now(), keep))
			if today == 100 {
				before = sizes()
			}
		}
		b.equal("after a year", sizes(), before)
		b.kept(n-31, "")
		b.kept(n-28, "run message answer ")
		b.kept(n-5, "events run message answer ")
	}},
}
