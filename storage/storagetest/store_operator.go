package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var operatorTests = []storeTest{
	{"retry of a failed message", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2")))(b)
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Cause: "blocked"})
		o := ok(b.Retry(b.ctx, "o1"))(b)
		b.equal("waits", []any{o.ID, o.State, o.Attempts, o.Due, o.Text, o.N > 0}, []any{"o1", claybot.SendWaiting, 0, 0, "text of o1", true})
		b.equal("stored", ok(b.OutgoingByID(b.ctx, "o1"))(b), o)
		b.equal("in its old place", outIDs(ok(b.Unsent(b.ctx, dest, o.N-1, 9))(b)), []string{"o1", "o2"})
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: 2})
		b.again()
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendSent, Receipt: "77"})
		b.equal("sent", ok(b.OutgoingByID(b.ctx, "o1"))(b).Receipt, "77")
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: 1, claybot.SendSent: 1})
	}},
	{"retry of one whose fate was never known carries the mark", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendAmbiguous})
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Cause: "unknown"})
		b.equal("marked", ok(b.Retry(b.ctx, "o1"))(b).Resent, true)
	}},
	{"retry of one that waits", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.noError(b.attempt("o1"))
		b.resolve("o1", storage.Resolution{State: claybot.SendWaiting, Due: time.Now().Add(time.Hour), Cause: "dns"})
		o := ok(b.Retry(b.ctx, "o1"))(b)
		b.equal("due at once", []any{o.Due, o.Attempts, o.Cause}, []any{0, 1, "dns"})
		b.equal("stored", b.unsent(), o)
	}},
	{"discard", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2")))(b)
		o := ok(b.Discard(b.ctx, "o1", "dropped"))(b)
		b.equal("failed", []any{o.State, o.Cause}, []any{claybot.SendFailed, "dropped"})
		b.equal("unsent", outIDs(ok(b.Unsent(b.ctx, dest, 0, 9))(b)), []string{"o2"})
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: 1, claybot.SendFailed: 1})
		b.equal("twice is once", ok(b.Discard(b.ctx, "o1", "again"))(b), o)
		if b.attempt("o1") == nil {
			b.Fatal("a discarded message was tried")
		}
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Cause: "late"}) // the deliverer's own end
		b.again()
		b.equal("kept", ok(b.OutgoingByID(b.ctx, "o1"))(b), o)
		ok(b.Retry(b.ctx, "o1"))(b)
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: 2})
	}},
	{"not of one that was sent or is under way", func(b *bed) {
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		refused := func() {
			b.Helper()
			before, figures := ok(b.OutgoingByID(b.ctx, "o1"))(b), b.figures()
			_, err := b.Retry(b.ctx, "o1")
			b.is(err, storage.ErrState)
			_, err = b.Discard(b.ctx, "o1", "dropped")
			b.is(err, storage.ErrState)
			b.equal("unchanged", ok(b.OutgoingByID(b.ctx, "o1"))(b), before)
			b.equal("figures", b.figures(), figures)
		}
		b.noError(b.attempt("o1"))
		refused()
		b.resolve("o1", storage.Resolution{State: claybot.SendAmbiguous})
		refused()
		b.resolve("o1", storage.Resolution{State: claybot.SendSent, Receipt: "77"})
		refused()
	}},
	{"unknown", func(b *bed) {
		_, err := b.Retry(b.ctx, "o1")
		b.is(err, storage.ErrNotFound)
		_, err = b.Discard(b.ctx, "o1", "dropped")
		b.is(err, storage.ErrNotFound)
		_, err = b.OutgoingByID(b.ctx, "o1")
		b.is(err, storage.ErrNotFound)
	}},
}
