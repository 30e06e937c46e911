package storagetest

import (
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// unsent is the only unfinished message.
func (b *bed) unsent() claybot.Outgoing {
	b.Helper()
	out := ok(b.Unsent(b.ctx, dest, 0, 10))(b)
	if len(out) != 1 {
		b.Fatalf("%d unfinished messages, want 1", len(out))
	}
	return out[0]
}

func (b *bed) resolve(id string, r storage.Resolution) {
	b.Helper()
	b.noError(b.resolveErr(id, r))
}

var outboxTests = []storeTest{
	{"in order, for each destination", func(b *bed) {
		other := reply("x1")
		other.Route.ChannelID = "C2"
		added := ok(b.Enqueue(b.ctx, reply("o1"), other, reply("o2"), reply("o1")))(b)
		b.equal("added", outIDs(added), []string{"o1", "x1", "o2"})
		b.equal("known ids", len(ok(b.Enqueue(b.ctx, reply("o1")))(b)), 0)
		ok(b.Enqueue(b.ctx, reply("o3")))(b)
		all := ok(b.Unsent(b.ctx, dest, 0, 10))(b)
		b.equal("unsent", outIDs(all), []string{"o1", "o2", "o3"})
		b.equal("as stored", all[0], added[0])
		b.equal("limit", outIDs(ok(b.Unsent(b.ctx, dest, 0, 2))(b)), []string{"o1", "o2"})
		b.equal("after", outIDs(ok(b.Unsent(b.ctx, dest, all[1].N, 9))(b)), []string{"o3"})
		b.equal("destinations", sorted(ok(b.UnsentDests(b.ctx))(b)), []string{dest, other.Route.Dest()})
		b.resolve("x1", storage.Resolution{State: claybot.SendFailed, Cause: "blocked"})
		b.equal("one is done", ok(b.UnsentDests(b.ctx))(b), []string{dest})
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: 3, claybot.SendFailed: 1})
	}},
	{"sent", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		time.Sleep(time.Second)
		b.noError(b.attempt("o1"))
		o := b.unsent()
		b.equal("attempted", []any{o.State, o.Attempts, o.Tried}, []any{claybot.SendAttempted, 1, claybot.Now()})
		b.resolve("o1", storage.Resolution{State: claybot.SendSent, Receipt: "77"})
		b.equal("unsent", len(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), 0)
		b.resolve("o1", storage.Resolution{State: claybot.SendSent, Receipt: "78"}) // bookkeeping that came twice
		if b.resolveErr("o1", storage.Resolution{State: claybot.SendWaiting}) == nil || b.attempt("o1") == nil {
			b.Fatal("a sent message was opened again")
		}
		sent := ok(b.SentAfter(b.ctx, dest, 0, 10))(b)
		b.equal("kept", []any{sent[0].State, sent[0].Receipt}, []any{claybot.SendSent, "77"})
	}},
	{"not sent, again later", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		due := time.Now().Add(time.Minute)
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, Due: due, Cause: "dns"})
		o := b.unsent()
		b.equal("deferred", []any{o.State, o.Attempts, o.Due, o.Cause}, []any{claybot.SendWaiting, 1, claybot.At(due), "dns"})
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, Due: due, Free: true})
		o = b.unsent()
		b.equal("a 429 costs no attempt", []any{o.Attempts, o.Cause}, []any{1, "dns"})
	}},
	{"ambiguous", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2")))(b)
		for _, id := range []string{"o1", "o2"} {
			b.noError(b.attempt(id))
			b.resolve(id, storage.Resolution{State: claybot.SendAmbiguous, Cause: "cut"})
		}
		b.resolve("o2", storage.Resolution{State: claybot.SendSent, Receipt: "found"})
		b.equal("state", b.unsent().State, claybot.SendAmbiguous)
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, Resent: true})
		b.noError(b.attempt("o1"))
		o := b.unsent()
		b.equal("marked", []any{o.Resent, o.Text, o.Attempts}, []any{true, "text of o1", 2})
		f := b.figures()
		b.equal("figures", []any{f.Ambiguous, f.Outbox}, []any{2, map[claybot.SendState]int{claybot.SendAttempted: 1, claybot.SendSent: 1}})
	}},
	{"an answer whose beginning may be visible", func(b *bed) {
		lease, _ := b.begin("r1")
		o := reply("o1")
		o.State, o.Tried = claybot.SendAmbiguous, 5
		out := b.succeed(lease, "r1", o)
		b.equal("stored", []any{out[0].State, out[0].Tried}, []any{claybot.SendAmbiguous, 5})
		b.equal("unsent", b.unsent(), out[0])
		b.equal("ambiguous", b.figures().Ambiguous, 1)
		for _, s := range []claybot.SendState{claybot.SendSent, claybot.SendFailed, claybot.SendAttempted} {
			o := reply("o2")
			o.State = s
			if _, err := b.Enqueue(b.ctx, o); err == nil {
				b.Fatalf("a message began as %s", s)
			}
		}
	}},
	{"a reply that is sent as soon as it is stored", func(b *bed) {
		finish := func(run string, claim storage.Claim, replies ...claybot.Outgoing) (states []claybot.SendState) {
			b.Helper()
			lease, _ := b.begin(claybot.RunID(run))
			o := success(replies...)
			o.Sending = claim
			for _, o := range ok(b.Finish(b.ctx, lease, claybot.RunID(run), o))(b) {
				states = append(states, o.State)
				stored := ok(b.OutgoingByID(b.ctx, o.ID))(b)
				b.equal("as returned", []any{stored.State, stored.Attempts, stored.Tried}, []any{o.State, o.Attempts, o.Tried})
			}
			return states
		}
		const waiting, attempted = claybot.SendWaiting, claybot.SendAttempted
		b.equal("the first alone", finish("r1", b.claim(), reply("o1"), reply("o2")), []claybot.SendState{attempted, waiting})
		first := ok(b.OutgoingByID(b.ctx, "o1"))(b)
		b.equal("as by Attempt", []any{first.Attempts, first.Tried}, []any{1, claybot.Now()})
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{attempted: 1, waiting: 1})
		b.resolve("o1", storage.Resolution{State: claybot.SendSent, Receipt: "1"})
		b.equal("behind another one", finish("r2", b.claim(), reply("o3")), []claybot.SendState{waiting})
		for _, id := range []string{"o2", "o3"} {
			b.resolve(id, storage.Resolution{State: claybot.SendFailed})
		}
		b.equal("of another destination", finish("r3", b.claimOf("telegram\x00elsewhere"), reply("o4")), []claybot.SendState{waiting})
		b.resolve("o4", storage.Resolution{State: claybot.SendFailed})
		later, visible := reply("o5"), reply("o6")
		later.Due = claybot.At(time.Now().Add(time.Minute))
		visible.State = claybot.SendAmbiguous
		b.equal("not due", finish("r4", b.claim(), later), []claybot.SendState{waiting})
		b.resolve("o5", storage.Resolution{State: claybot.SendFailed})
		b.equal("may be visible", finish("r5", b.claim(), visible), []claybot.SendState{claybot.SendAmbiguous})
		b.resolve("o6", storage.Resolution{State: claybot.SendFailed})
		b.equal("known", finish("r6", b.claim(), reply("o6"), reply("o7")), []claybot.SendState{waiting})
		b.resolve("o7", storage.Resolution{State: claybot.SendFailed})
		b.equal("again", finish("r7", b.claim(), reply("o8")), []claybot.SendState{attempted})
		b.again()
		b.equal("cut by a crash", b.unsent().State, claybot.SendAmbiguous)
	}},
	{"a reply whose claim has ended waits", shared(func(b *bed) {
		claim := b.claim()
		claim.Token-- // that of an earlier one
		lease, _ := b.begin("r1")
		o := success(reply("o1"))
		o.Sending = claim
		b.equal("state", ok(b.Finish(b.ctx, lease, "r1", o))(b)[0].State, claybot.SendWaiting)
	})},
	{"attempts cut by a crash are ambiguous", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2")))(b)
		b.noError(b.attempt("o1"))
		b.again()
		out := ok(b.Unsent(b.ctx, dest, 0, 10))(b)
		b.equal("states", []any{out[0].State, out[0].Attempts, out[1].State}, []any{claybot.SendAmbiguous, 1, claybot.SendWaiting})
		b.equal("ambiguous", b.figures().Ambiguous, 1)
	}},
	{"copies", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.noError(b.attempt("o1"))
		for range 2 { // recorded once more, it counts nothing more
			b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, Copies: 1})
		}
		b.again()
		b.equal("kept", []any{b.unsent().Copies, b.unsent().Resent}, []any{1, false})
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendAmbiguous})
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Copies: 2})
		o := ok(b.OutgoingByID(b.ctx, "o1"))(b)
		b.equal("given up", []any{o.State, o.Copies, o.Resent}, []any{claybot.SendFailed, 2, true})
		b.equal("sent again by an operator", ok(b.Retry(b.ctx, "o1"))(b).Copies, 2)
	}},
	{"a notice commits with the failure it is about", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2")))(b)
		b.noError(b.attempt("o1"))
		notice := reply("undelivered/o1")
		for range 2 {
			b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Notices: []claybot.Outgoing{notice}})
		}
		b.again()
		b.equal("once, behind what waits", outIDs(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), []string{"o2", "undelivered/o1"})
		b.noError(b.attempt("o2"))
		b.resolve("o2", storage.Resolution{State: claybot.SendSent})
		late := reply("undelivered/o2")
		if b.resolveErr("o2", storage.Resolution{State: claybot.SendFailed, Notices: []claybot.Outgoing{late}}) == nil {
			b.Fatal("a sent message failed")
		}
		b.equal("none about what was sent", b.unsent().ID, "undelivered/o1")
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: 1, claybot.SendSent: 1, claybot.SendFailed: 1})
	}},
	{"a mark commits with the failure it is about", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2")))(b)
		b.noError(b.attempt("o1"))
		elsewhere := reply("rerouted/o1/1")
		elsewhere.Route.ChannelID = "elsewhere"
		dead := storage.Checkpoint{Key: "dead route/telegram/1", Value: "{}"}
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Notices: []claybot.Outgoing{elsewhere}, Mark: dead})
		b.again()
		b.equal("the mark", ok(b.Checkpoint(b.ctx, dead.Key))(b), dead.Value)
		b.noError(b.SetCheckpoints(b.ctx, map[string]string{"dead route": "x", "dead route0": "x", "dead router/": "x", "dead routes": "x"}))
		b.equal("listed", ok(b.ListCheckpoints(b.ctx, "dead route/"))(b), []storage.Checkpoint{dead})
		b.equal("sent elsewhere", outIDs(ok(b.Unsent(b.ctx, elsewhere.Route.Dest(), 0, 10))(b)), []string{elsewhere.ID})
		b.noError(b.SetCheckpoints(b.ctx, map[string]string{dead.Key: ""}))
		b.equal("removed", len(ok(b.ListCheckpoints(b.ctx, "dead route/"))(b)), 0)
		late := storage.Checkpoint{Key: "dead route/telegram/2", Value: "{}"}
		if b.resolveErr("o1", storage.Resolution{State: claybot.SendSent, Mark: late}) == nil {
			b.Fatal("a failed message was sent")
		}
		b.equal("none about what has ended", ok(b.Checkpoint(b.ctx, late.Key))(b), "")
	}},
	{"an edit whose message is gone", func(b *bed) {
		o := reply("o1")
		o.Edit, o.EditOf = "55", "o0"
		ok(b.Enqueue(b.ctx, o))(b)
		b.equal("edits", b.unsent().Edit, "55")
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, NoEdit: true})
		b.equal("sends afresh", []any{b.unsent().Edit, b.unsent().EditOf, b.unsent().Resent}, []any{"", "", false})
	}},
	{"an edit of a message that was found", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, Edit: "55"})
		b.again()
		o := b.unsent()
		b.equal("edits", []any{o.Edit, o.State, o.Text}, []any{"55", claybot.SendWaiting, "text of o1"})
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, NoEdit: true, Edit: "56"})
		b.equal("another one", b.unsent().Edit, "56")
	}},
	{"unknown and impossible", func(b *bed) {
		b.is(b.attempt("o1"), storage.ErrNotFound)
		b.is(b.resolveErr("o1", storage.Resolution{State: claybot.SendSent}), storage.ErrNotFound)
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		for _, s := range []claybot.SendState{"", claybot.SendAttempted, "delivered"} {
			if b.resolveErr("o1", storage.Resolution{State: s}) == nil {
				b.Fatalf("an attempt ended as %q", s)
			}
		}
		b.equal("unchanged", b.unsent().State, claybot.SendWaiting)
	}},
	{"the last position", func(b *bed) {
		b.equal("of none", ok(b.LastN(b.ctx, dest))(b), int64(0))
		other := reply("x1")
		other.Route.ChannelID = "C2"
		added := ok(b.Enqueue(b.ctx, reply("o1"), reply("o2"), other))(b)
		b.equal("of one destination", ok(b.LastN(b.ctx, dest))(b), added[1].N)
		b.equal("of the other", ok(b.LastN(b.ctx, other.Route.Dest()))(b), added[2].N)
		b.resolve("o2", storage.Resolution{State: claybot.SendFailed, Cause: "blocked"})
		b.equal("failed ones count", ok(b.LastN(b.ctx, dest))(b), added[1].N)
	}},
	{"transcript", func(b *bed) {
		for i := 1; i <= 5; i++ {
			b.post(fmt.Sprint("m", i), minute)
			time.Sleep(ms)
			ok(b.Enqueue(b.ctx, reply(fmt.Sprint("o", i))))(b)
			time.Sleep(ms)
		}
		b.deliver(b.typed(claybot.MessageCancel, "stop"))
		elsewhere := reply("x1")
		elsewhere.Route.ChannelID = "C2"
		ok(b.Enqueue(b.ctx, elsewhere))(b)
		list := func(limit int) (names []string) {
			for _, e := range ok(b.Transcript(b.ctx, b.agent, dest, limit))(b) {
				if e.Message != nil {
					names = append(names, string(e.Message.ID))
				} else {
					names = append(names, e.Outgoing.ID)
				}
			}
			return names
		}
		b.deliver(b.typed(claybot.MessageSystem, "tick"))
		b.equal("newest", list(3), []string{"m5", "o5", "stop"})
		b.equal("all", list(100), []string{"m1", "o1", "m2", "o2", "m3", "o3", "m4", "o4", "m5", "o5", "stop"})
		b.post("m6", minute)
		ok(b.Enqueue(b.ctx, reply("o6")))(b)
		b.equal("an answer within the millisecond", list(2), []string{"m6", "o6"})
		sent := ok(b.SentAfter(b.ctx, dest, 0, 3))(b)
		b.equal("sent", outIDs(sent), []string{"o1", "o2", "o3"})
		b.equal("sent after", outIDs(ok(b.SentAfter(b.ctx, dest, sent[2].N, 10))(b)), []string{"o4", "o5", "o6"})
	}},
}
