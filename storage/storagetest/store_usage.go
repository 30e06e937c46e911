package storagetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func (b *bed) spent(q storage.SpentQuery, want ...storage.Spent) {
	b.Helper()
	b.equal(fmt.Sprintf("spent %+v", q), ok(b.Spent(b.ctx, q))(b), want)
}

// took is a successful outcome with one call per model, each at the same cost.
func took(each claybot.Usage, models ...string) storage.Outcome {
	o := success()
	for _, m := range models {
		o.Usage = o.Usage.Add(each)
		o.Calls = append(o.Calls, storage.ModelCall{Model: m, Usage: each})
	}
	return o
}

func (b *bed) runs(id claybot.RunID, o storage.Outcome) {
	b.Helper()
	l, _ := b.begin(id)
	ok(b.Finish(b.ctx, l, id, o))(b)
}

var one = claybot.Usage{Input: 10, Output: 1, CachedInput: 4, CostMicroUSD: 100, LLMCalls: 1}

func times(n int64) claybot.Usage {
	var u claybot.Usage
	for range n {
		u = u.Add(one)
	}
	return u
}

const (
	dayOne = "2000-01-01" // when bubbles begin
	dayTwo = "2000-01-02"
)

var usageTests = []storeTest{
	{"spent", func(b *bed) {
		b.spent(storage.SpentQuery{}, storage.Spent{})
		b.spent(storage.SpentQuery{By: []string{storage.ByDay}})
		mine := b.agent
		b.runs("r1", took(one, "big", "small", "big"))
		time.Sleep(24*time.Hour - ms) // the last millisecond of the day in UTC
		b.runs("r2", took(one, "small"))
		b.agent = b.child("1", mine)
		time.Sleep(ms)
		l, _ := b.begin("r3")
		time.Sleep(time.Second)
		o := took(one, "big")
		o.State, o.Events = claybot.RunFailed, []claybot.Event{{Type: claybot.EventRunFailed}}
		ok(b.Finish(b.ctx, l, "r3", o))(b)
		b.agent = mine
		b.again()
		b.spent(storage.SpentQuery{}, storage.Spent{Usage: times(5), Runs: 3})
		b.spent(storage.SpentQuery{By: []string{storage.ByDay}},
			storage.Spent{Day: dayOne, Usage: times(4), Runs: 2}, storage.Spent{Day: dayTwo, Usage: one, Runs: 1})
		b.spent(storage.SpentQuery{By: []string{storage.ByModel}}, storage.Spent{Model: "big", Usage: times(3)}, storage.Spent{Model: "small", Usage: times(2)})
		b.spent(storage.SpentQuery{By: []string{storage.ByModel, storage.ByDay}, To: dayOne},
			storage.Spent{Model: "big", Day: dayOne, Usage: times(2)}, storage.Spent{Model: "small", Day: dayOne, Usage: times(2)})
		b.spent(storage.SpentQuery{By: []string{storage.ByType}},
			storage.Spent{Type: claybot.AgentSubagent, Usage: one, Runs: 1}, storage.Spent{Type: claybot.AgentUser, Usage: times(4), Runs: 2})
		b.spent(storage.SpentQuery{Agent: mine, From: dayOne, To: dayTwo}, storage.Spent{Usage: times(4), Runs: 2})
		b.spent(storage.SpentQuery{From: dayTwo, By: []string{storage.ByDay, storage.ByType}}, storage.Spent{Day: dayTwo, Type: claybot.AgentSubagent, Usage: one, Runs: 1})
		b.spent(storage.SpentQuery{From: "2000-01-03"}, storage.Spent{})
		b.spent(storage.SpentQuery{From: "2000-01-03", By: []string{storage.ByAgent}})
		var byAgent []storage.Spent
		for _, s := range ok(b.Spent(b.ctx, storage.SpentQuery{By: []string{storage.ByAgent, storage.ByOwner}}))(b) {
			if s.Agent == mine {
				byAgent = append(byAgent, s)
			}
		}
		b.equal("by agent and owner", byAgent, []storage.Spent{{Agent: mine, Owner: "telegram/U1", Usage: times(4), Runs: 2}})
		b.spent(storage.SpentQuery{Owners: []string{"telegram/U1"}, By: []string{storage.ByDay}, To: dayOne}, storage.Spent{Day: dayOne, Usage: times(4), Runs: 2})
		b.spent(storage.SpentQuery{Owners: []string{"telegram/U2", "slack/U1"}}, storage.Spent{})
		b.spent(storage.SpentQuery{Owners: []string{"telegram/U2", "telegram/U1"}, To: dayOne}, storage.Spent{Usage: times(4), Runs: 2})
		for _, by := range [][]string{{"input"}, {storage.ByDay, "agent; DROP TABLE runs"}, {""}} {
			if _, err := b.Spent(b.ctx, storage.SpentQuery{By: by}); err == nil {
				b.Fatalf("summed by %q", by)
			}
		}
	}},
	{"a sum is what its agent spent in all", func(b *bed) {
		o := took(one, "big")
		o.Usage = o.Usage.Add(claybot.Usage{ToolCalls: 3})
		b.runs("r1", o) // calls of tools go with the model
		b.spent(storage.SpentQuery{By: []string{storage.ByModel}}, storage.Spent{Model: "big", Usage: o.Usage})
		rest := claybot.Usage{Input: 5, CostMicroUSD: 7, LLMCalls: 1, Estimated: true}
		o.Usage = o.Usage.Add(rest)
		b.runs("r2", o) // what no call explains belongs to no model
		got := ok(b.Spent(b.ctx, storage.SpentQuery{By: []string{storage.ByModel}}))(b)
		b.equal("unexplained", got[0], storage.Spent{Usage: rest})
		b.runs("r3", storage.Outcome{State: claybot.RunSucceeded, Events: success().Events, Usage: one})
		b.equal("without calls", ok(b.Spent(b.ctx, storage.SpentQuery{By: []string{storage.ByModel}}))(b)[0].Usage, rest.Add(one))
		b.runs("r4", success()) // asked no model
		total := ok(b.Spent(b.ctx, storage.SpentQuery{}))(b)[0]
		b.equal("total", total, storage.Spent{Usage: ok(b.IndexedAgentByID(b.ctx, b.agent))(b).Usage, Runs: 4})
	}},
	{"settled messages", func(b *bed) {
		b.post("m1", instant)
		l := b.hold(nodeOne).Lease
		s := storage.Settlement{Reason: "compacted", Usage: one, Calls: []storage.ModelCall{{Model: "big", Usage: one, MS: 40}}}
		ok(b.Settle(b.ctx, l, "m1", s))(b)
		b.spent(storage.SpentQuery{By: []string{storage.ByModel}}, storage.Spent{Model: "big", Usage: one})
		b.spent(storage.SpentQuery{}, storage.Spent{Usage: one})
		b.equal("latency", []any{ok(b.Latencies(b.ctx, "", ""))(b)[0].What}, []any{"model:big"})
	}},
	{"what is counted of a call", func(b *bed) {
		call := claybot.Usage{Input: 9, Output: 5, CachedInput: 2, CacheWrite: 3, Reasoning: 4, CostMicroUSD: 7, LLMCalls: 1}
		free := claybot.Usage{Input: 1, Output: 1, LLMCalls: 1, Unpriced: 1}
		o := took(call, "big", "big")
		o.Usage = o.Usage.Add(free).Add(claybot.Usage{Input: 6, CacheWrite: 1, Reasoning: 1, Unpriced: 1})
		o.Calls = append(o.Calls, storage.ModelCall{Model: "unknown", Usage: free})
		b.runs("r1", o)
		b.again()
		b.spent(storage.SpentQuery{By: []string{storage.ByModel}},
			storage.Spent{Usage: claybot.Usage{Input: 6, CacheWrite: 1, Reasoning: 1, Unpriced: 1}},
			storage.Spent{Model: "big", Usage: call.Add(call)}, storage.Spent{Model: "unknown", Usage: free})
		b.spent(storage.SpentQuery{Agent: b.agent}, storage.Spent{Usage: o.Usage, Runs: 1})
	}},
	{"by place", func(b *bed) {
		first := b.agent
		b.runs("r1", took(one, "big"))
		b.agent = b.child("1", first)
		b.runs("r2", took(one, "big")) // pays where its root speaks
		b.agent = b.newAgent("C2")
		b.runs("r3", took(one, "big"))
		b.spent(storage.SpentQuery{By: []string{storage.ByConnector}}, storage.Spent{Connector: "telegram", Usage: times(3), Runs: 3})
		b.spent(storage.SpentQuery{By: []string{storage.ByChannel, storage.ByModel}},
			storage.Spent{Channel: "telegram:C1", Model: "big", Usage: times(2)}, storage.Spent{Channel: "telegram:C2", Model: "big", Usage: one})
		b.spent(storage.SpentQuery{By: []string{storage.ByType, storage.ByChannel}, From: dayTwo})
	}},
	{"deleted agents stay in the sums", func(b *bed) {
		b.runs("r1", took(one, "big"))
		gone := b.agent
		b.begin("r2")
		b.noError(b.UnindexAgent(b.ctx, gone))
		b.spent(storage.SpentQuery{Agent: gone, By: []string{storage.ByAgent, storage.ByOwner, storage.ByType}},
			storage.Spent{Agent: gone, Owner: "telegram/U1", Type: claybot.AgentUser, Usage: one, Runs: 2})
	}},
	{"kept for 400 days", func(b *bed) {
		b.runs("r1", took(one, "big"))
		time.Sleep(24 * time.Hour)
		b.runs("r2", took(one, "big"))
		b.noError(b.Prune(b.ctx, time.Now().Add(399*24*time.Hour), Retention))
		b.spent(storage.SpentQuery{}, storage.Spent{Usage: times(2), Runs: 2})
		b.noError(b.Prune(b.ctx, time.Now().Add(400*24*time.Hour), Retention))
		b.spent(storage.SpentQuery{By: []string{storage.ByDay}}, storage.Spent{Day: dayTwo, Usage: one, Runs: 1})
		b.equal("latencies", ok(b.Latencies(b.ctx, "", ""))(b)[0].Day, dayTwo)
	}},
	{"latencies", func(b *bed) {
		b.equal("none", len(ok(b.Latencies(b.ctx, "", ""))(b)), 0)
		var values []int64
		for i := range int64(100) {
			values = append(values, (i+1)*(i+1)*7) // to 70 s
		}
		o := success()
		for _, v := range values {
			o.Calls = append(o.Calls, storage.ModelCall{Model: "big", MS: v})
		}
		o.Calls = append(o.Calls, storage.ModelCall{Model: "unmeasured"})
		l, _ := b.begin("r1")
		time.Sleep(5 * time.Second)
		ok(b.Finish(b.ctx, l, "r1", o))(b)
		slices.Sort(values)
		list := ok(b.Latencies(b.ctx, dayOne, dayOne))(b)
		b.equal("things", len(list), 2)
		for i, want := range []storage.Latency{
			{Day: dayOne, What: "model:big", N: 100, P50: values[49], P90: values[89], P99: values[98], Max: values[99]},
			{Day: dayOne, What: "run", N: 1, P50: 5000, P90: 5000, P99: 5000, Max: 5000},
		} {
			got := list[i]
			b.equal("what", []any{got.Day, got.What, got.N}, []any{want.Day, want.What, want.N})
			for _, v := range [][2]int64{{got.P50, want.P50}, {got.P90, want.P90}, {got.P99, want.P99}, {got.Max, want.Max}} {
				if off := v[0] - v[1]; off*10 > v[1] || off*10 < -v[1] {
					b.Fatalf("%s: got %d, want %d within a tenth", got.What, v[0], v[1])
				}
			}
		}
		time.Sleep(24 * time.Hour)
		b.runs("r2", success())
		b.equal("by day", len(ok(b.Latencies(b.ctx, dayTwo, ""))(b)), 1)
		b.equal("a run that took no time", ok(b.Latencies(b.ctx, dayTwo, dayTwo))(b), []storage.Latency{{Day: dayTwo, What: "run", N: 1}})
	}},
}
