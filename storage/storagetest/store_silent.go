package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// note is a system message of another agent.
func note(id string, kind claybot.SystemKind) claybot.AgentMessage {
	m := userMessage(id)
	m.Type, m.Kind, m.From = claybot.MessageSystem, kind, claybot.Sender{Agent: "another"}
	return m
}

// silently posts a message that wakes no agent.
func (b *bed) silently(id string) storage.Posted {
	b.Helper()
	m := note(id, claybot.KindMessage)
	m.Silent = true
	return b.to(b.agent, m)
}

var silentTests = []storeTest{
	{"it wakes no agent and comes with the next", func(b *bed) { // SA-04
		b.equal("posted", b.silently("s1"), storage.Posted{Added: true})
		b.neverDue("silent alone")
		b.acquire(nodeOne, 0)
		b.equal("waiting", []any{b.figures().Waiting, ids(ok(b.Waiting(b.ctx, b.agent, 10))(b))}, []any{1, []claybot.MessageID{"s1"}})
		b.again()
		b.neverDue("after a restart")
		b.noError(b.Reschedule(b.ctx, "", func(claybot.AgentID, claybot.Descriptor) storage.Wait { return instant }))
		b.neverDue("rescheduled")
		time.Sleep(time.Hour)
		b.post("m1", minute)
		b.dueIn("m1", time.Minute)
		time.Sleep(10 * time.Second)
		b.silently("s2")
		b.dueIn("a silent one changes nothing", 50*time.Second)
		time.Sleep(50 * time.Second)
		h := b.hold(nodeOne)
		b.equal("together", ids(h.Waiting), []claybot.MessageID{"s1", "m1", "s2"})
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.silently("s3")
		b.equal("not injected alone", len(ok(b.Take(b.ctx, h.Lease, "r1", 10, nil))(b)), 0)
		b.succeed(h.Lease, "r1")
		b.neverDue("after the run")
	}},
	{"injected with company", func(b *bed) {
		lease, _ := b.begin("r1")
		b.silently("s1")
		b.post("m2", instant)
		b.silently("s3")
		b.equal("taken", ids(ok(b.Take(b.ctx, lease, "r1", 10, nil))(b)), []claybot.MessageID{"s1", "m2", "s3"})
	}},
	{"dropping the last that is loud", func(b *bed) {
		b.silently("s1")
		b.post("m1", minute)
		ok(b.Drop(b.ctx, b.agent, "operator", "m1"))(b)
		b.neverDue("only a silent one is left")
		b.equal("waiting", b.figures().Waiting, 1)
		b.post("m2", minute)
		b.dueIn("m2", time.Minute)
	}},
	{"only system messages can be silent", func(b *bed) {
		m := userMessage("m1")
		m.Silent = true
		b.to(b.agent, m)
		b.dueNow("a user is always heard")
		p := b.typed(claybot.MessageReset, "x")
		p.Message.Silent = true
		b.deliver(p)
		b.equal("reset", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"x"})
	}},
	{"a reset leaves what others wrote", func(b *bed) {
		b.to(b.agent, note("n1", claybot.KindFailure))
		b.post("m1", minute)
		b.silently("s1")
		b.deliver(b.typed(claybot.MessageReset, "x1"))
		b.to(b.agent, note("n2", claybot.KindReminder))
		done := b.deliver(b.typed(claybot.MessageReset, "x2"))
		b.equal("the person's words go", done.Dropped, []claybot.MessageID{"x1"})
		skipped, _ := b.receiptOf("m1")
		b.equal("m1", skipped, "reset")
		b.dueIn("reset", 0)
		h := b.hold(nodeOne)
		b.equal("behind the reset", ids(h.Waiting), []claybot.MessageID{"x2", "n1", "s1", "n2"})
		ok(b.Settle(b.ctx, h.Lease, "x2", storage.Settlement{Reason: "reset"}))(b)
		b.equal("and then they run", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"n1", "s1", "n2"})
	}},
	{"a reset before silent ones only", func(b *bed) {
		b.silently("s1")
		b.deliver(b.typed(claybot.MessageReset, "x"))
		h := b.hold(nodeOne)
		b.equal("held", ids(h.Waiting), []claybot.MessageID{"x", "s1"})
		ok(b.Settle(b.ctx, h.Lease, "x", storage.Settlement{Reason: "reset"}))(b)
		b.neverDue("settled")
	}},
	{"waiting messages are listed", func(b *bed) {
		for _, id := range []string{"m1", "m2", "m3"} {
			b.post(id, minute)
		}
		b.equal("two", ids(ok(b.Waiting(b.ctx, b.agent, 2))(b)), []claybot.MessageID{"m1", "m2"})
		b.equal("none", len(ok(b.Waiting(b.ctx, b.agent, 0))(b)), 0)
		b.equal("of an unknown agent", len(ok(b.Waiting(b.ctx, "nobody", 9))(b)), 0)
	}},
}
