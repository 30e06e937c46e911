package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// flowTests are about the unfinished runs of workflows: how many there are, and what a limit of them does.
var flowTests = []storeTest{
	{"the load follows runs, also across a start", func(b *bed) {
		is := func(when string, open, waiting int) {
			b.Helper()
			b.equal(when, ok(b.FlowLoad(b.ctx, "orders"))(b), storage.FlowLoad{Open: open, Waiting: waiting})
		}
		b.flow("orders", "m1", nil)
		b.flow("orders (dry run)", "m2", nil)
		b.flow("order", "m3", nil)
		is("two wait for their turn", 2, 0)
		acquired := b.acquire(nodeOne, 3) // in no order among agents
		slices.SortFunc(acquired, func(x, y storage.Acquired) int { return cmp.Compare(x.Waiting[0].ID, y.Waiting[0].ID) })
		for _, a := range acquired {
			ok(b.Begin(b.ctx, a.Lease, claybot.RunID("r"+a.Waiting[0].ID), []claybot.MessageID{a.Waiting[0].ID}, storage.Beginning{}))(b)
			switch a.Waiting[0].ID {
			case "m1":
				is("at work", 2, 0)
				b.pause(a.Lease, "rm1")
				is("one waits for a person", 1, 1)
			case "m2":
				ok(b.Finish(b.ctx, a.Lease, "rm2", success()))(b)
			}
		}
		is("one has ended", 0, 1)
		b.again()
		is("after a start", 0, 1)
		b.equal("another workflow", ok(b.FlowLoad(b.ctx, "order"))(b), storage.FlowLoad{Open: 1})
		b.noError(b.UnindexAgent(b.ctx, "flow-m1"))
		b.noError(b.UnindexAgent(b.ctx, "flow-m3"))
		is("its agent is gone", 0, 0)
		b.equal("another one, too", ok(b.FlowLoad(b.ctx, "order"))(b), storage.FlowLoad{})
	}},
	{"a message finds no room", func(b *bed) {
		b.flow("orders", "m1", &storage.FlowLoad{Open: 2, Waiting: 1})
		b.flow("orders", "m2", &storage.FlowLoad{Open: 2, Waiting: 1})
		full := b.flow("orders", "m3", &storage.FlowLoad{Open: 2, Waiting: 1})
		b.equal("the third", []any{full.Added, full.Skipped}, []any{true, storage.SkippedFlowFull})
		b.equal("another workflow", b.flow("order", "m4", &storage.FlowLoad{Open: 2, Waiting: 1}).Skipped, "")

		p := b.flowPosting("orders", "m5")
		p.Room, p.Refuse = &storage.FlowLoad{Open: 2, Waiting: 1}, true
		_, err := b.Post(b.ctx, p)
		b.is(err, storage.ErrFlowFull)
		_, err = b.Receipt(b.ctx, "m5")
		b.is(err, storage.ErrNotFound)
		b.noError(b.UnindexAgent(b.ctx, "flow-m1"))
		b.equal("there is room again", b.deliver(p).Added, true)
		p.Room.Open = 0
		b.equal("a duplicate needs none", b.deliver(p).Added, false)
	}},
	{"a firing finds no room", func(b *bed) {
		p := b.flowPosting("orders", "m1")
		p.Room = &storage.FlowLoad{}
		p.Message.Firing = &claybot.Firing{Task: "flow-orders", Instant: "2026-01-31T09:00:00Z", Planned: claybot.At(time.Now())}
		b.equal("skipped", b.deliver(p).Skipped, storage.SkippedFlowFull)
		rows := ok(b.Firings(b.ctx, "flow-orders", 9))(b)
		b.equal("the ledger", []any{len(rows), rows[0].State, rows[0].Reason}, []any{1, "skipped", storage.SkippedFlowFull})
	}},
	{"messages at once find exactly the room there is", func(b *bed) {
		const most = 10
		done := make(chan storage.Posted, 3*most)
		var all []storage.Posting
		for i := range cap(done) {
			p := b.flowPosting("orders", fmt.Sprint("m", i))
			p.Room = &storage.FlowLoad{Open: most, Waiting: most}
			all = append(all, p)
		}
		for _, p := range all {
			go func() {
				posted, err := b.Post(b.ctx, p)
				b.noError(err)
				done <- posted
			}()
		}
		taken := 0
		for range cap(done) {
			if posted := <-done; posted.Skipped == "" {
				taken++
			}
		}
		b.equal("taken", taken, most)
	}},
}

// flowPosting is a message that starts a workflow, for a new agent.
func (b *bed) flowPosting(name, id string) storage.Posting {
	b.Helper()
	agent := claybot.AgentID("flow-" + id)
	b.noError(b.IndexAgents(b.ctx, claybot.Agent{ID: agent, Descriptor: claybot.Descriptor{Type: claybot.AgentFlow, UID: id, Name: name}, CreatedAt: claybot.Now()}))
	m := userMessage(id)
	m.Type, m.Kind, m.Flow = claybot.MessageSystem, claybot.KindTrigger, &claybot.FlowStart{Name: name}
	return storage.Posting{To: agent, Message: m}
}

// flow posts a message that starts a workflow.
func (b *bed) flow(name, id string, room *storage.FlowLoad) storage.Posted {
	b.Helper()
	p := b.flowPosting(name, id)
	p.Room = room
	return b.deliver(p)
}
