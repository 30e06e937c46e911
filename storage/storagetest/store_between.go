package storagetest

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// asked is a message for which run w1 of the bed's agent waits.
func (b *bed) asked(id string) claybot.AgentMessage {
	m := note(id, claybot.KindTask)
	m.Awaited = &claybot.Awaited{Agent: b.agent, Run: "w1", ID: claybot.MessageID("answer/" + id)}
	return m
}

// waits makes the bed's agent wait in run w1 for the answers to messages.
func (b *bed) waits(messages ...string) {
	b.Helper()
	lease, _ := b.begin("w1")
	var answers []claybot.MessageID
	for _, id := range messages {
		answers = append(answers, claybot.MessageID("answer/"+id))
	}
	b.pause(lease, "w1", answers...)
}

// refusedWith checks the answer that the store itself gave.
func (b *bed) refusedWith(id, why string, from claybot.AgentID) {
	b.Helper()
	r := ok(b.Receipt(b.ctx, claybot.MessageID("answer/"+id)))(b)
	a := r.Message.Answer
	if r.Message.Type != claybot.MessageAnswer || a == nil || a.OK || a.Error != why || (a.Lost == claybot.LostDropped) != (why == "the message was dropped") || a.AgentID != from || r.Message.At == 0 {
		b.Fatalf("answer to %s is %+v, want the error %q", id, a, why)
	}
}

