package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// amending posts an edit or a deletion of a message.
func (b *bed) amending(kind claybot.MessageType, id string, of claybot.MessageID, late string) storage.Posted {
	b.Helper()
	p := b.typed(kind, id)
	p.Message.Amends, p.Late = of, late
	p.Replies = []claybot.Outgoing{reply(id + ".reply")}
	if kind == claybot.MessageDelete {
		p.Message.Text = ""
	}
	return b.deliver(p)
}

var amendTests = []storeTest{
	{"an edit of a pending message", func(b *bed) {
		b.post("m1", minute)
		b.post("m2", minute)
		done := b.amending(claybot.MessageEdit, "e1", "m1", "noted")
		b.equal("edit", []any{done.Added, done.Skipped, outIDs(done.Outbox)}, []any{true, storage.SkippedEdit, []string{"e1.reply"}})
		b.equal("again", b.amending(claybot.MessageEdit, "e1", "m1", "noted").Added, false)
		b.again()
		b.amending(claybot.MessageEdit, "e2", "m2", "")
		b.equal("waiting", b.figures().Waiting, 2)
		b.post("m3", instant)
		box := b.hold(nodeOne)
		b.equal("taken", ids(box.Waiting), []claybot.MessageID{"m1", "m2", "m3"})
		b.equal("texts", []string{box.Waiting[0].Text, box.Waiting[1].Text}, []string{"text of e1", "text of e2"})
	}},
	{"an edit of the command of a skill", func(b *bed) {
		for id, text := range map[string]string{"same": "/Make_Tea black", "other": "/make-coffee", "text": "make-tea", "empty": " "} {
			p := b.typed(claybot.MessageUser, id)
			p.Message.Text, p.Message.Skill = "/make-tea green", "make-tea"
			b.deliver(p)
			edit := b.typed(claybot.MessageEdit, "e-"+id)
			edit.Message.Amends, edit.Message.Text = claybot.MessageID(id), text
			b.equal(id, b.deliver(edit).Skipped, storage.SkippedEdit)
			m := ok(b.Receipt(b.ctx, claybot.MessageID(id)))(b).Message
			b.equal(id, []string{m.Text, m.Skill}, []string{text, map[string]string{"same": "make-tea"}[id]})
		}
	}},
	{"a deletion of a pending message", func(b *bed) {
		b.post("m1", minute)
		b.post("m2", minute)
		done := b.amending(claybot.MessageDelete, "d1", "m1", "")
		b.equal("deletion", []any{done.Added, done.Skipped, done.Dropped, done.Canceled, done.Outbox},
			[]any{true, storage.SkippedDeletion, []claybot.MessageID{"m1"}, claybot.RunID(""), []claybot.Outgoing(nil)})
		skipped, _ := b.receiptOf("m1")
		b.equal("m1", skipped, storage.SkippedDeleted)
		b.equal("late edit", b.amending(claybot.MessageEdit, "e1", "m1", "noted").Skipped, storage.SkippedLate)
		b.dueIn("m2", minute.Quiet)
		b.amending(claybot.MessageDelete, "d2", "m2", "")
		b.neverDue("after all were deleted")
		b.post("m3", minute)
		stop := b.typed(claybot.MessageDelete, "d3")
		stop.Message.Amends, stop.Message.Command, stop.IfIdle = "m3", claybot.StopCommand, []claybot.Outgoing{reply("d3.reply")}
		b.equal("stop", outIDs(b.deliver(stop).Outbox), []string{"d3.reply"})
		skipped, _ = b.receiptOf("m3")
		b.equal("m3", skipped, storage.SkippedStopped)
		b.equal("waiting", b.figures().Waiting, 0)
	}},
	{"a stop of an album", func(b *bed) {
		part := func(id, album, user string) {
			p := b.typed(claybot.MessageUser, id)
			p.Message.Context.GroupID, p.Message.From.UserID = album, user
			b.deliver(p)
		}
		stop := func(id string, of claybot.MessageID, command string) storage.Posted {
			p := b.typed(claybot.MessageDelete, id)
			p.Message.Amends, p.Message.Command, p.IfIdle = of, command, []claybot.Outgoing{reply(id + ".reply")}
			p.Replies = p.IfIdle
			return b.deliver(p)
		}
		skipped := func(want string, all ...claybot.MessageID) {
			b.Helper()
			for _, id := range all {
				got, _ := b.receiptOf(id)
				b.equal(string(id), got, want)
			}
		}
		for _, id := range []string{"p1", "p2", "p3"} {
			part(id, "g1", "ann")
		}
		part("other", "g2", "ann")
		part("bob", "g1", "bob")
		part("alone", "", "ann")
		done := stop("s1", "p2", claybot.StopCommand)
		b.equal("stop", []any{done.Dropped, done.Canceled, outIDs(done.Outbox)}, []any{[]claybot.MessageID{"p1", "p2", "p3"}, claybot.RunID(""), []string{"s1.reply"}})
		skipped(storage.SkippedStopped, "p1", "p2", "p3")
		skipped("", "other", "bob", "alone")
		b.equal("again", stop("s1", "p2", claybot.StopCommand).Added, false)
		b.equal("waiting", b.figures().Waiting, 3)

		part("other2", "g2", "ann")
		b.equal("deletion of one part", stop("d1", "other2", "").Dropped, []claybot.MessageID{"other2"})
		b.equal("stop of one message", stop("s2", "alone", claybot.StopCommand).Dropped, []claybot.MessageID{"alone"})
		time.Sleep(time.Minute)
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", []claybot.MessageID{"other"}, storage.Beginning{}))(b)
		part("late", "g2", "ann")
		done = stop("s3", "other", claybot.StopCommand)
		b.equal("stop of a run", []any{done.Dropped, done.Canceled, outIDs(done.Outbox)}, []any{[]claybot.MessageID{"late"}, claybot.RunID("r1"), []string{"s3.reply"}})
		part("later", "g2", "ann")
		part("bob2", "g2", "bob")
		done = stop("s4", "bob2", claybot.StopCommand)
		b.equal("stop of a part of another sender", []any{done.Dropped, done.Canceled}, []any{[]claybot.MessageID{"bob2"}, claybot.RunID("")})
		done = stop("s5", "later", claybot.StopCommand)
		b.equal("stop of a late part", []any{done.Dropped, done.Canceled, outIDs(done.Outbox)}, []any{[]claybot.MessageID{"later"}, claybot.RunID("r1"), []string{"s5.reply"}})
		skipped("", "bob")
	}},
	{"after a run took the message", func(b *bed) {
		lease, _ := b.begin("r1")
		b.equal("ignored edit", b.amending(claybot.MessageEdit, "e1", "m-r1", "").Skipped, storage.SkippedLate)
		noted := b.amending(claybot.MessageEdit, "e2", "m-r1", "noted")
		b.equal("noted edit", []any{noted.Added, noted.Skipped}, []any{true, ""})
		m := ok(b.Receipt(b.ctx, "e2"))(b).Message
		b.equal("note", []any{m.Type, m.Kind, m.Silent, m.Text}, []any{claybot.MessageSystem, claybot.KindNotice, true, "noted"})
		var lines []any
		for _, e := range ok(b.Transcript(b.ctx, b.agent, dest, 10))(b) {
			if e.Message != nil {
				lines = append(lines, string(e.Message.ID)+" "+string(e.Message.Amends)+" "+e.Skipped)
			}
		}
		b.equal("transcript", lines, []any{"m-r1  ", "e1 m-r1 late", "e2 m-r1 "})
		done := b.amending(claybot.MessageDelete, "d1", "m-r1", "")
		b.equal("deletion", []any{done.Skipped, done.Dropped, done.Canceled, outIDs(done.Outbox)},
			[]any{storage.SkippedDeletion, []claybot.MessageID(nil), claybot.RunID("r1"), []string{"d1.reply"}})
		_, by, err := b.Renew(b.ctx, lease, ttl)
		b.noError(err)
		b.equal("renewal says", by, "user")
	}},
	{"while its run is about to begin", func(b *bed) {
		b.post("m1", instant)
		b.post("m2", instant)
		h := b.hold(nodeOne)
		b.equal("ignored edit", b.amending(claybot.MessageEdit, "e1", "m1", "").Skipped, storage.SkippedLate)
		b.equal("noted edit", b.amending(claybot.MessageEdit, "e2", "m1", "noted").Skipped, "")
		b.equal("deletion", b.amending(claybot.MessageDelete, "d1", "m2", "").Skipped, storage.SkippedDeletion)
		ok(b.Begin(b.ctx, h.Lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{}))(b)
		b.equal("text", ok(b.Receipt(b.ctx, "m1"))(b).Message.Text, "text of m1")
	}},
	{"notes of edits that were withdrawn", func(b *bed) {
		skipped := func(want string, all ...claybot.MessageID) {
			b.Helper()
			for _, id := range all {
				got, _ := b.receiptOf(id)
				b.equal(string(id), got, want)
			}
		}
		for _, run := range []claybot.RunID{"r1", "r2"} {
			lease, _ := b.begin(run)
			b.succeed(lease, run)
		}
		b.amending(claybot.MessageEdit, "e1", "m-r1", "secret")
		b.amending(claybot.MessageEdit, "e2", "m-r2", "stays")
		b.equal("waiting", b.figures().Waiting, 2)
		done := b.amending(claybot.MessageDelete, "d1", "m-r1", "")
		b.equal("late deletion", []any{done.Skipped, done.Dropped, outIDs(done.Outbox)}, []any{storage.SkippedLate, []claybot.MessageID(nil), []string(nil)})
		skipped(storage.SkippedDeleted, "e1")
		b.equal("waiting", b.figures().Waiting, 1)
		b.neverDue("with a note alone")
		b.post("m-r3", instant)
		h := b.hold(nodeOne)
		b.equal("taken", ids(h.Waiting), []claybot.MessageID{"e2", "m-r3"})
		ok(b.Begin(b.ctx, h.Lease, "r3", ids(h.Waiting), storage.Beginning{}))(b)
		b.amending(claybot.MessageEdit, "e3", "m-r3", "secret")
		b.amending(claybot.MessageEdit, "e4", "m-r3", "no secret")
		skipped(storage.SkippedEdit, "e3")
		skipped("", "e2", "e4")
		b.amending(claybot.MessageEdit, "e5", "m-r3", "") // notes were turned off meanwhile
		skipped(storage.SkippedEdit, "e4")
		b.amending(claybot.MessageEdit, "e6", "m-r3", "secret")
		done = b.amending(claybot.MessageDelete, "d2", "m-r3", "")
		b.equal("deletion in the run", []any{done.Skipped, done.Dropped, done.Canceled}, []any{storage.SkippedDeletion, []claybot.MessageID(nil), claybot.RunID("r3")})
		skipped(storage.SkippedDeleted, "e6")
		b.equal("waiting", b.figures().Waiting, 0)
	}},
	{"notes of a message whose run did not begin", func(b *bed) {
		b.post("m1", instant)
		h := b.hold(nodeOne)
		b.equal("noted edit", b.amending(claybot.MessageEdit, "e1", "m1", "secret").Skipped, "")
		b.noError(b.Release(b.ctx, h.Lease, instant, true))
		b.equal("edit", b.amending(claybot.MessageEdit, "e2", "m1", "noted").Skipped, storage.SkippedEdit)
		box := b.hold(nodeOne)
		b.equal("taken", ids(box.Waiting), []claybot.MessageID{"m1"})
		b.equal("text", box.Waiting[0].Text, "text of e2")
	}},
	{"after the run has ended", func(b *bed) {
		lease, _ := b.begin("r1")
		b.succeed(lease, "r1")
		for kind, id := range map[claybot.MessageType]string{claybot.MessageDelete: "d1", claybot.MessageEdit: "e1"} {
			done := b.amending(kind, id, "m-r1", "")
			b.equal(id, []any{done.Added, done.Skipped, done.Canceled}, []any{true, storage.SkippedLate, claybot.RunID("")})
		}
		b.equal("unknown", b.amending(claybot.MessageDelete, "d2", "nothing", "").Skipped, storage.SkippedLate)
		b.neverDue("after the end")
	}},
	{"of another agent", func(b *bed) {
		b.post("m1", minute)
		other := b.newAgent("C2")
		p := b.typed(claybot.MessageDelete, "d1")
		p.To, p.Message.Amends = other, "m1"
		b.equal("deletion", b.deliver(p).Skipped, storage.SkippedLate)
		b.equal("waiting", b.figures().Waiting, 1)
	}},
}
