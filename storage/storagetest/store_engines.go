package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var engineTests = []storeTest{
	{"a paused run gets another engine", func(b *bed) {
		b.post("m1", instant)
		lease := b.hold(nodeOne).Lease
		ok(b.Begin(b.ctx, lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{Engine: "flow:a@1"}))(b)
		told := claybot.Event{Type: claybot.EventPolicySwitched}
		switched := func(id claybot.RunID, from string) error { return b.SwitchEngine(b.ctx, id, from, "flow:a@2", told) }
		b.is(switched("r1", "flow:a@1"), storage.ErrState) // at work
		b.is(switched("none", "flow:a@1"), storage.ErrNotFound)
		wait := claybot.Awaiting{Answers: []claybot.MessageID{"a1"}, Until: claybot.At(time.Now().Add(time.Hour))}
		b.noError(b.Suspend(b.ctx, lease, "r1", storage.Pause{Awaiting: wait, Engine: "flow:a@1", Usage: claybot.Usage{Input: 7}, Result: []byte(`{"a":1}`)}))
		b.is(switched("r1", "flow:a@0"), storage.ErrState)
		before := b.run("r1")
		b.noError(switched("r1", "flow:a@1"))
		b.is(switched("r1", "flow:a@1"), storage.ErrState) // done
		after := b.run("r1")
		b.equal("engine", after.Engine, "flow:a@2")
		b.equal("its event", b.events("r1", before.LastSeq), []claybot.EventType{claybot.EventPolicySwitched})
		after.Engine, after.LastSeq = before.Engine, before.LastSeq
		b.equal("all else", after, before)
		b.again()
		b.deliver(storage.Posting{To: b.agent, Message: answer("a1", "r1")})
		held := b.hold(nodeOne)
		b.equal("going on", held.Run.Engine, "flow:a@2")
		b.is(switched("r1", "flow:a@2"), storage.ErrState) // about to go on
	}},
	{"a run that is to be canceled keeps its engine", func(b *bed) {
		b.post("m1", instant)
		lease := b.hold(nodeOne).Lease
		ok(b.Begin(b.ctx, lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{Engine: "flow:a@1"}))(b)
		wait := claybot.Awaiting{Answers: []claybot.MessageID{"a1"}, Until: claybot.At(time.Now().Add(time.Hour))}
		b.noError(b.Suspend(b.ctx, lease, "r1", storage.Pause{Awaiting: wait, Engine: "flow:a@1"}))
		b.deliver(b.typed(claybot.MessageCancel, "c1"))
		b.is(b.SwitchEngine(b.ctx, "r1", "flow:a@1", "flow:a@2"), storage.ErrState)
		b.equal("engine", b.run("r1").Engine, "flow:a@1")
	}},
}
