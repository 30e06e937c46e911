package storagetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// answer is an answer for a run of the bed's agent.
func answer(id string, run claybot.RunID) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageAnswer, Run: run, At: claybot.Now(),
		Answer: &claybot.Result{OK: true, Output: "output of " + id},
	}
}

// pause suspends a run for an hour until the answers are there.
func (b *bed) pause(l storage.Lease, id claybot.RunID, answers ...claybot.MessageID) claybot.Awaiting {
	b.Helper()
	w := claybot.Awaiting{Answers: answers, Until: claybot.At(time.Now().Add(time.Hour))}
	b.noError(b.Suspend(b.ctx, l, id, storage.Pause{Events: []claybot.Event{{Type: claybot.EventAwaitingInput}}, Awaiting: w}))
	return w
}

// resume takes the paused run up again and returns why it goes on.
func (b *bed) resume(id claybot.RunID) (h storage.Acquired, reason string) {
	b.Helper()
	h = b.hold(nodeOne)
	if h.Run == nil || h.Run.ID != id {
		b.Fatalf("acquired %+v, want run %s", h.Run, id)
	}
	run := ok(b.Begin(b.ctx, h.Lease, "unused", nil, storage.Beginning{}))(b)
	b.equal("going on", []any{run.ID, run.State, run.Awaiting, run.Attempts}, []any{id, claybot.RunRunning, nil, 1})
	for e, err := range b.Events(b.ctx, id, run.LastSeq-1) {
		b.noError(err)
		var data struct{ Reason string }
		b.noError(json.Unmarshal(e.Data, &data))
		b.equal("event", e.Type, claybot.EventRunResumed)
		reason = data.Reason
	}
	return h, reason
}

