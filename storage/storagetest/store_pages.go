package storagetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// paged reads a list page by page and checks the length of each.
func paged[T any](b *bed, limit int, next func(last *T) []T) (all []T) {
	b.Helper()
	var last *T
	for {
		page := next(last)
		if len(page) > limit {
			b.Fatalf("%d on a page of %d", len(page), limit)
		}
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
		last = &page[len(page)-1]
	}
}

func (b *bed) runPages(q storage.RunQuery) (ids []claybot.RunID) {
	b.Helper()
	for _, r := range paged(b, q.Limit, func(last *claybot.Run) []claybot.Run {
		if last != nil {
			q.Before = last.ID
		}
		return ok(b.RunPage(b.ctx, q))(b)
	}) {
		ids = append(ids, r.ID)
	}
	return ids
}

func (b *bed) agentPages(q storage.AgentQuery) (ids []claybot.AgentID) {
	b.Helper()
	for _, e := range paged(b, q.Limit, func(last *storage.IndexEntry) []storage.IndexEntry {
		if last != nil {
			q.After = last.ID
		}
		return ok(b.AgentPage(b.ctx, q))(b)
	}) {
		ids = append(ids, e.ID)
	}
	return ids
}

func (b *bed) outgoingPages(q storage.OutgoingQuery) []string {
	b.Helper()
	return outIDs(paged(b, q.Limit, func(last *claybot.Outgoing) []claybot.Outgoing {
		if last != nil {
			q.Before = last.N
		}
		return ok(b.OutgoingPage(b.ctx, q))(b)
	}))
}

// someRuns makes runs in all states, of two agents, and returns them the newest
// first.
func (b *bed) someRuns() (all []claybot.Run) {
	first, second := b.agent, b.newAgent("C2")
	for i := range 12 {
		b.agent = []claybot.AgentID{first, second}[i%2]
		id := claybot.RunID(fmt.Sprintf("r%02d", i))
		l, _ := b.begin(id)
		o := success()
		switch {
		case i >= 10: // one stays in each agent
			if i == 11 {
				b.pause(l, id)
			}
		case i%3 == 1:
			o = storage.Outcome{State: claybot.RunFailed, Events: []claybot.Event{{Type: claybot.EventRunFailed}}}
			fallthrough
		default:
			ok(b.Finish(b.ctx, l, id, o))(b)
		}
		all = append(all, b.run(id))
	}
	for i := range 4 {
		id := claybot.RunID(fmt.Sprintf("r%02d", 20+i))
		b.agent = []claybot.AgentID{first, second}[i%2]
		b.to(b.agent, reserving("m-"+string(id), id))
		if i == 3 {
			ok(b.Drop(b.ctx, b.agent, "dropped", claybot.MessageID("m-"+id)))(b)
		}
		all = append(all, b.run(id))
	}
	b.agent = first
	slices.Reverse(all)
	return all
}

