package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var leaseTests = []storeTest{
	{"acquire", func(b *bed) {
		b.acquire(nodeOne, 0)
		second, third := b.newAgent("C2"), b.newAgent("C3")
		for _, a := range []claybot.AgentID{second, b.agent, third} {
			m := userMessage("m" + string(a))
			ok(b.Post(b.ctx, storage.Posting{To: a, Message: m}))(b)
			time.Sleep(ms)
		}
		acquired, next, err := b.Acquire(b.ctx, nodeOne, ttl, 2, 10)
		b.noError(err)
		b.equal("longest due first", []claybot.AgentID{acquired[0].Lease.Agent, acquired[1].Lease.Agent}, []claybot.AgentID{second, b.agent})
		b.equal("third is due", next.IsZero() || next.After(time.Now()), false)
		b.equal("lease", time.Until(acquired[0].Lease.Until), ttl)
		b.equal("node", acquired[0].Lease.Node, nodeOne)
		b.equal("third", b.acquire(nodeOne, 1)[0].Lease.Agent, third)
		b.acquire(nodeOne, 0)
		_, next, err = b.Acquire(b.ctx, nodeTwo, ttl, 10, 10)
		b.noError(err)
		b.equal("for others when the first lease ends", next.After(time.Now()) && !next.After(time.Now().Add(ttl)), true)
		_, next, err = b.Acquire(b.ctx, nodeOne, ttl, 10, 10)
		b.noError(err)
		b.equal("for the holder nothing is due now", next.IsZero() || next.After(time.Now()), true)
	}},
	{"a lease whose holder did not hear of it ends", func(b *bed) {
		b.post("m1", instant)
		b.hold(nodeOne) // as if the answer got lost: no node renews it
		b.post("m2", instant)
		b.acquire(nodeOne, 0)
		time.Sleep(ttl)
		if b.Alone() { // a process that has the store for itself hears all answers
			b.acquire(nodeOne, 0)
			return
		}
		h := b.hold(nodeOne)
		b.equal("all that waits", ids(h.Waiting), []claybot.MessageID{"m1", "m2"})
	}},
	{"batch", func(b *bed) {
		for _, id := range []string{"m1", "m2", "m3"} {
			b.post(id, instant)
		}
		acquired, _, err := b.Acquire(b.ctx, nodeOne, ttl, 1, 2)
		b.noError(err)
		b.equal("first two", ids(acquired[0].Waiting), []claybot.MessageID{"m1", "m2"})
		ok(b.Begin(b.ctx, acquired[0].Lease, "r1", ids(acquired[0].Waiting), storage.Beginning{}))(b)
		b.succeed(acquired[0].Lease, "r1")
		b.dueIn("the third", 0)
		b.equal("then the third", ids(b.hold(nodeOne).Waiting), []claybot.MessageID{"m3"})
	}},
	{"an expired lease goes to another node with its run", func(b *bed) {
		lease, _ := b.begin("r1")
		b.post("m2", minute)
		time.Sleep(ttl - ms)
		b.acquire(nodeTwo, 0)
		time.Sleep(ms)
		if b.Alone() {
			b.acquire(nodeOne, 0) // it holds the agent already, as far as it knows
		}
		h := b.hold(nodeTwo)
		b.equal("run", []any{h.Run.ID, h.Run.State, ids(h.Bound), ids(h.Waiting)},
			[]any{"r1", claybot.RunRunning, []claybot.MessageID{"m-r1"}, []claybot.MessageID{"m2"}})
		b.equal("a larger token", h.Lease.Token > lease.Token, true)
		run := ok(b.Begin(b.ctx, h.Lease, "r2", nil, storage.Beginning{}))(b)
		b.equal("resumed", []any{run.ID, run.Attempts}, []any{"r1", 2})
		b.equal("events", b.events("r1", 0), []claybot.EventType{claybot.EventRunStarted, claybot.EventRunResumed})
	}},
	{"an older token writes nothing", func(b *bed) {
		old, _ := b.begin("r1")
		b.post("m2", instant)
		time.Sleep(ttl)
		current := b.hold(nodeTwo).Lease
		wrongNode := current
		wrongNode.Node = nodeOne
		before := b.run("r1")
		for _, l := range []storage.Lease{old, wrongNode, {Agent: b.agent, Node: nodeTwo, Token: current.Token + 1}, {Agent: b.agent}} {
			b.refusesLease(l, "r1", "m2")
		}
		b.equal("run", b.run("r1"), before)
		skipped, run := b.receiptOf("m2")
		b.equal("m2 waits", []any{skipped, run}, []any{"", ""})
		b.equal("outbox", len(ok(b.Unsent(b.ctx, dest, 0, 10))(b)), 0)
		b.equal("waiting", b.figures().Waiting, 1)
		b.succeed(current, "r1")
	}},
	{"a released lease is lost", func(b *bed) {
		b.post("m1", instant)
		b.post("m2", instant)
		l := b.hold(nodeOne).Lease
		b.noError(b.Release(b.ctx, l, instant, true))
		b.refusesLease(l, "r1", "m2")
		b.equal("same node again", b.hold(nodeOne).Lease.Token > l.Token, true)
	}},
	{"an expired lease without a new holder still holds", func(b *bed) {
		lease, _ := b.begin("r1")
		time.Sleep(10 * ttl)
		renewed, _, err := b.Renew(b.ctx, lease, ttl)
		b.noError(err)
		b.equal("renewed", time.Until(renewed.Until), ttl)
		b.acquire(nodeTwo, 0)
		b.succeed(renewed, "r1")
	}},
	{"renewal keeps others out", func(b *bed) {
		lease, _ := b.begin("r1")
		for range 3 {
			time.Sleep(ttl - ms)
			renewed, by, err := b.Renew(b.ctx, lease, ttl)
			b.noError(err)
			b.equal("no request to cancel", by, "")
			b.equal("same token", renewed.Token, lease.Token)
			b.acquire(nodeTwo, 0)
		}
	}},
	{"release", func(b *bed) {
		b.post("m1", minute)
		time.Sleep(time.Minute)
		h := b.hold(nodeOne)
		b.noError(b.Release(b.ctx, h.Lease, storage.Wait{Quiet: 90 * time.Second, Max: time.Hour}, true))
		b.dueIn("by the new wait", 30*time.Second)

		time.Sleep(30 * time.Second)
		h = b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.noError(b.Release(b.ctx, h.Lease, minute, true))
		b.equal("an orderly end is not an attempt", b.run("r1").Attempts, 0)
		b.dueNow("an unfinished run")
		h = b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r9", nil, storage.Beginning{}))(b)
		b.noError(b.Release(b.ctx, h.Lease, minute, false))
		b.equal("a lost pass is one", b.run("r1").Attempts, 1)
	}},
	{"the next process takes all leases back", func(b *bed) {
		if !b.Alone() {
			b.TB.Skip("leases of a process among several end with their time")
		}
		lease, _ := b.begin("r1")
		second := b.newAgent("C2")
		ok(b.Post(b.ctx, storage.Posting{To: second, Message: userMessage("m2"), Wait: instant}))(b)
		b.hold(nodeOne)
		b.again()
		b.refusesLease(lease, "r1", "m2")
		acquired := b.acquire(nodeOne, 2) // same node name, at once
		b.equal("unfinished runs first", acquired[0].Run.ID, "r1")
		b.equal("its messages", ids(acquired[0].Bound), []claybot.MessageID{"m-r1"})
		b.equal("waiting", ids(acquired[1].Waiting), []claybot.MessageID{"m2"})
		b.equal("a larger token", acquired[0].Lease.Token > lease.Token, true)
	}},
}

