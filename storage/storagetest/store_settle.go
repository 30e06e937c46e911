package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var settleTests = []storeTest{
	{"a reset with a text", func(b *bed) {
		b.deliver(b.typed(claybot.MessageReset, "x"))
		b.post("m1", minute)
		h := b.hold(nodeOne)
		text := userMessage("x/text")
		s := storage.Settlement{Reason: "reset", Replies: []claybot.Outgoing{reply("o1")}, Posts: []claybot.AgentMessage{text}, Wait: minute}
		b.equal("replies", outIDs(ok(b.Settle(b.ctx, h.Lease, "x", s))(b)), []string{"o1"})
		r := ok(b.Receipt(b.ctx, "x"))(b)
		b.equal("receipt", []any{r.Skipped, outIDs(r.Replies)}, []any{"reset", []string{"o1"}})
		b.equal("due at once", ids(b.hold(nodeTwo).Waiting), []claybot.MessageID{"m1", "x/text"})
		b.refusesLease(h.Lease, "r1", "m1")
	}},
	{"what waits besides is due by its own time", func(b *bed) {
		b.deliver(b.typed(claybot.MessageReset, "x"))
		b.post("m1", minute)
		time.Sleep(time.Second)
		l := b.hold(nodeOne).Lease
		ok(b.Settle(b.ctx, l, "x", storage.Settlement{Reason: "reset", Wait: minute}))(b)
		b.dueIn("m1", 59*time.Second)
	}},
	{"known posts and replies are ignored", func(b *bed) {
		b.post("m1", instant)
		b.post("m2", instant)
		l := b.hold(nodeOne).Lease
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		s := storage.Settlement{Reason: "again", Replies: []claybot.Outgoing{reply("o1")}, Posts: []claybot.AgentMessage{userMessage("m2")}}
		b.equal("replies", len(ok(b.Settle(b.ctx, l, "m1", s))(b)), 0)
		b.equal("waiting", b.figures().Waiting, 1)
	}},
	{"only what waits", func(b *bed) {
		b.post("m1", instant)
		other := b.newAgent("C2")
		ok(b.Post(b.ctx, storage.Posting{To: other, Message: userMessage("foreign"), Wait: minute}))(b)
		l := b.hold(nodeOne).Lease
		for _, id := range []claybot.MessageID{"unknown", "foreign"} {
			_, err := b.Settle(b.ctx, l, id, storage.Settlement{Reason: "reset", Replies: []claybot.Outgoing{reply("o1")}})
			b.is(err, storage.ErrNotFound)
		}
		b.equal("outbox", len(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), 0)
		ok(b.Settle(b.ctx, l, "m1", storage.Settlement{Reason: "reset"}))(b)
		b.neverDueBefore(minute.Quiet)
	}},
	{"receipts", func(b *bed) {
		_, err := b.LastReceipt(b.ctx, b.agent)
		b.is(err, storage.ErrNotFound)
		_, err = b.Receipt(b.ctx, "m1")
		b.is(err, storage.ErrNotFound)
		b.post("m1", instant)
		r := ok(b.Receipt(b.ctx, "m1"))(b)
		b.equal("waiting", []any{r.Message, r.Skipped, r.Run, r.Replies}, []any{userMessage("m1"), "", nil, []claybot.Outgoing(nil)})
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.succeed(h.Lease, "r1", reply("o1"), reply("o2"))
		b.noError(b.attempt("o1"))
		b.noError(b.resolveErr("o1", storage.Resolution{State: claybot.SendSent, Receipt: "77"}))
		r = ok(b.Receipt(b.ctx, "m1"))(b)
		b.equal("answered", []any{r.Run.State, outIDs(r.Replies), r.Replies[0].State, r.Replies[0].Receipt, r.Replies[1].State},
			[]any{claybot.RunSucceeded, []string{"o1", "o2"}, claybot.SendSent, "77", claybot.SendWaiting})
		b.deliver(b.typed(claybot.MessageCommand, "why"))
		b.equal("last user message", ok(b.LastReceipt(b.ctx, b.agent))(b).Message.ID, "m1")
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("m2"), Skip: "empty"})
		b.equal("also a skipped one", ok(b.LastReceipt(b.ctx, b.agent))(b).Skipped, "empty")
		b.deliver(storage.Posting{To: b.agent, Message: claybot.AgentMessage{ID: "s1", Type: claybot.MessageSystem, Text: "not of a person"}})
		all, last, err := b.Typed(b.ctx, b.agent, 0, 10)
		b.noError(err)
		newest, at, err := b.Typed(b.ctx, b.agent, 0, 1)
		b.noError(err)
		none, still, err := b.Typed(b.ctx, b.agent, last, 10)
		b.noError(err)
		b.equal("messages of people", []any{len(all), all[0], all[2], newest, at == last, none, still == last},
			[]any{3, claybot.MessageID("m1"), claybot.MessageID("m2"), []claybot.MessageID{"m2"}, true, []claybot.MessageID(nil), true})
		b.deliver(storage.Posting{To: b.agent, Message: claybot.AgentMessage{ID: "d1", Type: claybot.MessageDelete, Amends: "m2"}})
		after, _, err := b.Typed(b.ctx, b.agent, last, 10)
		b.noError(err)
		b.equal("a deletion", after, []claybot.MessageID{"d1"})
	}},
}

// neverDueBefore checks that nothing is due for d.
func (b *bed) neverDueBefore(d time.Duration) {
	b.Helper()
	if next := b.due(); !next.IsZero() && time.Until(next) < d {
		b.Fatalf("due in %v, want %v at least", time.Until(next), d)
	}
}
