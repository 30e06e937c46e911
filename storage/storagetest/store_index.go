package storagetest

import (
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var indexTests = []storeTest{
	{"find", func(b *bed) {
		d := claybot.User("telegram", "C1", "U1")
		b.equal("by descriptor", ok(b.IndexedAgent(b.ctx, d))(b), b.agent)
		b.equal("by id", ok(b.IndexedDescriptor(b.ctx, b.agent))(b), d)
		b.equal("entry", ok(b.IndexedAgentByID(b.ctx, b.agent))(b), storage.IndexEntry{ID: b.agent, Descriptor: d})

		unknown := claybot.NewID()
		_, err := b.IndexedAgent(b.ctx, claybot.User("telegram", "C1", "U2"))
		b.is(err, storage.ErrNotFound)
		_, err = b.IndexedDescriptor(b.ctx, unknown)
		b.is(err, storage.ErrNotFound)
		_, err = b.IndexedAgentByID(b.ctx, unknown)
		b.is(err, storage.ErrNotFound)
	}},
	{"a known id gets a new descriptor and keeps the rest", func(b *bed) {
		b.post("m1", minute)
		moved := claybot.User("telegram", "C9", "U1")
		b.noError(b.IndexAgents(b.ctx, claybot.Agent{ID: b.agent, Descriptor: moved}))
		e := ok(b.IndexedAgentByID(b.ctx, b.agent))(b)
		b.equal("descriptor and waiting", []any{e.Descriptor, e.Waiting}, []any{moved, 1})
		_, err := b.IndexedAgent(b.ctx, claybot.User("telegram", "C1", "U1"))
		b.is(err, storage.ErrNotFound)
		b.equal("agents", b.figures().Agents, 1)
	}},
	{"one descriptor has one agent", func(b *bed) {
		twin := claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("telegram", "C1", "U1")}
		if err := b.IndexAgents(b.ctx, claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("telegram", "C2", "U1")}, twin); err == nil {
			b.Fatal("a second agent with the same descriptor was taken")
		}
		b.equal("agents after the refusal", b.figures().Agents, 1)
	}},
	{"all agents with their figures", func(b *bed) {
		state := claybot.AgentState{LastUserAt: 7, Usage: claybot.Usage{Input: 5, Estimated: true}}
		old := claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("slack", "D1", "U7"), State: state}
		b.noError(b.IndexAgents(b.ctx, old))
		many := make([]claybot.Agent, 1200)
		for i := range many {
			many[i] = claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("telegram", fmt.Sprint("many", i), "U1")}
		}
		b.noError(b.IndexAgents(b.ctx, many...))
		b.post("m1", minute)
		want := map[claybot.AgentID]storage.IndexEntry{
			old.ID:  {ID: old.ID, Descriptor: old.Descriptor, LastUserAt: 7, Usage: state.Usage},
			b.agent: {ID: b.agent, Descriptor: claybot.User("telegram", "C1", "U1"), LastUserAt: claybot.Now(), Waiting: 1, Busy: true},
		}
		seen := make(map[claybot.AgentID]bool)
		for e, err := range b.IndexedAgents(b.ctx) {
			b.noError(err)
			if w, known := want[e.ID]; known {
				b.equal("entry", e, w)
			}
			seen[e.ID] = true
			if len(seen)%400 == 0 {
				ok(b.IndexedDescriptor(b.ctx, e.ID))(b) // the store may be used meanwhile
			}
		}
		b.equal("agents", []int{len(seen), b.figures().Agents}, []int{1202, 1202})
		for _, err := range b.IndexedAgents(b.ctx) {
			b.noError(err)
			break
		}
	}},
	{"removal ends what waits and what runs", func(b *bed) {
		b.begin("r1")
		b.post("m1", instant)
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		_, err := b.IndexedDescriptor(b.ctx, b.agent)
		b.is(err, storage.ErrNotFound)
		_, err = b.Post(b.ctx, storage.Posting{To: b.agent, Message: userMessage("m2")})
		b.is(err, storage.ErrNotFound)
		b.equal("run", b.run("r1").State, claybot.RunFailed)
		b.equal("events", b.events("r1", 0), []claybot.EventType{claybot.EventRunStarted, claybot.EventRunFailed})
		f := b.figures()
		b.equal("figures", []any{f.Agents, f.Waiting, f.Runs}, []any{0, 0, map[claybot.RunState]int{claybot.RunFailed: 1}})
		b.neverDue("without agents")
	}},
}
