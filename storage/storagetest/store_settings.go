package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var settingsTests = []storeTest{
	{"settings", func(b *bed) {
		all := func() map[claybot.AgentID]claybot.Settings { return ok(b.AgentSettings(b.ctx))(b) }
		b.equal("none", len(all()), 0)
		quiet, no := int64(0), false
		s := claybot.Settings{
			Model: "small", Prompt: "Be <kind> & \"brief\".\n", MaxSteps: 3, DebounceMS: &quiet, WhenBusy: "wait", ProcessBuffer: "one",
			Tools: []string{"clock"},
			Permissions: &claybot.Permissions{
				WorkingDir: "src", ReadDirs: []string{"docs"}, WriteDirs: []string{}, Web: &no, Routes: []string{}, Tools: claybot.ToolPermissions{Deny: []string{"x"}},
			},
		}
		other := b.newAgent("C2")
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, s))
		b.noError(b.SaveAgentSettings(b.ctx, other, claybot.Settings{Model: "big"}))
		b.again()
		got := all()
		b.equal("kept", []any{len(got), *got[b.agent].DebounceMS, got[other]}, []any{2, 0, claybot.Settings{Model: "big"}})
		mine := got[b.agent]
		mine.DebounceMS, s.DebounceMS = nil, nil
		b.equal("all of them", mine, s)
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, claybot.Settings{Prompt: "other"}))
		b.equal("replaced", all()[b.agent], claybot.Settings{Prompt: "other"})
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, claybot.Settings{}))
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, claybot.Settings{}))
		b.equal("empty ones are removed", len(all()), 1)
		b.noError(b.UnindexAgent(b.ctx, other))
		b.equal("with their agent", len(all()), 0)
		b.is(b.SaveAgentSettings(b.ctx, other, s), storage.ErrNotFound)
		b.equal("of an unknown agent", len(all()), 0)
	}},
	{"reschedule one agent", func(b *bed) {
		other := b.newAgent("C2")
		b.post("m1", minute)
		ok(b.Post(b.ctx, storage.Posting{To: other, Message: userMessage("m2"), Wait: minute}))(b)
		asked := func(agent claybot.AgentID, w storage.Wait) (n int) {
			b.noError(b.Reschedule(b.ctx, agent, func(id claybot.AgentID, d claybot.Descriptor) storage.Wait {
				if agent != "" {
					b.equal("asked for", []any{id, d.ChannelID}, []any{other, "C2"})
				}
				n++
				return w
			}))
			return n
		}
		long := storage.Wait{Quiet: time.Hour, Max: time.Hour}
		b.equal("all", asked("", long), 2)
		b.equal("one", asked(other, instant), 1)
		b.equal("due", b.hold(nodeOne).Lease.Agent, other)
		r := ok(b.Receipt(b.ctx, "m1"))(b)
		b.equal("the other", r.Due-r.Stored, time.Hour.Milliseconds())
		idle := b.newAgent("C3")
		b.equal("nothing waits", asked(idle, instant), 0)
		b.equal("unknown", asked("unknown", instant), 0)
	}},
}
