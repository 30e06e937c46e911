package storagetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// fire is a message that is the firing f.
func fire(f claybot.Firing) claybot.AgentMessage {
	m := note(string(f.MessageID()), claybot.KindCron)
	m.Firing = &f
	return m
}

func firing(instant string, attempt int) claybot.Firing {
	return claybot.Firing{Task: "t1", Instant: instant, Planned: 7, Attempt: attempt}
}

// row is the newest row of task t1.
func (b *bed) row() storage.LedgerRow {
	b.Helper()
	rows := ok(b.Firings(b.ctx, "t1", 1))(b)
	if len(rows) != 1 {
		b.Fatalf("got %d rows, want 1", len(rows))
	}
	return rows[0]
}

var ledgerTests = []storeTest{
	{"an instant runs once", func(b *bed) {
		const noon = "2030-01-01T12:00:00Z"
		other := b.newAgent("C2")
		for i, step := range []struct {
			to      claybot.AgentID
			instant string
			attempt int
			id      string // instead of its own
			added   bool
		}{
			{b.agent, noon, 1, "", true},
			{b.agent, noon, 1, "", false},
			{b.agent, noon, 0, "x1", false}, // 0 is the first attempt too
			{other, noon, 1, "x2", false},
			{b.agent, noon, 3, "", true},
			{b.agent, noon, 2, "", false}, // a later attempt was made
			{b.agent, noon, 3, "x3", false},
			{b.agent, noon, 4, "", true},
			{b.agent, "2030-01-01T12:01:00Z", 0, "", true},
			{b.agent, "manual/k", 1, "", true},
			{b.agent, "manual/k", 1, "", false},
		} {
			m := fire(firing(step.instant, step.attempt))
			if step.id != "" {
				m.ID = claybot.MessageID(step.id)
			}
			if got := b.to(step.to, m).Added; got != step.added {
				b.Fatalf("step %d: added %v, want %v", i+1, got, step.added)
			}
			if i == 4 {
				b.again()
			}
		}
		var got []string
		for _, r := range ok(b.Firings(b.ctx, "t1", 10))(b) {
			got = append(got, fmt.Sprint(r.Instant, " ", r.Attempt))
			b.equal("row", []any{r.State, r.Open(), r.Planned, r.Entered > 0}, []any{"waiting", true, 7, true})
		}
		b.equal("newest first", got, []string{"manual/k 1", "2030-01-01T12:01:00Z 1", noon + " 4", noon + " 3", noon + " 1"})
		b.equal("limit", len(ok(b.Firings(b.ctx, "t1", 2))(b)), 2)
		b.equal("of another task", len(ok(b.Firings(b.ctx, "t2", 9))(b)), 0)
		b.equal("what was refused waits nowhere", b.figures().Waiting, 5)
	}},
	{"the life of a row", func(b *bed) {
		f := firing("2030-01-01T12:00:00Z", 1)
		f.Quiet, f.Recovered = true, true
		b.to(b.agent, fire(f))
		h := b.hold(nodeOne)
		time.Sleep(time.Second)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		began := claybot.Now()
		b.equal("running", b.row(), storage.LedgerRow{Firing: f, Entered: began - 1000, State: "RUNNING", Run: "r1", Started: began})
		b.pause(h.Lease, "r1", "a1")
		b.equal("paused", []any{b.row().State, b.row().Open()}, []any{"AWAITING", true})
		time.Sleep(time.Hour)
		h, _ = b.resume("r1")
		o := storage.Outcome{
			State: claybot.RunFailed, Events: []claybot.Event{{Type: claybot.EventRunFailed}}, Usage: claybot.Usage{CostMicroUSD: 42},
			Error: &claybot.RunError{Code: "c", Text: "t"}, Replies: []claybot.Outgoing{reply("o1"), reply("o2")},
		}
		ok(b.Finish(b.ctx, h.Lease, "r1", o))(b)
		want := storage.LedgerRow{
			Firing: f, Entered: began - 1000, State: "FAILED", Run: "r1", Started: began, Ended: claybot.Now(), Cost: 42, Error: o.Error,
		}
		if got := b.row(); got.Error == nil || *got.Error != *o.Error {
			b.Fatalf("error is %+v", got.Error)
		}
		got := b.row()
		got.Error = o.Error
		b.equal("ended", []any{got, got.Open()}, []any{want, false})
		b.noError(b.resolveErr("o1", storage.Resolution{State: claybot.SendSent}))
		b.equal("delivered so far", b.row().Undelivered, "")
		b.noError(b.resolveErr("o2", storage.Resolution{State: claybot.SendFailed, Cause: "chat not found"}))
		b.equal("undelivered", b.row().Undelivered, "chat not found")
	}},
	{"what does not run", func(b *bed) {
		b.noError(b.Store.Skip(b.ctx, firing("1", 0), "missed"))
		want := storage.LedgerRow{Firing: firing("1", 1), Entered: claybot.Now(), State: "skipped", Reason: "missed"}
		b.equal("skipped", b.row(), want)
		time.Sleep(time.Second)
		b.noError(b.Store.Skip(b.ctx, firing("1", 1), "other"))
		b.equal("again", b.row(), want)
		b.equal("then it does not run", b.to(b.agent, fire(firing("1", 1))).Added, false)
		b.noError(b.Store.Skip(b.ctx, firing("1", 2), "no retry"))
		b.equal("its retry", []any{b.row().Attempt, b.row().Reason}, []any{2, "no retry"})

		b.to(b.agent, fire(firing("2", 1)))
		b.noError(b.Store.Skip(b.ctx, firing("2", 1), "overlap"))
		b.equal("one that waits", b.row().State, "waiting")
		ok(b.Drop(b.ctx, b.agent, "operator"))(b)
		b.equal("dropped later", []any{b.row().State, b.row().Reason, b.row().Open()}, []any{"skipped", "operator", false})
		b.deliver(storage.Posting{To: b.agent, Message: fire(firing("3", 1)), Skip: "odd"})
		b.equal("skipped at once", []any{b.row().State, b.row().Reason}, []any{"skipped", "odd"})
		b.to(b.agent, fire(firing("4", 1)))
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		b.equal("its agent is gone", b.row().State, "skipped")
		_, err := b.Post(b.ctx, storage.Posting{To: b.agent, Message: fire(firing("5", 1))})
		b.is(err, storage.ErrNotFound)
		b.equal("refused", b.row().Instant, "4")
	}},
	{"several in one run", func(b *bed) {
		b.to(b.agent, fire(firing("1", 1)))
		b.to(b.agent, fire(firing("2", 1)))
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.to(b.agent, fire(firing("3", 1)))
		ok(b.Take(b.ctx, h.Lease, "r1", 10, nil))(b)
		b.succeed(h.Lease, "r1")
		for _, r := range ok(b.Firings(b.ctx, "t1", 10))(b) {
			b.equal(r.Instant, []any{r.State, r.Run}, []any{"SUCCEEDED", "r1"})
		}
	}},
	{"last firings", func(b *bed) {
		b.equal("none", len(ok(b.LastFirings(b.ctx))(b)), 0)
		for _, task := range []string{"b", "a", "c", "", "manual/"} {
			for _, instant := range []string{"2", "1", "manual/9"} {
				if task == "c" && !strings.HasPrefix(instant, "manual/") {
					continue
				}
				b.noError(b.Store.Skip(b.ctx, claybot.Firing{Task: task, Instant: instant}, "because of "+task))
			}
		}
		got := make(map[string]string)
		for task, r := range ok(b.LastFirings(b.ctx))(b) {
			b.equal("task", []any{r.Task, r.Reason}, []any{task, "because of " + task})
			got[task] = r.Instant
		}
		b.equal("newest by task", got, map[string]string{"": "1", "a": "1", "b": "1", "manual/": "1"})
	}},
}