// refusesLease calls every method that takes a lease.
func (b *bed) refusesLease(l storage.Lease, run claybot.RunID, waiting claybot.MessageID) {
	b.Helper()
	calls := map[string]func() error{
		"Renew":   func() error { _, _, err := b.Renew(b.ctx, l, ttl); return err },
		"Release": func() error { return b.Release(b.ctx, l, instant, true) },
		"Take":    func() error { _, err := b.Take(b.ctx, l, run, 10, nil); return err },
		"Settle": func() error {
			_, err := b.Settle(b.ctx, l, waiting, storage.Settlement{Reason: "reset", Replies: []claybot.Outgoing{reply("stale")}})
			return err
		},
		"Begin": func() error {
			_, err := b.Begin(b.ctx, l, "stale", []claybot.MessageID{waiting}, storage.Beginning{})
			return err
		},
		"Append":    func() error { return b.Append(b.ctx, l, run, true, claybot.Event{Type: claybot.EventToolCalled}) },
		"SaveDraft": func() error { return b.SaveDraft(b.ctx, l, run, claybot.Draft{Outgoing: "stale"}) },
		"Finish":    func() error { _, err := b.Finish(b.ctx, l, run, success(reply("stale"))); return err },
	}
	for name, call := range calls {
		if err := call(); err == nil {
			b.Fatalf("%s accepted the lease %+v", name, l)
		} else {
			b.is(err, storage.ErrLeaseLost)
		}
	}
}
