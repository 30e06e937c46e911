package storagetest

import (
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// told joins what the store told since it was last asked.
func (b *bed) told() (events []claybot.Event, joined []claybot.RunID) {
	for _, c := range b.commits.take() {
		events, joined = append(events, c.Events...), append(joined, c.Joined...)
	}
	return events, joined
}

var commitTests = []storeTest{
	{"events as they are stored", func(b *bed) {
		l, _ := b.begin("r1")
		b.noError(b.Append(b.ctx, l, "r1", false, claybot.Event{Type: claybot.EventToolCalled, Data: []byte(`{"tool":"clock"}`)}))
		b.noError(b.Suspend(b.ctx, l, "r1", storage.Pause{
			Events: []claybot.Event{{Type: claybot.EventAwaitingInput}}, Awaiting: claybot.Awaiting{Until: claybot.Now() + 1000},
		}))
		time.Sleep(time.Second)
		h, _ := b.resume("r1")
		b.post("m2", instant)
		ok(b.Take(b.ctx, h.Lease, "r1", 9, nil))(b)
		b.succeed(h.Lease, "r1")
		var want []claybot.Event
		for e, err := range b.Events(b.ctx, "r1", 0) {
			b.noError(err)
			want = append(want, e)
		}
		got, joined := b.told()
		b.equal("told", got, want)
		b.equal("length", []any{len(want), len(joined)}, []any{6, 0})
	}},
	{"every change is announced, and no refusal as one", func(b *bed) {
		b.commits.take()
		b.post("m1", minute)
		b.equal("a message", len(b.commits.take()), 1)
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.equal("an outgoing message", len(b.commits.take()), 1)
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, claybot.Settings{Model: "big"}))
		b.equal("settings", len(b.commits.take()), 1)
		b.post("m1", minute)
		b.is(b.attempt("unknown"), storage.ErrNotFound)
		time.Sleep(time.Hour)
		l := b.hold(nodeOne).Lease
		if _, err := b.Begin(b.ctx, l, "r1", []claybot.MessageID{"m1", "unknown"}, storage.Beginning{}); err == nil {
			b.Fatal("begun")
		}
		events, joined := b.told()
		b.equal("nothing happened", []any{len(events), len(joined)}, []any{0, 0})
	}},
	{"renewed leases are nothing to tell", func(b *bed) {
		l, _ := b.begin("r1")
		b.commits.take()
		l, _, err := b.Renew(b.ctx, l, ttl)
		b.noError(err)
		b.equal("commits", len(b.commits.take()), 0)
		b.noError(b.Append(b.ctx, l, "r1", true, claybot.Event{Type: claybot.EventToolCalled}))
		b.equal("commits", len(b.commits.take()), 1)
	}},
	{"ids that lead to another run", func(b *bed) {
		b.to(b.agent, reserving("m1", "r1"))
		b.to(b.agent, reserving("m2", "r2"))
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "given", ids(h.Waiting), storage.Beginning{}))(b)
		events, joined := b.told()
		b.equal("begun", []any{len(events), joined}, []any{1, []claybot.RunID{"r2"}})
		b.to(b.agent, reserving("m3", "r3"))
		ok(b.Take(b.ctx, h.Lease, "r1", 9, nil))(b)
		_, joined = b.told()
		b.equal("injected", joined, []claybot.RunID{"r3"})
		b.to(b.agent, reserving("m4", "r4"))
		ok(b.Begin(b.ctx, h.Lease, "given", []claybot.MessageID{"m4"}, storage.Beginning{}))(b)
		_, joined = b.told()
		b.equal("resumed", joined, []claybot.RunID{"r4"})
		b.to(b.agent, reserving("m5", "r5"))
		ok(b.Drop(b.ctx, b.agent, "dropped"))(b)
		events, joined = b.told()
		b.equal("canceled", []any{events[0].Run, events[0].Type, events[0].Seq, len(joined)}, []any{"r5", claybot.EventRunCanceled, 1, 0})
	}},
	{"in order, side by side", func(b *bed) {
		const agents, each = 8, 20
		var group sync.WaitGroup
		for i := range agents {
			b.agent = b.newAgent("X" + string(rune('a'+i)))
			l, run := b.begin(claybot.RunID("r" + string(rune('a'+i))))
			group.Go(func() {
				for range each {
					if err := b.Append(b.ctx, l, run.ID, false, claybot.Event{Type: claybot.EventToolCalled}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		group.Wait()
		last := make(map[claybot.RunID]int64)
		events, _ := b.told()
		for _, e := range events {
			if last[e.Run]++; e.Seq != last[e.Run] {
				b.Fatalf("run %s: told of %d, want %d", e.Run, e.Seq, last[e.Run])
			}
		}
		b.equal("runs", len(last), agents)
		for id, n := range last {
			b.equal("events of "+string(id), n, each+1)
		}
	}},
}
