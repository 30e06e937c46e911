package storagetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// raceTests have several do at once what one of them may do.
var raceTests = []storeTest{
	{"one outgoing message by eight", func(b *bed) {
		const all, each = 8, 5
		var group sync.WaitGroup
		var mu sync.Mutex
		places := make(map[string]int64)
		for p := range all {
			group.Go(func() {
				for i := range each {
					added, err := b.Enqueue(b.ctx, reply(fmt.Sprintf("own %d-%d", p, i)), reply(fmt.Sprintf("shared %d", i)))
					if err != nil {
						b.Error(err)
					}
					mu.Lock()
					for _, o := range added {
						if places[o.ID] != 0 {
							b.Errorf("%s was added twice", o.ID)
						}
						places[o.ID] = o.N
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		out := ok(b.Unsent(b.ctx, dest, 0, 100))(b)
		b.equal("messages", len(out), all*each+each)
		for _, o := range out {
			b.equal("the place that was told of "+o.ID, places[o.ID], o.N)
		}
		b.equal("figures", b.figures().Outbox, map[claybot.SendState]int{claybot.SendWaiting: all*each + each})
	}},
	{"a number that eight advance", func(b *bed) {
		const all, each = 8, 10
		var group sync.WaitGroup
		for p := range all {
			group.Go(func() {
				for i := range each {
					n := int64(i*all + (p+3*i)%all)
					if _, err := b.AdvanceCheckpoint(b.ctx, "newest", n, map[string]string{"with": fmt.Sprint(n)}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		group.Wait()
		b.equal("the number", ok(b.Checkpoint(b.ctx, "newest"))(b), fmt.Sprint(all*each-1))
		b.equal("stored with it", ok(b.Checkpoint(b.ctx, "with"))(b), fmt.Sprint(all*each-1))
	}},
	{"one run id for two agents", func(b *bed) {
		two := b.newAgent("C2")
		b.post("m1", storage.Wait{})
		b.deliver(storage.Posting{To: two, Message: userMessage("m2")})
		var group sync.WaitGroup
		var begun atomic.Int64
		for _, h := range b.acquire(nodeOne, 2) {
			group.Go(func() {
				if _, err := b.Begin(b.ctx, h.Lease, "r1", []claybot.MessageID{h.Waiting[0].ID}, storage.Beginning{}); err == nil {
					begun.Add(1)
				}
			})
		}
		group.Wait()
		b.equal("how many have begun", begun.Load(), 1)
		b.equal("figures", b.figures().Runs, map[claybot.RunState]int{claybot.RunRunning: 1})
		b.equal("waiting", b.figures().Waiting, 1)
	}},
	{"no run without messages", func(b *bed) {
		l, _ := b.begin("r1")
		b.succeed(l, "r1")
		b.post("m2", instant)
		h := b.hold(nodeOne)
		for _, id := range []claybot.RunID{"r1", "r2"} {
			_, err := b.Begin(b.ctx, h.Lease, id, nil, storage.Beginning{})
			b.is(err, storage.ErrNotFound)
		}
	}},
	{"places of all that a run's end says", func(b *bed) {
		two, three := b.newAgent("C2"), b.newAgent("C3")
		b.post("m1", storage.Wait{})
		l, _ := b.begin("r1")
		said := func(id string) []claybot.Outgoing { return []claybot.Outgoing{reply(id)} }
		o := storage.Outcome{
			State: claybot.RunSucceeded, Events: []claybot.Event{{Type: claybot.EventRunFinished}},
			Replies: []claybot.Outgoing{reply("o1"), reply("o2"), reply("o1")},
			Posts: []storage.Posting{
				{To: two, Message: userMessage("m2"), Skip: "too_long", Replies: said("o3")},
				{To: three, Message: userMessage("m3"), Skip: "too_long", Replies: said("o4")},
				{To: three, Message: userMessage("m3"), Skip: "too_long", Replies: said("o5")},
			},
		}
		added := ok(b.Finish(b.ctx, l, "r1", o))(b)
		b.equal("added", outIDs(added), []string{"o1", "o2", "o3", "o4"})
		b.equal("as stored", ok(b.Unsent(b.ctx, dest, 0, 10))(b), added)
	}},
}
