package storagetest

import (
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// reserving is a user message that reserves a run id.
func reserving(id string, run claybot.RunID) claybot.AgentMessage {
	m := userMessage(id)
	m.Run = run
	return m
}

// canceledBy checks the run that a reserved id became when its message ended
// without one.
func (b *bed) canceledBy(id claybot.RunID, m claybot.MessageID, reason string) {
	b.Helper()
	run := b.run(id)
	b.equal("run "+string(id), []any{run.ID, run.Agent, run.State, run.Messages, run.LastSeq, run.Started, run.Ended > 0},
		[]any{id, b.agent, claybot.RunCanceled, []claybot.MessageID{m}, 1, 0, true})
	n := 0
	for e, err := range b.Events(b.ctx, id, 0) {
		b.noError(err)
		n++
		var data struct{ By string }
		b.noError(json.Unmarshal(e.Data, &data))
		b.equal("event", []any{e.Type, e.Seq, e.Run, e.V, data.By}, []any{claybot.EventRunCanceled, 1, id, 1, reason})
	}
	b.equal("events", n, 1)
}

var reservedTests = []storeTest{
	{"a run has the id that its message reserved", func(b *bed) {
		b.to(b.agent, reserving("m1", "reserved1"))
		want := claybot.Run{ID: "reserved1", Agent: b.agent, State: claybot.RunPending, Messages: []claybot.MessageID{"m1"}}
		b.equal("pending", b.run("reserved1"), want)
		b.again()
		b.equal("after a restart", b.run("reserved1"), want)
		h := b.hold(nodeOne)
		run := ok(b.Begin(b.ctx, h.Lease, "given", ids(h.Waiting), storage.Beginning{}))(b)
		b.equal("begun", []any{run.ID, run.State, run.LastSeq}, []any{"reserved1", claybot.RunRunning, 1})
		b.equal("stored", b.run("reserved1"), run)
		_, err := b.Run(b.ctx, "given")
		b.is(err, storage.ErrNotFound)
		b.equal("held", ok(b.IndexedAgentByID(b.ctx, b.agent))(b).Run, "reserved1")
		b.succeed(h.Lease, "reserved1")
		b.equal("ended", b.run("reserved1").State, claybot.RunSucceeded)
		_, taken := b.receiptOf("m1")
		b.equal("taken by", taken, "reserved1")
	}},
	{"the first reserved id of a batch counts, the others lead to it", func(b *bed) {
		b.post("m1", instant)
		b.to(b.agent, reserving("m2", "reserved2"))
		b.to(b.agent, reserving("m3", "reserved3"))
		h := b.hold(nodeOne)
		b.equal("begun", ok(b.Begin(b.ctx, h.Lease, "given", ids(h.Waiting), storage.Beginning{}))(b).ID, "reserved2")
		b.to(b.agent, reserving("m4", "reserved4"))
		b.equal("pending", b.run("reserved4").State, claybot.RunPending)
		b.equal("injected", ids(ok(b.Take(b.ctx, h.Lease, "reserved2", 10, nil))(b)), []claybot.MessageID{"m4"})
		b.again()
		h = b.hold(nodeOne)
		m := note("m5", claybot.KindMessage)
		m.Run = "reserved5"
		b.to(b.agent, m)
		b.equal("resumed", ok(b.Begin(b.ctx, h.Lease, "given", []claybot.MessageID{"m5"}, storage.Beginning{}))(b).ID, "reserved2")
		for _, id := range []claybot.RunID{"reserved3", "reserved4", "reserved5"} {
			b.equal("joined", b.run(id), b.run("reserved2"))
			b.equal("no events of its own", len(b.events(id, 0)), 0)
		}
		b.equal("figures", b.figures().Runs, map[claybot.RunState]int{claybot.RunRunning: 1})
	}},
	{"an id can be reserved once", func(b *bed) {
		l, _ := b.begin("r1")
		b.to(b.agent, reserving("m1", "reserved1"))
		before := b.figures()
		other := b.newAgent("C2")
		before.Agents++
		for id, run := range map[string]claybot.RunID{"x1": "reserved1", "x2": "r1"} {
			for _, to := range []claybot.AgentID{b.agent, other} {
				for _, skip := range []string{"", "empty"} {
					if _, err := b.Post(b.ctx, storage.Posting{To: to, Message: reserving(id, run), Skip: skip}); err == nil {
						b.Fatalf("run %s was reserved again", run)
					}
				}
			}
			_, err := b.Receipt(b.ctx, claybot.MessageID(id))
			b.is(err, storage.ErrNotFound)
		}
		b.equal("nothing stored", b.figures(), before)
		b.equal("the repeat of the message is not another message", b.to(b.agent, reserving("m1", "reserved1")).Added, false)
		b.succeed(l, "r1")
		// An id that waits for its message is not given to another run.
		ok(b.Post(b.ctx, storage.Posting{To: other, Message: userMessage("o1"), Wait: instant}))(b)
		for _, h := range b.acquire(nodeOne, 2) {
			if h.Lease.Agent != other {
				continue
			}
			if _, err := b.Begin(b.ctx, h.Lease, "reserved1", ids(h.Waiting), storage.Beginning{}); err == nil {
				b.Fatal("a run began with the reserved id of another message")
			}
			ok(b.Begin(b.ctx, h.Lease, "r2", ids(h.Waiting), storage.Beginning{}))(b)
		}
		b.equal("still pending", b.run("reserved1").State, claybot.RunPending)
	}},
	{"other messages reserve nothing", func(b *bed) {
		for _, kind := range []claybot.MessageType{claybot.MessageCommand, claybot.MessageCompact, claybot.MessageReset, claybot.MessageCancel} {
			p := b.typed(kind, string(kind))
			p.Message.Run = claybot.RunID("r-" + string(kind))
			b.deliver(p)
			_, err := b.Run(b.ctx, p.Message.Run)
			b.is(err, storage.ErrNotFound)
		}
		b.to(b.agent, answer("late", "nowhere"))
		_, err := b.Run(b.ctx, "nowhere")
		b.is(err, storage.ErrNotFound)
	}},
	{"a message that ends without a run cancels its id", func(b *bed) {
		p := storage.Posting{To: b.agent, Message: reserving("skipped", "r-skipped"), Skip: "empty"}
		b.deliver(p)
		b.canceledBy("r-skipped", "skipped", "empty")
		p = storage.Posting{To: b.agent, Message: reserving("waits", "r-waits"), Wait: minute, MaxWaiting: 1}
		b.deliver(p)
		p.Message = reserving("full", "r-full")
		b.equal("full", b.deliver(p).Skipped, "inbox_full")
		b.canceledBy("r-full", "full", "inbox_full")
		ok(b.Drop(b.ctx, b.agent, "dropped", "waits"))(b)
		b.canceledBy("r-waits", "waits", "dropped")
		b.to(b.agent, reserving("before", "r-before"))
		b.deliver(b.typed(claybot.MessageReset, "reset"))
		b.canceledBy("r-before", "before", "reset")
		b.to(b.agent, reserving("settled", "r-settled"))
		l := b.hold(nodeOne).Lease
		ok(b.Settle(b.ctx, l, "settled", storage.Settlement{Reason: "why not"}))(b)
		b.canceledBy("r-settled", "settled", "why not")
		b.equal("figures", b.figures().Runs, map[claybot.RunState]int{claybot.RunCanceled: 5})
		_, err := b.LastRun(b.ctx, b.agent)
		b.is(err, storage.ErrNotFound) // none has begun
	}},
	{"of an agent that is removed", func(b *bed) {
		l, _ := b.begin("r1")
		b.to(b.agent, reserving("m1", "r-m1"))
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		b.canceledBy("r-m1", "m1", "agent_removed")
		b.equal("the run", b.run("r1").State, claybot.RunFailed)
		b.is(b.Release(b.ctx, l, instant, true), storage.ErrLeaseLost)
	}},
	{"the text after a reset may reserve", func(b *bed) {
		b.deliver(b.typed(claybot.MessageReset, "x"))
		l := b.hold(nodeOne).Lease
		taken := reserving("x/text", "r-x")
		ok(b.Settle(b.ctx, l, "x", storage.Settlement{Reason: "reset", Posts: []claybot.AgentMessage{taken}}))(b)
		b.equal("pending", b.run("r-x").State, claybot.RunPending)
		h := b.hold(nodeOne)
		b.equal("begun", ok(b.Begin(b.ctx, h.Lease, "given", ids(h.Waiting), storage.Beginning{}))(b).ID, "r-x")
	}},
	{"a cancel that names a run is for it alone", func(b *bed) {
		l, _ := b.begin("r1")
		stop := func(id string, run claybot.RunID) storage.Posted {
			p := b.typed(claybot.MessageCancel, id)
			p.Message.Run, p.IfIdle = run, []claybot.Outgoing{reply("idle-" + id)}
			return b.deliver(p)
		}
		done := stop("c1", "r0")
		b.equal("another", []any{done.Canceled, outIDs(done.Outbox), b.run("r1").Cancel}, []any{"", []string{"idle-c1"}, ""})
		b.equal("this one", []any{stop("c2", "r1").Canceled, b.run("r1").Cancel}, []any{"r1", "user"})
		ok(b.Finish(b.ctx, l, "r1", storage.Outcome{State: claybot.RunCanceled, Events: []claybot.Event{{Type: claybot.EventRunCanceled}}}))(b)
		b.equal("ended", stop("c3", "r1").Canceled, "")
	}},
	{"many at once", func(b *bed) {
		for i := range 30 {
			b.to(b.agent, reserving(fmt.Sprint("m", i), claybot.RunID(fmt.Sprint("r", i))))
		}
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "given", ids(h.Waiting)[:10], storage.Beginning{}))(b)
		for i := range 30 {
			want := claybot.RunPending
			if i < 10 {
				want = claybot.RunRunning
			}
			b.equal(fmt.Sprint("r", i), b.run(claybot.RunID(fmt.Sprint("r", i))).State, want)
		}
		b.equal("dropped", len(ok(b.Drop(b.ctx, b.agent, "enough"))(b)), 20)
		b.canceledBy("r29", "m29", "enough")
	}},
}