var pageTests = []storeTest{
	{"runs", func(b *bed) {
		all := b.someRuns()
		b.equal("as they are", ok(b.RunPage(b.ctx, storage.RunQuery{}))(b), all)
		states := []claybot.RunState{
			"", claybot.RunPending, claybot.RunRunning, claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled, "NONE",
		}
		for _, agent := range []claybot.AgentID{"", b.agent, "unknown"} {
			for _, state := range states {
				var want []claybot.RunID
				for _, r := range all {
					if (agent == "" || agent == r.Agent) && (state == "" || state == r.State) {
						want = append(want, r.ID)
					}
				}
				for _, limit := range []int{1, 3, 100} {
					q := storage.RunQuery{Agent: agent, State: state, Limit: limit}
					b.equal(fmt.Sprintf("%+v", q), b.runPages(q), want)
				}
			}
		}
		b.equal("before an id that is none", len(ok(b.RunPage(b.ctx, storage.RunQuery{Before: "r055"}))(b)), 6)
		b.equal("before all", len(ok(b.RunPage(b.ctx, storage.RunQuery{Before: "a"}))(b)), 0)
	}},
	{"a run that begins meanwhile", func(b *bed) {
		for i := range 50 {
			id := claybot.RunID(fmt.Sprintf("r%02d", i))
			b.to(b.agent, reserving("m-"+string(id), id))
			h := b.hold(nodeOne)
			begun := make(chan error, 1)
			go func() {
				_, err := b.Begin(b.ctx, h.Lease, id, ids(h.Waiting), storage.Beginning{})
				begun <- err
			}()
			for waits := true; waits; {
				select {
				case err := <-begun:
					b.noError(err)
					waits = false
				default:
				}
				page := ok(b.RunPage(b.ctx, storage.RunQuery{Limit: 1}))(b)
				if len(page) != 1 || page[0].ID != id || !waits && page[0].State != claybot.RunRunning {
					b.Fatalf("as %s begins, the newest is %+v", id, page)
				}
			}
			b.succeed(h.Lease, id)
		}
	}},
	{"fifty by default", func(b *bed) {
		var out []claybot.Outgoing
		for i := range 60 {
			b.newAgent(fmt.Sprint("X", i))
			b.to(b.agent, reserving(fmt.Sprint("m", i), claybot.RunID(fmt.Sprint("r", i))))
			out = append(out, reply(fmt.Sprint("o", i)))
		}
		ok(b.Enqueue(b.ctx, out...))(b)
		b.equal("lengths", []any{
			len(ok(b.RunPage(b.ctx, storage.RunQuery{}))(b)), len(ok(b.AgentPage(b.ctx, storage.AgentQuery{}))(b)),
			len(ok(b.OutgoingPage(b.ctx, storage.OutgoingQuery{}))(b)),
		}, []any{50, 50, 50})
	}},
	{"agents", func(b *bed) {
		written, other := b.newAgent("C2"), b.newAgent("C3")
		time.Sleep(ms)
		made := claybot.Now()
		background := func(d claybot.Descriptor) claybot.AgentID {
			a := claybot.Agent{ID: claybot.NewID(), Descriptor: d, CreatedAt: made}
			made++
			b.noError(b.IndexAgents(b.ctx, a))
			return a.ID
		}
		task := background(claybot.Descriptor{Type: claybot.AgentCron, UID: "daily", Owner: "telegram/U1"})
		free := background(claybot.Descriptor{Type: claybot.AgentCron, UID: "weekly"})
		kid := background(claybot.Descriptor{Type: claybot.AgentSubagent, UID: "1", Parent: b.agent, Root: b.agent, Owner: "telegram/U1"})
		kid2 := background(claybot.Descriptor{Type: claybot.AgentSubagent, UID: "2", Parent: b.agent, Root: b.agent, Owner: "telegram/U1"})
		b.to(written, userMessage("m1"))
		time.Sleep(ms)
		b.post("m2", minute)
		b.to(kid2, note("n1", claybot.KindTask))
		b.to(free, func() claybot.AgentMessage { m := note("n2", claybot.KindNotice); m.Silent = true; return m }())
		// Those with the newest message of a person, then the youngest.
		order := []claybot.AgentID{b.agent, written, kid2, kid, free, task, other}
		busy := []claybot.AgentID{b.agent, written, kid2}
		entries := make(map[claybot.AgentID]storage.IndexEntry)
		for e, err := range b.IndexedAgents(b.ctx) {
			b.noError(err)
			entries[e.ID] = e
		}
		for _, e := range ok(b.AgentPage(b.ctx, storage.AgentQuery{}))(b) {
			b.equal("entry", e, entries[e.ID])
			b.equal("busy", e.Busy, slices.Contains(busy, e.ID))
		}
		for _, kind := range []claybot.AgentType{"", claybot.AgentUser, claybot.AgentCron, claybot.AgentSubagent, claybot.AgentHeartbeat} {
			for _, owner := range []string{"", "telegram/U1", "telegram/U2"} {
				for _, parent := range []claybot.AgentID{"", b.agent, other} {
					for _, onlyBusy := range []bool{false, true} {
						var want []claybot.AgentID
						for _, id := range order {
							d := entries[id].Descriptor
							if (kind == "" || d.Type == kind) && (owner == "" || d.OwnerID() == owner) && (parent == "" || d.Parent == parent) && (!onlyBusy || entries[id].Busy) {
								want = append(want, id)
							}
						}
						for _, limit := range []int{1, 2, 100} {
							q := storage.AgentQuery{Type: kind, Owner: owner, Parent: parent, Busy: onlyBusy, Limit: limit}
							b.equal(fmt.Sprintf("%+v", q), b.agentPages(q), want)
						}
					}
				}
			}
		}
		_, err := b.AgentPage(b.ctx, storage.AgentQuery{After: "gone"})
		b.is(err, storage.ErrNotFound)
		ok(b.Drop(b.ctx, b.agent, "dropped"))(b)
		b.equal("not busy any more", b.agentPages(storage.AgentQuery{Busy: true, Limit: 9}), busy[1:])
		for _, h := range b.acquire(nodeOne, 2) {
			ok(b.Begin(b.ctx, h.Lease, claybot.RunID("r-"+h.Lease.Agent), ids(h.Waiting), storage.Beginning{}))(b)
		}
		b.equal("with runs", b.agentPages(storage.AgentQuery{Busy: true, Limit: 9}), busy[1:])
	}},
	{"outgoing messages", func(b *bed) {
		type made struct {
			id, dest string
			state    claybot.SendState
		}
		var all []made
		states := []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendSent, claybot.SendAmbiguous, claybot.SendFailed}
		for i := range 20 {
			o := reply(fmt.Sprintf("o%02d", i))
			if i%3 == 0 {
				o.Route.ChannelID = "C2"
			}
			ok(b.Enqueue(b.ctx, o))(b)
			state := states[i%len(states)]
			if state != claybot.SendWaiting {
				b.noError(b.attempt(o.ID))
			}
			if state != claybot.SendWaiting && state != claybot.SendAttempted {
				b.resolve(o.ID, storage.Resolution{State: state, Receipt: "77", Cause: "because"})
			}
			all = append(all, made{o.ID, o.Route.Dest(), state})
		}
		slices.Reverse(all)
		for _, place := range []string{"", dest, "nowhere"} {
			for _, state := range append(states, "", "NONE") {
				for _, onlyOpen := range []bool{false, true} {
					want := []string{}
					for _, m := range all {
						ended := m.state == claybot.SendSent || m.state == claybot.SendFailed
						if (place == "" || m.dest == place) && (state == "" || m.state == state) && (!onlyOpen || !ended) {
							want = append(want, m.id)
						}
					}
					for _, limit := range []int{1, 3, 100} {
						q := storage.OutgoingQuery{Dest: place, State: state, Open: onlyOpen, Limit: limit}
						b.equal(fmt.Sprintf("%+v", q), b.outgoingPages(q), want)
					}
				}
			}
		}
		for _, o := range ok(b.OutgoingPage(b.ctx, storage.OutgoingQuery{}))(b) {
			b.equal("by its id", ok(b.OutgoingByID(b.ctx, o.ID))(b), o)
		}
	}},
}
