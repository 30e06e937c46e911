package storagetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var runTests = []storeTest{
	{"begin", func(b *bed) {
		b.post("m1", instant)
		b.post("m2", instant)
		h := b.hold(nodeOne)
		want := claybot.Run{
			ID: "r1", Agent: b.agent, State: claybot.RunRunning, Messages: []claybot.MessageID{"m1", "m2"},
			LastSeq: 1, Attempts: 1, Started: claybot.Now(),
		}
		b.equal("begun", ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b), want)
		b.equal("loaded", b.run("r1"), want)
		_, run := b.receiptOf("m2")
		b.equal("m2 belongs to", run, "r1")
		for e, err := range b.Events(b.ctx, "r1", 0) {
			b.noError(err)
			var data struct {
				Agent    claybot.AgentID
				Messages []claybot.MessageID
				Attempt  int
			}
			b.noError(json.Unmarshal(e.Data, &data))
			b.equal("RunStarted", []any{e.Type, data.Agent, data.Messages, data.Attempt}, []any{claybot.EventRunStarted, b.agent, want.Messages, 1})
		}
		f := b.figures()
		b.equal("figures", []any{f.Waiting, f.Runs}, []any{0, map[claybot.RunState]int{claybot.RunRunning: 1}})
	}},
	{"the beginning of a run says who asked for it and how long that waited", func(b *bed) {
		b.post("m1", instant)
		time.Sleep(3 * time.Second)
		b.post("m2", instant)
		h := b.hold(nodeOne)
		time.Sleep(time.Second)
		const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{Engine: "plan", Traceparent: caller}))(b)
		for e, err := range b.Events(b.ctx, "r1", 0) {
			b.noError(err)
			var data struct {
				Engine, Traceparent string
				WaitedMS            int64
			}
			b.noError(json.Unmarshal(e.Data, &data))
			b.equal("RunStarted", []any{data.Engine, data.Traceparent, data.WaitedMS}, []any{"plan", caller, int64(4000)})
		}
	}},
	{"begin refuses what it cannot take", func(b *bed) {
		other := b.newAgent("C2")
		ok(b.Post(b.ctx, storage.Posting{To: other, Message: userMessage("foreign"), Wait: minute}))(b)
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("skipped"), Skip: "empty"})
		b.post("m1", instant)
		l := b.hold(nodeOne).Lease
		for _, batch := range [][]claybot.MessageID{nil, {"m1", "unknown"}, {"m1", "foreign"}, {"m1", "skipped"}, {"m1", "m1"}} {
			if _, err := b.Begin(b.ctx, l, "r1", batch, storage.Beginning{}); err == nil {
				b.Fatalf("began with %v", batch)
			}
		}
		_, err := b.Run(b.ctx, "r1")
		b.is(err, storage.ErrNotFound)
		ok(b.Begin(b.ctx, l, "r1", []claybot.MessageID{"m1"}, storage.Beginning{}))(b)
		b.succeed(l, "r1")
		b.post("m2", instant)
		l = b.hold(nodeOne).Lease
		if _, err := b.Begin(b.ctx, l, "r1", []claybot.MessageID{"m2"}, storage.Beginning{}); err == nil {
			b.Fatal("an ended run's id was used again")
		}
		ok(b.Begin(b.ctx, l, "r2", []claybot.MessageID{"m2"}, storage.Beginning{}))(b)
	}},
	{"one unfinished run", func(b *bed) {
		lease, _ := b.begin("r1")
		b.post("m2", instant)
		run := ok(b.Begin(b.ctx, lease, "r2", []claybot.MessageID{"m2"}, storage.Beginning{}))(b)
		b.equal("joined", []any{run.ID, run.Messages, run.Attempts, run.LastSeq}, []any{"r1", []claybot.MessageID{"m-r1", "m2"}, 2, 2})
		_, err := b.Run(b.ctx, "r2")
		b.is(err, storage.ErrNotFound)
		_, err = b.Begin(b.ctx, lease, "r2", []claybot.MessageID{"m2"}, storage.Beginning{})
		b.is(err, storage.ErrNotFound) // m2 waits no longer
	}},
	{"events", func(b *bed) {
		lease, _ := b.begin("r1")
		at := claybot.Now() + 5
		called := claybot.Event{Type: claybot.EventToolCalled, At: at, Data: json.RawMessage(`{"tool":"clock"}`), Seq: 77, Run: "other"}
		b.noError(b.Append(b.ctx, lease, "r1", false, called, claybot.Event{Type: claybot.EventToolSucceeded}))
		b.equal("types", b.events("r1", 0), []claybot.EventType{claybot.EventRunStarted, claybot.EventToolCalled, claybot.EventToolSucceeded})
		b.equal("after 2", b.events("r1", 2), []claybot.EventType{claybot.EventToolSucceeded})
		b.equal("after the last", len(b.events("r1", 3)), 0)
		for e, err := range b.Events(b.ctx, "r1", 1) {
			b.noError(err)
			b.equal("kept", []any{e.Type, e.At, string(e.Data)}, []any{claybot.EventToolCalled, at, `{"tool":"clock"}`})
			break
		}
		b.again()
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r9", nil, storage.Beginning{}))(b)
		b.equal("goes on at last + 1", b.run("r1").LastSeq, 4)
		many := make([]claybot.Event, 500)
		for i := range many {
			many[i].Type = claybot.EventToolCalled
		}
		b.noError(b.Append(b.ctx, h.Lease, "r1", false, many...))
		b.equal("many", len(b.events("r1", 0)), 504)
		b.equal("lastSeq", b.run("r1").LastSeq, 504)
	}},
	{"only finish ends", func(b *bed) {
		lease, _ := b.begin("r1")
		for _, e := range []claybot.EventType{claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled} {
			if err := b.Append(b.ctx, lease, "r1", false, claybot.Event{Type: claybot.EventToolCalled}, claybot.Event{Type: e}); err == nil {
				b.Fatalf("Append took %s", e)
			}
		}
		finished := claybot.Event{Type: claybot.EventRunFinished}
		for name, o := range map[string]storage.Outcome{
			"running":         {State: claybot.RunRunning, Events: []claybot.Event{finished}},
			"no event":        {State: claybot.RunSucceeded},
			"no terminal":     {State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventToolCalled}}},
			"wrong terminal":  {State: claybot.RunFailed, Events: []claybot.Event{finished}},
			"two":             {State: claybot.RunSucceeded, Events: []claybot.Event{finished, finished}},
			"not at the end":  {State: claybot.RunSucceeded, Events: []claybot.Event{finished, {Type: claybot.EventToolCalled}}},
			"unknown outcome": {State: "DONE", Events: []claybot.Event{finished}},
		} {
			if _, err := b.Finish(b.ctx, lease, "r1", o); err == nil {
				b.Fatalf("finished with %s", name)
			}
		}
		b.equal("run", []any{b.run("r1").State, b.run("r1").LastSeq}, []any{claybot.RunRunning, 1})
	}},
	{"attempts", func(b *bed) {
		lease, _ := b.begin("r1")
		for want := 2; want <= 3; want++ {
			run := ok(b.Begin(b.ctx, lease, "x", nil, storage.Beginning{}))(b)
			b.equal("attempts", run.Attempts, want)
		}
		b.noError(b.Append(b.ctx, lease, "r1", false, claybot.Event{Type: claybot.EventToolCalled}))
		b.equal("no progress", b.run("r1").Attempts, 3)
		b.noError(b.Append(b.ctx, lease, "r1", true, claybot.Event{Type: claybot.EventToolSucceeded}))
		b.equal("progress", b.run("r1").Attempts, 0)
		b.noError(b.Release(b.ctx, lease, instant, true))
		b.equal("never negative", b.run("r1").Attempts, 0)
	}},
	{"finish", func(b *bed) {
		lease, _ := b.begin("r1")
		time.Sleep(time.Second)
		o := storage.Outcome{
			State: claybot.RunFailed, Output: "half", Error: &claybot.RunError{Code: "llm/rate", Text: "too many"},
			Events: []claybot.Event{{Type: claybot.EventAssistantMessage}, {Type: claybot.EventRunFailed}},
			Usage:  claybot.Usage{Input: 10, LLMCalls: 1}, Replies: []claybot.Outgoing{reply("o1"), reply("o2")},
		}
		out := ok(b.Finish(b.ctx, lease, "r1", o))(b)
		b.equal("replies", []any{outIDs(out), out[0].State, out[0].N < out[1].N, out[0].N > 0}, []any{[]string{"o1", "o2"}, claybot.SendWaiting, true, true})
		run := b.run("r1")
		b.equal("run", []any{run.State, run.Output, *run.Error, run.Usage, run.Ended, run.LastSeq},
			[]any{claybot.RunFailed, "half", *o.Error, o.Usage, claybot.Now(), 3})
		b.equal("unsent", outIDs(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), []string{"o1", "o2"})
		b.neverDue("free and empty")
		b.equal("usage", ok(b.IndexedAgentByID(b.ctx, b.agent))(b).Usage, o.Usage)
		_, err := b.Finish(b.ctx, lease, "r1", o)
		b.is(err, storage.ErrLeaseLost)
		// Under a new lease the ended run stays as it is.
		l2, _ := b.begin("r2")
		for name, err := range map[string]error{
			"Finish":    func() error { _, err := b.Finish(b.ctx, l2, "r1", success()); return err }(),
			"Append":    b.Append(b.ctx, l2, "r1", true, claybot.Event{Type: claybot.EventToolCalled}),
			"SaveDraft": b.SaveDraft(b.ctx, l2, "r1", claybot.Draft{Outgoing: "x"}),
			"Take":      func() error { _, err := b.Take(b.ctx, l2, "r1", 1, nil); return err }(),
		} {
			if err == nil || !strings.Contains(err.Error(), "FAILED") {
				b.Fatalf("%s of an ended run: %v", name, err)
			}
		}
		b.equal("ended run", b.run("r1"), run)
		o.Usage, o.State, o.Events = claybot.Usage{Input: 1, Estimated: true}, claybot.RunCanceled, []claybot.Event{{Type: claybot.EventRunCanceled}}
		o.Replies = []claybot.Outgoing{reply("o2"), reply("o3")}
		b.equal("a known reply is ignored", outIDs(ok(b.Finish(b.ctx, l2, "r2", o))(b)), []string{"o3"})
		b.equal("sum", ok(b.IndexedAgentByID(b.ctx, b.agent))(b).Usage, claybot.Usage{Input: 11, LLMCalls: 1, Estimated: true})
		b.equal("runs", b.figures().Runs, map[claybot.RunState]int{claybot.RunFailed: 1, claybot.RunCanceled: 1})
	}},
	{"finish of a run that is to be canceled", func(b *bed) {
		for i, end := range []struct {
			state claybot.RunState
			event claybot.EventType
		}{{claybot.RunCanceled, claybot.EventRunCanceled}, {claybot.RunFailed, claybot.EventRunFailed}} {
			id := claybot.RunID(fmt.Sprint("r", i))
			lease, _ := b.begin(id)
			b.deliver(b.typed(claybot.MessageCancel, fmt.Sprint("stop", i)))
			before, figures := b.run(id), b.figures()
			_, err := b.Finish(b.ctx, lease, id, success(reply("never")))
			b.is(err, storage.ErrCanceled)
			b.equal("untouched", b.run(id), before)
			b.equal("figures", b.figures(), figures)
			b.equal("replies", len(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), 0)
			ok(b.Finish(b.ctx, lease, id, storage.Outcome{State: end.state, Events: []claybot.Event{{Type: end.event}}}))(b)
			b.equal("ended", b.run(id).State, end.state)
		}
	}},
	{"another agent's run", func(b *bed) {
		b.begin("r1")
		mine := b.agent
		b.agent = b.newAgent("C2")
		lease, _ := b.begin("r2")
		b.is(b.Append(b.ctx, lease, "r1", false, claybot.Event{Type: claybot.EventToolCalled}), storage.ErrNotFound)
		b.is(b.Append(b.ctx, lease, "r3", false, claybot.Event{Type: claybot.EventToolCalled}), storage.ErrNotFound)
		_, err := b.Finish(b.ctx, lease, "r1", success())
		b.is(err, storage.ErrNotFound)
		b.equal("run", []any{b.run("r1").State, b.run("r1").Agent}, []any{claybot.RunRunning, mine})
	}},
	{"draft", func(b *bed) {
		lease, _ := b.begin("r1")
		for _, d := range []claybot.Draft{{Outgoing: "o1", Tried: 5}, {Outgoing: "o1", Tried: 5, Receipt: "99"}} {
			b.noError(b.SaveDraft(b.ctx, lease, "r1", d))
			b.equal("draft", *b.run("r1").Draft, d)
		}
		b.again()
		b.equal("held again", b.hold(nodeOne).Run.Draft.Receipt, "99")
	}},
	{"take", func(b *bed) {
		lease, _ := b.begin("r1")
		take := func(limit int) []claybot.MessageID {
			return ids(ok(b.Take(b.ctx, lease, "r1", limit, nil))(b))
		}
		b.equal("nothing waits", len(take(10)), 0)
		b.post("m2", storage.Wait{Quiet: time.Second, Max: time.Second})
		b.equal("not due", len(take(10)), 0) // IN-22
		time.Sleep(time.Second)
		for i := 3; i <= 6; i++ {
			b.post(fmt.Sprint("m", i), instant)
		}
		b.equal("limit", take(2), []claybot.MessageID{"m2", "m3"})
		b.equal("no limit, nothing", len(take(0)), 0)
		refused := ok(b.Take(b.ctx, lease, "r1", 9, func(m claybot.AgentMessage) bool { return m.ID != "m5" }))(b)
		b.equal("up to the refused", ids(refused), []claybot.MessageID{"m4"})
		b.deliver(b.typed(claybot.MessageReset, "x"))
		b.post("m7", instant)
		b.equal("behind a reset", len(take(10)), 0)
		run := b.run("r1")
		b.equal("run", []any{run.Messages, run.LastSeq, run.Attempts}, []any{[]claybot.MessageID{"m-r1", "m2", "m3", "m4"}, 3, 1})
		b.equal("events", b.events("r1", 1), []claybot.EventType{claybot.EventMessagesInjected, claybot.EventMessagesInjected})
		ok(b.Finish(b.ctx, lease, "r1", storage.Outcome{
			State: claybot.RunCanceled, Events: []claybot.Event{{Type: claybot.EventRunCanceled}},
		}))(b)
		b.equal("next", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"x", "m7"})
	}},
	{"canceled contexts write nothing", func(b *bed) {
		ctx, cancel := contextCanceled(b)
		defer cancel()
		_, err := b.Post(ctx, storage.Posting{To: b.agent, Message: userMessage("m1")})
		b.is(err, ctx.Err())
		_, err = b.Receipt(b.ctx, "m1")
		b.is(err, storage.ErrNotFound)
		_, err = b.Run(ctx, "r1")
		b.is(err, ctx.Err())
	}},
	{"a closed store answers with errors", func(b *bed) {
		b.noError(b.Close())
		b.noError(b.Close())
		if _, err := b.Post(b.ctx, storage.Posting{To: b.agent, Message: userMessage("m1")}); err == nil {
			b.Fatal("posted to a closed store")
		}
		if _, err := b.Stats(b.ctx); err == nil {
			b.Fatal("read from a closed store")
		}
	}},
}
