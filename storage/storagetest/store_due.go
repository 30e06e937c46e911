package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const ms = time.Millisecond

var dueTests = []storeTest{
	{"window 50, arrivals 0 and 40", func(b *bed) { // IN-11
		w := storage.Wait{Quiet: 50 * ms, Max: 500 * ms}
		b.post("m1", w)
		b.dueIn("first", 50*ms)
		time.Sleep(40 * ms)
		b.post("m2", w)
		time.Sleep(40 * ms)
		b.acquire(nodeOne, 0)
		b.dueIn("at 80", 10*ms)
		time.Sleep(10 * ms)
		b.equal("at 90", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"m1", "m2"})
	}},
	{"never later than the oldest allows", func(b *bed) {
		w := storage.Wait{Quiet: 50 * ms, Max: 120 * ms}
		for _, id := range []string{"m1", "m2", "m3"} {
			b.post(id, w)
			time.Sleep(40 * ms)
		}
		b.dueIn("at 120", 0)
		b.equal("at 120", len(b.hold(nodeOne).Waiting), 3)
	}},
	{"no wait", func(b *bed) {
		b.neverDue("empty inbox")
		b.post("m1", instant)
		b.dueIn("posted", 0)
		b.hold(nodeOne)
	}},
	{"an urgent message takes what waits along", func(b *bed) { // IN-13
		b.post("m1", minute)
		time.Sleep(5 * time.Second)
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("m2"), Wait: minute, Urgent: true})
		b.dueIn("posted", -5*time.Second)
		b.post("m3", minute)
		b.dueIn("with one that is debounced behind it", -5*time.Second)
		b.equal("taken", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"m1", "m2", "m3"})
	}},
	{"a stopped agent is left alone until a message, or Reschedule", func(b *bed) { // NL-05
		b.post("m1", instant)
		lease := b.hold(nodeOne).Lease
		b.noError(b.Release(b.ctx, lease, storage.Wait{Hold: time.Hour}, true))
		b.dueIn("held", time.Hour)
		b.acquire(nodeOne, 0)
		b.noError(b.Reschedule(b.ctx, "", func(claybot.AgentID, claybot.Descriptor) storage.Wait { return instant }))
		b.dueIn("started", 0)
		lease = b.hold(nodeOne).Lease
		b.noError(b.Release(b.ctx, lease, storage.Wait{Hold: time.Hour}, true))
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("m2"), Wait: minute})
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("m3"), Wait: minute, Urgent: true})
		lease = b.hold(nodeOne).Lease
		b.noError(b.Release(b.ctx, lease, storage.Wait{Hold: time.Hour}, true))
		b.dueIn("held, with an urgent message", time.Hour)
		b.noError(b.Reschedule(b.ctx, b.agent, func(claybot.AgentID, claybot.Descriptor) storage.Wait { return instant }))
		b.equal("taken", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"m1", "m2", "m3"})
	}},
	{"album", func(b *bed) { // IN-14
		part := func(id string) {
			m := userMessage(id)
			m.Context.GroupID = "g1"
			b.deliver(storage.Posting{To: b.agent, Message: m})
		}
		part("p1")
		b.dueIn("first part", 750*ms)
		time.Sleep(700 * ms)
		part("p2")
		b.dueIn("second part", 750*ms)
		b.post("m1", storage.Wait{Quiet: 2 * time.Second, Max: time.Minute})
		b.dueIn("a debounced message besides", 2*time.Second)
		for range 6 {
			time.Sleep(700 * ms)
			part("p" + time.Now().String())
		}
		b.dueIn("5 s after the first part", 100*ms)
		time.Sleep(100 * ms)
		b.equal("parts", len(b.hold(nodeOne).Waiting), 9)
	}},
	{"album while the agent is busy", func(b *bed) {
		lease, _ := b.begin("r1")
		m := userMessage("p1")
		m.Context.GroupID = "g1"
		b.deliver(storage.Posting{To: b.agent, Message: m})
		b.equal("taken too early", len(ok(b.Take(b.ctx, lease, "r1", 10, nil))(b)), 0)
		b.succeed(lease, "r1")
		b.dueIn("after the run", 750*ms)
	}},
	{"after a run what waits is due by its own time", func(b *bed) {
		lease, _ := b.begin("r1")
		b.post("m2", minute)
		time.Sleep(5 * time.Second)
		o := success()
		o.Wait = storage.Wait{Quiet: 30 * time.Second, Max: time.Hour}
		ok(b.Finish(b.ctx, lease, "r1", o))(b)
		b.dueIn("m2", 25*time.Second)
	}},
	{"a new window shortens and lengthens", func(b *bed) { // IN-40
		other := b.newAgent("C2")
		b.post("m1", minute)
		time.Sleep(10 * time.Second)
		b.dueIn("before", 50*time.Second)
		set := func(w storage.Wait) {
			b.noError(b.Reschedule(b.ctx, "", func(id claybot.AgentID, d claybot.Descriptor) storage.Wait {
				b.equal("asked for", []any{id, d.ChannelID}, []any{b.agent, "C1"})
				return w
			}))
		}
		set(storage.Wait{Quiet: time.Hour, Max: 2 * time.Hour})
		b.dueIn("longer", time.Hour-10*time.Second)
		set(storage.Wait{Quiet: 20 * time.Second, Max: time.Hour})
		b.dueIn("shorter", 10*time.Second)
		set(instant)
		b.equal("at once", b.hold(nodeOne).Lease.Agent, b.agent)
		_, err := b.Receipt(b.ctx, claybot.MessageID(other))
		b.is(err, storage.ErrNotFound)
	}},
	{"a new window for a held agent counts when it is let go", func(b *bed) {
		lease, _ := b.begin("r1")
		b.post("m2", minute)
		b.noError(b.Reschedule(b.ctx, "", func(claybot.AgentID, claybot.Descriptor) storage.Wait { return instant }))
		b.acquire(nodeTwo, 0)
		b.equal("due for injection", ids(ok(b.Take(b.ctx, lease, "r1", 10, nil))(b)), []claybot.MessageID{"m2"})
	}},
	{"drop", func(b *bed) {
		for _, id := range []string{"m1", "m2", "m3", "m4"} {
			b.post(id, minute)
		}
		b.equal("some", ok(b.Drop(b.ctx, b.agent, "token_rejected", "m3", "m1", "unknown"))(b), []claybot.MessageID{"m1", "m3"})
		b.equal("again", len(ok(b.Drop(b.ctx, b.agent, "token_rejected", "m3"))(b)), 0)
		skipped, _ := b.receiptOf("m3")
		b.equal("reason", skipped, "token_rejected")
		b.dueIn("the rest", time.Minute)
		b.equal("all", ok(b.Drop(b.ctx, b.agent, "operator"))(b), []claybot.MessageID{"m2", "m4"})
		b.neverDue("nothing waits")
		b.equal("unknown agent", len(ok(b.Drop(b.ctx, claybot.NewID(), "operator"))(b)), 0)
		b.begin("r1")
		b.equal("of a run", len(ok(b.Drop(b.ctx, b.agent, "operator", "m-r1"))(b)), 0)
		b.equal("the run has it", b.run("r1").Messages, []claybot.MessageID{"m-r1"})
	}},
}
