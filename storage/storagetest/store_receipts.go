package storagetest

import (
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func (b *bed) found(ref string, want ...claybot.MessageID) {
	b.Helper()
	b.equal("found by "+ref, ok(b.FindMessages(b.ctx, ref))(b), want)
}

var receiptTests = []storeTest{
	{"of a message that waits", func(b *bed) {
		start := claybot.Now()
		for i := range 12 {
			b.post(fmt.Sprint("m", i), minute)
			time.Sleep(ms)
		}
		r := ok(b.Receipt(b.ctx, "m0"))(b)
		b.equal("first", []any{r.Stored, r.Due, r.Busy, r.Ahead, r.Before}, []any{start, claybot.At(b.due()), "", 0, []claybot.MessageID(nil)})
		r = ok(b.Receipt(b.ctx, "m11"))(b)
		var before []claybot.MessageID
		for i := range 10 {
			before = append(before, claybot.MessageID(fmt.Sprint("m", i)))
		}
		b.equal("last", []any{r.Stored, r.Ahead, r.Before}, []any{start + 11, 11, before})
		time.Sleep(time.Hour)
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting)[:11], storage.Beginning{}))(b)
		r = ok(b.Receipt(b.ctx, "m11"))(b)
		b.equal("behind a run", []any{r.Busy, r.Ahead, len(r.Before), r.Run}, []any{"r1", 0, 0, (*claybot.Run)(nil)})
		r = ok(b.Receipt(b.ctx, "m3"))(b)
		b.equal("taken", []any{r.Stored, r.Due, r.Busy, r.Ahead, r.Run.ID}, []any{start + 3, 0, "", 0, "r1"})
		ok(b.Drop(b.ctx, b.agent, "dropped"))(b)
		r = ok(b.LastReceipt(b.ctx, b.agent))(b)
		b.equal("dropped", []any{r.Skipped, r.Stored, r.Due, r.Busy}, []any{"dropped", start + 11, 0, ""})
	}},
	{"of a message behind a pause", func(b *bed) {
		l, _ := b.begin("r1")
		b.post("m9", instant)
		b.equal("at work", ok(b.Receipt(b.ctx, "m9"))(b).Paused, (*claybot.Awaiting)(nil))
		w := b.pause(l, "r1", "a1")
		b.equal("paused", ok(b.Receipt(b.ctx, "m9"))(b).Paused, &w)
		b.again()
		b.equal("after a restart", ok(b.LastReceipt(b.ctx, b.agent))(b).Paused, &w)
		b.deliver(b.typed(claybot.MessageCancel, "c"))
		r := ok(b.Receipt(b.ctx, "m9"))(b)
		b.equal("it is to end", []any{r.Busy, r.Paused}, []any{"r1", (*claybot.Awaiting)(nil)})
	}},
	{"the one that waits longest", func(b *bed) {
		b.equal("none", b.figures().OldestWaiting, 0)
		b.silently("s1")
		b.equal("silent ones owe nothing", b.figures().OldestWaiting, 0)
		time.Sleep(time.Second)
		first := claybot.Now()
		b.to(b.newAgent("C2"), userMessage("m1"))
		time.Sleep(time.Second)
		b.post("m2", minute)
		b.equal("of another agent", b.figures().OldestWaiting, first)
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.equal("the next", b.figures().OldestWaiting, first+1000)
		ok(b.Drop(b.ctx, b.agent, "dropped"))(b)
		b.equal("none again", b.figures().OldestWaiting, 0)
	}},
	{"found by what names it", func(b *bed) {
		m := userMessage("m1")
		m.Keys = []string{"telegram/C1/501", "key two"}
		b.to(b.agent, m)
		b.to(b.agent, reserving("m2", "r2"))
		b.found("m1", "m1")
		b.found("telegram/C1/501", "m1")
		b.found("key two", "m1")
		b.found("r2", "m2")
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "given", ids(h.Waiting), storage.Beginning{}))(b)
		b.found("r2", "m1", "m2") // both were taken by it
		exact := reply("o2")
		exact.Message = "m2"
		b.succeed(h.Lease, "r2", reply("o1"), exact)
		b.found("o1", "m1", "m2")
		b.found("o2", "m2")
		for id, receipt := range map[string]string{"o1": "77", "o2": "thread/78"} {
			b.noError(b.attempt(id))
			b.resolve(id, storage.Resolution{State: claybot.SendSent, Receipt: receipt})
		}
		b.found("telegram/C1/77", "m1", "m2")
		b.found("telegram/C1/thread/78", "m2")
		b.again()
		b.found("telegram/C1/501", "m1")
		slack := reply("o3")
		slack.Route = claybot.Route{Connector: "slack", ChannelID: "T/C/9"}
		p := b.typed(claybot.MessageCommand, "help")
		p.Replies = []claybot.Outgoing{slack}
		b.deliver(p)
		b.noError(b.attempt("o3"))
		b.resolve("o3", storage.Resolution{State: claybot.SendSent, Receipt: "1.5"})
		b.found("slack/T/C/9/1.5", "help")
		b.found("o3", "help")
	}},
	{"found by nothing else", func(b *bed) {
		b.post("m1", minute)
		ok(b.Enqueue(b.ctx, reply("free")))(b)
		for _, ref := range []string{"", "m", "M1", "%", "m1 ", "free", "telegram/C1/", "/", "////////////////////", "telegram/C1/77", "\x00", "' OR 1=1 --"} {
			b.found(ref)
		}
	}},
	{"at most twenty", func(b *bed) {
		for i := range 25 {
			b.post(fmt.Sprintf("m%02d", i), instant)
		}
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.equal("the newest", ok(b.FindMessages(b.ctx, "r1"))(b), ids(h.Waiting)[5:])
	}},
}