var pauseTests = []storeTest{
	{"what is said with a pause", func(b *bed) {
		lease, _ := b.begin("r1")
		b.noError(b.SaveDraft(b.ctx, lease, "r1", claybot.Draft{Outgoing: "o1"}))
		until := claybot.At(time.Now().Add(time.Hour))
		pause := storage.Pause{
			Awaiting: claybot.Awaiting{Answers: []claybot.MessageID{"a1"}, Until: until}, Usage: claybot.Usage{Input: 7, LLMCalls: 1},
			Replies: []claybot.Outgoing{reply("o1"), reply("o2")},
		}
		refused := pause
		refused.Awaiting.Until = 0
		if b.Suspend(b.ctx, lease, "r1", refused) == nil {
			b.Fatal("a pause without an end was taken")
		}
		b.equal("nothing is said with a refused pause", len(ok(b.Unsent(b.ctx, dest, 0, 9))(b)), 0)
		b.noError(b.Suspend(b.ctx, lease, "r1", pause))
		b.again()
		run := b.run("r1")
		b.equal("so far", []any{run.Usage, run.Draft}, []any{pause.Usage, (*claybot.Draft)(nil)})
		b.equal("said", outIDs(ok(b.Unsent(b.ctx, dest, 0, 9))(b)), []string{"o1", "o2"})
		b.to(b.agent, answer("a1", "r1"))
		h, _ := b.resume("r1")
		b.noError(b.SaveDraft(b.ctx, h.Lease, "r1", claybot.Draft{Outgoing: "o3"}))
		pause.Awaiting.Answers[0], pause.Replies = "a2", []claybot.Outgoing{reply("o1")}
		b.noError(b.Suspend(b.ctx, h.Lease, "r1", pause))
		b.equal("said once", outIDs(ok(b.Unsent(b.ctx, dest, 0, 9))(b)), []string{"o1", "o2"})
		b.equal("a draft that is not among it stays", b.run("r1").Draft, &claybot.Draft{Outgoing: "o3"})
	}},
	{"answers", func(b *bed) { // SA-31, SA-32
		lease, _ := b.begin("r1")
		b.to(b.agent, answer("early", "r1"))
		w := b.pause(lease, "r1", "early", "a2", "a3")
		b.refusesLease(lease, "r1", "m-r1")
		run := b.run("r1")
		b.equal("paused", []any{run.State, run.Awaiting, run.Attempts}, []any{claybot.RunAwaiting, &w, 0})
		b.equal("events", b.events("r1", 0), []claybot.EventType{claybot.EventRunStarted, claybot.EventAwaitingInput})
		b.equal("figures", b.figures().Runs, map[claybot.RunState]int{claybot.RunAwaiting: 1})
		b.dueIn("at its end", time.Hour)
		b.post("m2", instant)
		b.dueIn("others wait", time.Hour)
		b.again()
		b.dueIn("after a restart", time.Hour-b.away)
		b.to(b.agent, answer("a3", "r1"))
		b.to(b.agent, answer("a3", "r1"))
		b.to(b.agent, answer("unasked", "r1"))
		b.dueIn("one is missing", time.Hour-b.away)
		b.equal("answers do not wait", b.figures().Waiting, 1)
		b.to(b.agent, answer("a2", "r1"))
		b.dueNow("all are there")
		h, reason := b.resume("r1")
		b.equal("why", reason, "answers")
		b.equal("bound", ids(h.Bound), []claybot.MessageID{"m-r1", "early", "a3", "unasked", "a2"})
		b.equal("content", h.Bound[1].Answer.Output, "output of early")
		b.equal("waiting", ids(h.Waiting), []claybot.MessageID{"m2"})
		b.succeed(h.Lease, "r1")
		b.equal("ended", []any{b.run("r1").State, b.figures().Runs}, []any{claybot.RunSucceeded, map[claybot.RunState]int{claybot.RunSucceeded: 1}})
		b.dueNow("m2")
		b.equal("too late", b.to(b.agent, answer("late", "r1")).Skipped, "run_ended")
	}},
	{"all answers came before the pause", func(b *bed) {
		lease, _ := b.begin("r1")
		b.to(b.agent, answer("a1", "r1"))
		b.equal("none is refused", b.deliver(storage.Posting{To: b.agent, Message: answer("a2", "r1"), Skip: "odd"}).Skipped, "odd")
		b.pause(lease, "r1", "a1", "a2")
		b.dueNow("at once")
		h, reason := b.resume("r1")
		b.equal("why", reason, "answers")
		b.pause(h.Lease, "r1") // of nothing
		_, reason = b.resume("r1")
		b.equal("why", reason, "answers")
	}},
	{"as many answers as a run needs", func(b *bed) {
		lease, _ := b.begin("r1")
		w := claybot.Awaiting{Answers: []claybot.MessageID{"a1", "a2", "a3"}, Need: 2, Until: claybot.At(time.Now().Add(time.Hour))}
		b.noError(b.Suspend(b.ctx, lease, "r1", storage.Pause{Events: []claybot.Event{{Type: claybot.EventAwaitingInput}}, Awaiting: w}))
		b.equal("kept", b.run("r1").Awaiting, &w)
		b.to(b.agent, answer("a3", "r1"))
		b.to(b.agent, answer("a3", "r1"))
		b.to(b.agent, answer("unasked", "r1"))
		b.dueIn("one is not enough", time.Hour)
		b.to(b.agent, answer("a1", "r1"))
		b.dueNow("two are")
		h, reason := b.resume("r1")
		b.equal("why", reason, "answers")
		w.Need = 1
		b.noError(b.Suspend(b.ctx, h.Lease, "r1", storage.Pause{Events: []claybot.Event{{Type: claybot.EventAwaitingInput}}, Awaiting: w}))
		b.dueNow("they were there before")
	}},
	{"a skipped answer counts", func(b *bed) {
		lease, _ := b.begin("r1")
		b.pause(lease, "r1", "a1")
		b.deliver(storage.Posting{To: b.agent, Message: answer("a1", "r1"), Skip: "odd"})
		b.dueNow("it will not come otherwise")
	}},
	{"only answers for this run count", func(b *bed) {
		lease, _ := b.begin("r1")
		b.pause(lease, "r1", "a1", "a2", "m2")
		b.equal("of another run", b.to(b.agent, answer("x", "r0")).Skipped, "run_ended")
		b.equal("of none", b.to(b.agent, answer("y", "")).Skipped, "run_ended")
		b.to(b.agent, answer("a1", "r1"))
		b.post("m2", minute) // the id of an answer, but no answer
		b.to(b.agent, answer("a2", "r1"))
		b.dueIn("one is missing", time.Hour-b.away)
		idle := b.newAgent("C2")
		b.equal("without a run", b.to(idle, answer("z", "")).Skipped, "run_ended")
		_, err := b.Post(b.ctx, storage.Posting{To: "gone", Message: answer("g", "r1")})
		b.is(err, storage.ErrNotFound)
	}},
	{"time passes", func(b *bed) {
		lease, _ := b.begin("r1")
		b.pause(lease, "r1", "a1")
		time.Sleep(time.Hour - ms)
		b.acquire(nodeOne, 0)
		time.Sleep(ms)
		_, reason := b.resume("r1")
		b.equal("why", reason, "timeout")
		b.to(b.agent, answer("a1", "r1"))
		b.equal("it may still come", b.run("r1").Messages, []claybot.MessageID{"m-r1", "a1"})
	}},
	{"cancel and reset", func(b *bed) {
		for i, p := range []storage.Posting{
			b.typed(claybot.MessageCancel, "c"),
			{To: b.agent, Message: b.typed(claybot.MessageCancel, "p").Message, By: "parent"},
			b.typed(claybot.MessageReset, "x"),
		} {
			id := claybot.RunID(fmt.Sprint("r", i))
			lease, _ := b.begin(id)
			b.pause(lease, id, "a1")
			b.equal("canceled", b.deliver(p).Canceled, id)
			b.dueNow("to end the run")
			b.again()
			b.dueNow("after a restart")
			h, reason := b.resume(id)
			by := []string{"user", "parent", "reset"}[i]
			b.equal("why", []any{reason, b.run(id).Cancel}, []any{"cancel", by})
			_, err := b.Finish(b.ctx, h.Lease, id, success())
			b.is(err, storage.ErrCanceled)
			ok(b.Finish(b.ctx, h.Lease, id, storage.Outcome{State: claybot.RunCanceled, Events: []claybot.Event{{Type: claybot.EventRunCanceled}}}))(b)
		}
		b.equal("figures", b.figures().Runs, map[claybot.RunState]int{claybot.RunCanceled: 3})
	}},
	{"asked to cancel before the pause", func(b *bed) {
		lease, _ := b.begin("r1")
		b.deliver(b.typed(claybot.MessageCancel, "c"))
		b.pause(lease, "r1", "a1")
		b.dueNow("at once")
	}},
	{"let go before it goes on", func(b *bed) {
		lease, _ := b.begin("r1")
		w := b.pause(lease, "r1", "a1")
		time.Sleep(time.Hour)
		for _, orderly := range []bool{true, false} {
			h := b.hold(nodeOne)
			b.equal("still paused", []any{h.Run.State, h.Run.Awaiting}, []any{claybot.RunAwaiting, &w})
			b.noError(b.Release(b.ctx, h.Lease, instant, orderly))
			b.dueNow("again")
		}
		b.hold(nodeOne)
		b.again() // a crash
		_, reason := b.resume("r1")
		b.equal("why", reason, "timeout")
		b.again()
		h := b.hold(nodeOne)
		b.equal("running", h.Run.State, claybot.RunRunning)
		b.equal("attempts", ok(b.Begin(b.ctx, h.Lease, "x", nil, storage.Beginning{}))(b).Attempts, 2)
	}},
	{"refused pauses", func(b *bed) {
		lease, _ := b.begin("r1")
		until := claybot.At(time.Now().Add(time.Hour))
		for name, p := range map[string]storage.Pause{
			"no end":    {Awaiting: claybot.Awaiting{Answers: []claybot.MessageID{"a1"}}},
			"terminal":  {Awaiting: claybot.Awaiting{Until: until}, Events: []claybot.Event{{Type: claybot.EventRunFailed}}},
			"negative":  {Awaiting: claybot.Awaiting{Until: -1}},
			"and again": {Awaiting: claybot.Awaiting{}},
		} {
			if err := b.Suspend(b.ctx, lease, "r1", p); err == nil {
				b.Fatalf("suspended with %s", name)
			}
		}
		b.is(b.Suspend(b.ctx, lease, "r2", storage.Pause{Awaiting: claybot.Awaiting{Until: until}}), storage.ErrNotFound)
		b.equal("untouched", []any{b.run("r1").State, b.run("r1").LastSeq}, []any{claybot.RunRunning, 1})
		b.pause(lease, "r1", "a1")
		b.is(b.Suspend(b.ctx, lease, "r1", storage.Pause{Awaiting: claybot.Awaiting{Until: until}}), storage.ErrLeaseLost)
		time.Sleep(time.Hour)
		h := b.hold(nodeOne)
		if err := b.Suspend(b.ctx, h.Lease, "r1", storage.Pause{Awaiting: claybot.Awaiting{Until: until}}); err == nil {
			b.Fatal("a paused run was paused")
		}
		_, err := b.Finish(b.ctx, h.Lease, "r1", success())
		if err == nil {
			b.Fatal("a paused run succeeded")
		}
	}},
	{"last run", func(b *bed) {
		_, err := b.LastRun(b.ctx, b.agent)
		b.is(err, storage.ErrNotFound)
		for _, id := range []claybot.RunID{"r9", "r1"} {
			lease, _ := b.begin(id)
			b.equal("newest", ok(b.LastRun(b.ctx, b.agent))(b), b.run(id))
			b.succeed(lease, id)
		}
		b.equal("ended", ok(b.LastRun(b.ctx, b.agent))(b), b.run("r1"))
	}},
}
