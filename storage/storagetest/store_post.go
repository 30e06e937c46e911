package storagetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var postTests = []storeTest{
	{"again is a repeat", func(b *bed) {
		p := storage.Posting{To: b.agent, Message: userMessage("m1"), Replies: []claybot.Outgoing{reply("o1")}}
		first := b.deliver(p)
		b.equal("first", []any{first.Added, first.Skipped, outIDs(first.Outbox)}, []any{true, "", []string{"o1"}})
		p.Message.Text, p.Replies = "other", []claybot.Outgoing{reply("o2")}
		b.equal("again", b.deliver(p), storage.Posted{})
		h := b.hold(nodeOne)
		b.equal("waiting", h.Waiting, []claybot.AgentMessage{userMessage("m1")})
		b.equal("outbox", len(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), 1)
		b.equal("duplicates", b.figures().Duplicates, 1)
		// Also after it has run, and in the next process.
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.succeed(h.Lease, "r1")
		b.again()
		b.equal("after the run", b.post("m1", instant).Added, false)
	}},
	{"keys tell repeats from reused ids", func(b *bed) {
		keyed := func(id string, keys ...string) storage.Posting {
			m := userMessage(id)
			m.Keys = keys
			return storage.Posting{To: b.agent, Message: m}
		}
		for i, step := range []struct {
			id    string
			keys  []string
			added bool
		}{
			{"1", []string{"a", "b"}, true},
			{"1", []string{"a", "b"}, false},
			{"1", nil, false},           // the id alone says so
			{"2", []string{"b"}, false}, // another id, a known key
			{"1", []string{"c"}, true},  // a known id under other keys: reused
			{"1", []string{"c"}, false},
			{"9", []string{"c"}, false},
			{"3", nil, true},
			{"3", []string{"d"}, false}, // posted without keys before: no sign of reuse
			{"4", []string{"e", "a"}, false},
			{"4", []string{"e"}, true}, // what was refused left no key behind
		} {
			if got := b.deliver(keyed(step.id, step.keys...)).Added; got != step.added {
				b.Fatalf("step %d, id %s, keys %v: added %v, want %v", i+1, step.id, step.keys, got, step.added)
			}
		}
		h := b.hold(nodeOne)
		b.equal("stored ids", ids(h.Waiting), []claybot.MessageID{"1", "1#c", "3", "4"})
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
	}},
	{"a run begins in the commit that stores its message", func(b *bed) {
		starting := func(id string, run claybot.RunID) storage.Posting {
			return storage.Posting{To: b.agent, Message: userMessage(id), Start: &storage.Start{Node: nodeOne, TTL: ttl, Run: run, With: storage.Beginning{Engine: "plan"}}}
		}
		none := func(why string, p storage.Posting) {
			b.Helper()
			if got := b.deliver(p); got.Started != nil {
				b.Fatalf("%s: it began %+v", why, got.Started)
			}
		}
		h := b.deliver(starting("m1", "r1")).Started
		if h == nil {
			b.Fatal("nothing began")
		}
		b.equal("as by Acquire and Begin", []any{h.Started, h.Run.ID, h.Run.State, h.Run.Attempts, h.Run.Engine, h.Run.Messages, h.Run.LastSeq, ids(h.Bound), len(h.Waiting)},
			[]any{true, claybot.RunID("r1"), claybot.RunRunning, 1, "plan", []claybot.MessageID{"m1"}, int64(1), []claybot.MessageID{"m1"}, 0})
		stored := b.run("r1")
		b.equal("as stored", stored, *h.Run)
		b.equal("nothing is left to acquire", len(b.acquire(nodeTwo, 0)), 0)
		none("a duplicate", starting("m1", "r2"))
		none("while it is held", starting("m2", "r2"))
		b.succeed(h.Lease, "r1")
		none("behind another one", starting("m3", "r3"))
		second := b.hold(nodeOne)
		b.equal("both wait", ids(second.Waiting), []claybot.MessageID{"m2", "m3"})
		ok(b.Begin(b.ctx, second.Lease, "r4", ids(second.Waiting), storage.Beginning{}))(b)
		b.succeed(second.Lease, "r4")
		later := starting("m4", "r5")
		later.Wait = storage.Wait{Quiet: time.Second, Max: time.Minute}
		none("not due yet", later)
		time.Sleep(time.Second)
		third := b.hold(nodeOne)
		ok(b.Begin(b.ctx, third.Lease, "r6", ids(third.Waiting), storage.Beginning{}))(b)
		b.succeed(third.Lease, "r6")
		skipped, reserved := starting("m5", "r7"), starting("m6", "r8")
		skipped.Skip, reserved.Message.Run = "flood", "r9"
		none("skipped", skipped)
		none("a reserved run", reserved)
		fourth := b.hold(nodeOne)
		ok(b.Begin(b.ctx, fourth.Lease, "r10", ids(fourth.Waiting), storage.Beginning{}))(b)
		b.succeed(fourth.Lease, "r9")
		cut := b.deliver(starting("m7", "r11")).Started
		b.again()
		after := b.hold(nodeOne)
		b.equal("after a crash it is resumed", []any{after.Run.ID, after.Lease.Token > cut.Lease.Token, ids(after.Bound)},
			[]any{claybot.RunID("r11"), true, []claybot.MessageID{"m7"}})
	}},
	{"without an id", func(b *bed) {
		if _, err := b.Post(b.ctx, storage.Posting{To: b.agent, Message: userMessage("")}); err == nil {
			b.Fatal("a message without an id was stored")
		}
		p := storage.Posting{To: b.agent, Message: userMessage("m1"), Replies: []claybot.Outgoing{reply("")}}
		if _, err := b.Post(b.ctx, p); err == nil {
			b.Fatal("a reply without an id was stored")
		}
		b.equal("nothing was stored", b.figures().Waiting, 0)
	}},
	{"unknown agent", func(b *bed) {
		_, err := b.Post(b.ctx, storage.Posting{To: claybot.NewID(), Message: userMessage("m1")})
		b.is(err, storage.ErrNotFound)
		b.equal("then it is not a repeat", b.post("m1", instant).Added, true)
	}},
	{"skip", func(b *bed) {
		p := storage.Posting{To: b.agent, Message: userMessage("m1"), Skip: "empty", Replies: []claybot.Outgoing{reply("o1")}}
		b.equal("posted", b.deliver(p).Skipped, "empty")
		b.neverDue("after a skipped message")
		r := ok(b.Receipt(b.ctx, "m1"))(b)
		b.equal("receipt", []any{r.Skipped, r.Run, outIDs(r.Replies)}, []any{"empty", nil, []string{"o1"}})
		b.equal("again", b.deliver(p).Added, false)
		b.equal("command", b.deliver(b.typed(claybot.MessageCommand, "m2")).Skipped, "command")
		b.neverDue("after a command")
	}},
	{"full inbox", func(b *bed) {
		post := func(id string) storage.Posted {
			return b.deliver(storage.Posting{To: b.agent, Message: userMessage(id), MaxWaiting: 2})
		}
		post("m1")
		post("m2")
		full := post("m3")
		b.equal("third", []any{full.Added, full.Skipped}, []any{true, "inbox_full"})
		ok(b.Drop(b.ctx, b.agent, "operator", "m1"))(b)
		b.equal("after a drop", post("m4").Skipped, "")
		b.equal("a repeat stays refused", post("m3").Added, false)
		b.equal("waiting", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"m2", "m4"})
	}},
	{"a workflow at work", func(b *bed) {
		post := func(id, busy string) storage.Posted {
			m := userMessage(id)
			m.Type, m.Kind, m.Flow = claybot.MessageSystem, claybot.KindTrigger, &claybot.FlowStart{Name: "f", Busy: busy}
			return b.deliver(storage.Posting{To: b.agent, Message: m})
		}
		b.equal("the first is not skipped", post("m1", claybot.BusySkip).Skipped, "")
		b.equal("one waits", post("m2", claybot.BusySkip).Skipped, storage.SkippedBusy)
		b.equal("it waits", post("m3", "").Skipped, "")
		run := ok(b.Begin(b.ctx, b.hold(nodeOne).Lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{}))(b)
		b.equal("one is at work", post("m4", claybot.BusySkip).Skipped, storage.SkippedBusy)
		done := post("m5", claybot.BusyCancel)
		b.equal("canceled", []any{done.Skipped, done.Canceled, done.Dropped}, []any{"", run.ID, []claybot.MessageID{"m3"}})
		b.equal("the one before", ok(b.Receipt(b.ctx, "m3"))(b).Skipped, storage.SkippedNewer)
		b.equal("again", post("m5", claybot.BusyCancel).Added, false)
		b.equal("waiting", ids(ok(b.Waiting(b.ctx, b.agent, 9))(b)), []claybot.MessageID{"m5"})
	}},
	{"cancel", func(b *bed) {
		cancel := func(id string) storage.Posting {
			p := b.typed(claybot.MessageCancel, id)
			p.Replies, p.IfIdle = []claybot.Outgoing{reply(id + ".stopped")}, []claybot.Outgoing{reply(id + ".idle")}
			return p
		}
		idle := b.deliver(cancel("c1"))
		b.equal("idle", []any{idle.Added, idle.Skipped, idle.Canceled, outIDs(idle.Outbox)}, []any{true, "command", "", []string{"c1.idle"}})
		lease, _ := b.begin("r1")
		b.post("m2", instant)
		busy := b.deliver(cancel("c2"))
		b.equal("busy", []any{busy.Skipped, busy.Canceled, busy.Dropped, outIDs(busy.Outbox)},
			[]any{"command", "r1", []claybot.MessageID(nil), []string{"c2.stopped"}})
		b.equal("run", b.run("r1").Cancel, "user")
		_, by, err := b.Renew(b.ctx, lease, ttl)
		b.noError(err)
		b.equal("renewal says", by, "user")
		b.equal("again", b.deliver(cancel("c3")).Canceled, "r1")
		b.equal("m2 waits on", b.figures().Waiting, 1)
	}},
	{"reset", func(b *bed) {
		b.begin("r1")
		b.post("m2", minute)
		b.post("m3", minute)
		done := b.deliver(b.typed(claybot.MessageReset, "x"))
		b.equal("posted", []any{done.Added, done.Skipped, done.Canceled, done.Dropped},
			[]any{true, "", "r1", []claybot.MessageID{"m2", "m3"}})
		b.equal("run", b.run("r1").Cancel, "reset")
		b.deliver(b.typed(claybot.MessageCancel, "c"))
		b.equal("a later stop changes nothing", b.run("r1").Cancel, "reset")
		skipped, _ := b.receiptOf("m2")
		b.equal("m2", skipped, "reset")
		b.equal("the run keeps its message", b.run("r1").Messages, []claybot.MessageID{"m-r1"})
		b.equal("waiting", b.figures().Waiting, 1)
		b.post("m4", minute)
		time.Sleep(ttl)
		h := b.hold(nodeTwo)
		b.equal("waiting", ids(h.Waiting), []claybot.MessageID{"x", "m4"})
	}},
	{"a reset is due at once and stays so", func(b *bed) {
		b.post("m1", minute)
		b.deliver(b.typed(claybot.MessageReset, "x"))
		b.dueIn("reset", 0)
		b.post("m2", minute)
		b.dueIn("reset and a message", 0)
		b.noError(b.Reschedule(b.ctx, "", func(claybot.AgentID, claybot.Descriptor) storage.Wait { return minute }))
		b.dueIn("rescheduled", 0)
		b.equal("held", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"x", "m2"})
	}},
	{"50 at once make one total order", func(b *bed) {
		const posters, each = 50, 4
		var group sync.WaitGroup
		for p := range posters {
			group.Go(func() {
				for i := range each {
					m := userMessage(fmt.Sprintf("p%02d-%d", p, i))
					if _, err := b.Post(b.ctx, storage.Posting{To: b.agent, Message: m}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		group.Wait()
		acquired, _, err := b.Acquire(b.ctx, nodeOne, ttl, 1, 1000)
		b.noError(err)
		next := make(map[string]int)
		for _, m := range acquired[0].Waiting {
			var p string
			var i int
			if _, err := fmt.Sscanf(string(m.ID), "%3s-%d", &p, &i); err != nil || i != next[p] {
				b.Fatalf("message %s came where number %d of %s belongs", m.ID, next[p], p)
			}
			next[p]++
		}
		b.equal("messages", len(acquired[0].Waiting), posters*each)
		b.again()
		acquired, _, err = b.Acquire(b.ctx, nodeOne, ttl, 1, 1000)
		b.noError(err)
		b.equal("messages after a restart", len(acquired[0].Waiting), posters*each)
	}},
}