var betweenTests = []storeTest{
	{"the end of a run and its posts are one", func(b *bed) { // SA-15
		kid := b.child("1", b.agent)
		b.waits("task")
		b.to(kid, b.asked("task"))
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "k1", ids(h.Waiting), storage.Beginning{}))(b)
		third := b.newAgent("C3")
		o := success()
		o.Posts = []storage.Posting{
			{To: b.agent, Message: answer("answer/task", "w1")},
			{To: third, Message: note("result/k1", claybot.KindResult), Wait: minute, Replies: []claybot.Outgoing{reply("o9")}},
			{To: kid, Message: note("self", claybot.KindNotice)},
		}
		o.Replies = []claybot.Outgoing{reply("o1")}
		// One receiver that is gone refuses it all.
		bad := o
		bad.Posts = append(bad.Posts[:3:3], storage.Posting{To: "gone", Message: note("n", claybot.KindNotice)})
		_, err := b.Finish(b.ctx, h.Lease, "k1", bad)
		b.is(err, storage.ErrNotFound)
		b.equal("nothing happened", []any{b.run("k1").State, b.figures().Waiting, b.run("w1").Messages}, []any{claybot.RunRunning, 0, []claybot.MessageID{"m-w1"}})
		o.Posts = append(o.Posts, storage.Posting{To: "gone", Message: answer("a", "r")})
		b.equal("replies", outIDs(ok(b.Finish(b.ctx, h.Lease, "k1", o))(b)), []string{"o1", "o9"})
		_, err = b.Receipt(b.ctx, "a")
		b.is(err, storage.ErrNotFound)
		acquired := b.acquire(nodeTwo, 2)
		if acquired[0].Run == nil { // both are due since the same moment
			acquired[0], acquired[1] = acquired[1], acquired[0]
		}
		b.equal("the waiting run and the poster", []any{acquired[0].Run != nil, acquired[0].Lease.Agent, acquired[1].Lease.Agent, ids(acquired[1].Waiting)},
			[]any{true, b.agent, kid, []claybot.MessageID{"self"}})
		b.equal("waits for its company", ids(ok(b.Waiting(b.ctx, third, 9))(b)), []claybot.MessageID{"result/k1"})
	}},
	{"a known post is ignored", func(b *bed) {
		other := b.newAgent("C2")
		b.to(other, note("n", claybot.KindNotice))
		b.hold(nodeOne)
		lease, _ := b.begin("r1")
		o := success()
		o.Posts = []storage.Posting{{To: other, Message: note("n", claybot.KindNotice)}}
		ok(b.Finish(b.ctx, lease, "r1", o))(b)
		b.equal("waiting", b.figures().Waiting, 1)
	}},
	{"what will not run is answered", func(b *bed) {
		const dropped = "the message was dropped"
		kid := b.child("1", b.agent)
		b.waits("skipped", "full", "some", "all", "settled")
		b.deliver(storage.Posting{To: kid, Message: b.asked("skipped"), Skip: "unknown_task"})
		b.refusedWith("skipped", dropped, kid)
		b.to(kid, b.asked("some"))
		b.deliver(storage.Posting{To: kid, Message: b.asked("full"), MaxWaiting: 1})
		b.refusedWith("full", dropped+": too many others wait for this agent", kid)
		b.deliver(storage.Posting{To: kid, Message: b.asked("full"), MaxWaiting: 1}) // a repeat answers no agent twice
		b.to(kid, b.asked("all"))
		ok(b.Drop(b.ctx, kid, "operator", "some"))(b)
		b.refusedWith("some", dropped, kid)
		_, err := b.Receipt(b.ctx, "answer/all")
		b.is(err, storage.ErrNotFound)
		b.to(kid, b.asked("settled"))
		l := b.hold(nodeOne).Lease
		ok(b.Settle(b.ctx, l, "settled", storage.Settlement{Reason: "expired"}))(b)
		b.refusedWith("settled", dropped, kid)
		ok(b.Drop(b.ctx, kid, "operator"))(b)
		b.refusedWith("all", dropped, kid)
		_, reason := b.resume("w1")
		b.equal("then it goes on", reason, "answers")
		b.equal("in order", b.run("w1").Messages, []claybot.MessageID{"m-w1", "answer/skipped", "answer/full", "answer/some", "answer/settled", "answer/all"})
	}},
	{"an agent that waits for itself", func(b *bed) { // no agent should, and nothing breaks
		b.waits("own")
		b.to(b.agent, b.asked("own"))
		ok(b.Drop(b.ctx, b.agent, "operator"))(b)
		_, reason := b.resume("w1")
		b.equal("goes on", []any{reason, b.figures().Waiting}, []any{"answers", 0})
	}},
	{"no agent is left to answer", func(b *bed) {
		kid := b.child("1", b.agent)
		for i, w := range []claybot.Awaited{{Agent: "gone", Run: "r", ID: "x"}, {Agent: b.agent, Run: "r", ID: "y"}, {Agent: b.agent, Run: "r"}, {}} {
			m := note(string(rune('a'+i)), claybot.KindTask)
			m.Awaited = &w
			b.deliver(storage.Posting{To: kid, Message: m, Skip: "odd"})
		}
		skipped, _ := b.receiptOf("y")
		b.equal("too late", skipped, "run_ended")
		_, err := b.Receipt(b.ctx, "x")
		b.is(err, storage.ErrNotFound)
	}},
	{"removal tells who waits", func(b *bed) {
		kid := b.child("1", b.agent)
		b.waits("bound", "waiting")
		b.to(kid, b.asked("bound"))
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "k1", ids(h.Waiting), storage.Beginning{}))(b)
		b.to(kid, b.asked("waiting"))
		b.noError(b.UnindexAgent(b.ctx, kid))
		b.noError(b.UnindexAgent(b.ctx, kid))
		b.refusedWith("bound", "the agent was deleted", kid)
		b.refusedWith("waiting", "the agent was deleted", kid)
		b.equal("no notice besides", []any{b.figures().Waiting, b.run("k1").State}, []any{0, claybot.RunFailed})
		_, reason := b.resume("w1")
		b.equal("goes on", reason, "answers")
	}},
	{"removal tells the parent of what ran", func(b *bed) { // SA-20
		kid := b.child("1", b.agent)
		b.to(kid, note("task", claybot.KindTask))
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "k1", ids(h.Waiting), storage.Beginning{}))(b)
		b.to(kid, note("more", claybot.KindMessage))
		b.noError(b.UnindexAgent(b.ctx, kid))
		got := b.hold(nodeOne).Waiting
		b.equal("messages", ids(got), []claybot.MessageID{"failure/k1"})
		m := got[0]
		b.equal("notice", []any{m.Type, m.Kind, m.From.Agent, m.Text}, []any{
			claybot.MessageSystem, claybot.KindFailure, kid,
			`The subagent "worker 1" (` + string(kid) + `) failed in run k1: the agent was deleted.`,
		})
		// An idle agent, an orphan and a user agent notify no agent.
		b.noError(b.UnindexAgent(b.ctx, b.child("2", b.agent)))
		orphan := b.child("3", "gone")
		b.to(orphan, note("t3", claybot.KindTask))
		h = b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "k3", ids(h.Waiting), storage.Beginning{}))(b)
		b.noError(b.UnindexAgent(b.ctx, orphan))
		b.equal("waiting", b.figures().Waiting, 1)
	}},
	{"removal of a paused agent", func(b *bed) {
		b.waits("task")
		b.noError(b.AddReminder(b.ctx, storage.Reminder{ID: "1", Agent: b.agent, Due: 1}, 9))
		mine, others := "agent/"+string(b.agent), "owner/telegram/U1"
		b.noError(b.SaveDocument(b.ctx, mine, "a", "x", 9))
		b.noError(b.SaveDocument(b.ctx, others, "a", "x", 9))
		b.noError(b.SaveMemory(b.ctx, mine, storage.Memory{Path: "a", Text: "x"}, 9))
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		b.equal("run", []any{b.run("w1").State, b.run("w1").Awaiting}, []any{claybot.RunFailed, nil})
		b.equal("figures", b.figures().Runs, map[claybot.RunState]int{claybot.RunFailed: 1})
		b.equal("left behind", []any{
			len(ok(b.Reminders(b.ctx, b.agent))(b)), len(ok(b.Documents(b.ctx, mine))(b)), len(ok(b.Documents(b.ctx, others))(b)),
			len(ok(b.Memories(b.ctx, mine))(b)), len(ok(b.MemoryVersions(b.ctx, mine, "", 9))(b)),
		}, []any{0, 0, 1, 0, 0})
		b.neverDue("no agent is left")
	}},
	{"answers are not shown", func(b *bed) {
		lease, _ := b.begin("r1")
		b.to(b.agent, answer("a1", "r1"))
		b.to(b.agent, note("n1", claybot.KindNotice))
		b.succeed(lease, "r1")
		lines := ok(b.Transcript(b.ctx, b.agent, dest, 10))(b)
		b.equal("lines", []any{len(lines), lines[0].Message.ID}, []any{1, "m-r1"})
	}},
}
