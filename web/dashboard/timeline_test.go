package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// story makes events of records and facts, with their seq.
func story(events ...claybot.Event) []claybot.Event {
	for i := range events {
		events[i].Seq, events[i].At = int64(i+1), claybot.Time(1000*(i+1))
	}
	return events
}

func told(events []claybot.Event) []item {
	t := newTeller()
	for _, e := range events {
		t.tell(e)
	}
	return t.items
}

// reached is the event that a budget has no room.
func reached(d runs.BudgetReached) claybot.Event {
	data, _ := json.Marshal(d) // strings always marshal
	return claybot.Event{Run: "r", Type: claybot.EventBudgetReached, Data: data}
}

func TestTimeline(t *testing.T) {
	call := claybot.ToolCall{ID: "c1", Name: "pay", Args: `{"to":"ann"}`}
	answered, _ := runs.EventOf(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "hm", ToolCalls: []claybot.ToolCall{call}, Model: "m", Tokens: &claybot.Usage{Input: 5}})
	paid, _ := runs.EventOf(claybot.Record{Type: claybot.RecordTool, ToolCallID: "c1", Name: "pay", OK: true, Text: "paid", MS: 12})
	broke, _ := runs.EventOf(claybot.Record{Type: claybot.RecordTool, ToolCallID: "c1", Name: "pay", Text: "no money", Interrupted: true})
	tests := []struct {
		name   string
		events []claybot.Event
		want   []string
	}{
		{
			"a call is one item with its end",
			story(runs.NodeBegan("r", "model", 1), answered, runs.NodeEnded("r", "model", 1, "1 tool call", 2e9), runs.ToolCalled("r", call, "once"), paid),
			[]string{"node model (iteration 1 · 1 tool call) 1-3 2000ms", "step Model called pay (m) 2-2", "ok pay 4-5 12ms"},
		},
		{
			"a failed call says why",
			story(runs.ToolCalled("r", call, "once"), broke),
			[]string{"failed pay (interrupted) 1-2"},
		},
		{
			"an end without its beginning",
			story(paid, runs.NodeEnded("r", "tools", 3, "", 0)),
			[]string{"ok pay 1-1 12ms", "node tools (iteration 3) 2-2"},
		},
		{
			"a call that waits and goes on",
			story(runs.ToolCalled("r", call, "once"), runs.ToolWaits("r", call, claybot.AwaitApproval), runs.ToolCalled("r", call, "once"), paid),
			[]string{"waiting pay (waiting for an approval) 1-2", "ok pay 3-4 12ms"},
		},
		{
			"agents that are started have names, tasks, or ids",
			story(runs.ToolCalled("r", claybot.ToolCall{ID: "c2", Name: "spawn_and_wait", Args: `{"tasks":[{"task":"count the birds","name":""},{"task":"x","name":"ann"},{"ta`}, "idempotent"),
				runs.Started("r", "agent1", ""), runs.Started("r", "agent2", "ann"), runs.Started("r", "agent3long", "")),
			[]string{"running spawn_and_wait 1-1", "Started a subagent: count the birds 2-2", "Started subagent ann 3-3", "Started subagent agent3… 4-4"},
		},
		{
			"the steps of a plan",
			story(runs.Planned("r", []runs.PlannedStep{{ID: "s1"}, {ID: "s2"}}, "", "approve"), runs.StepBegan("r", "s1", "pay", 1), runs.ToolCalled("r", call, "once"), runs.StepEnded("r", "s1", "pay", 1, "retry: Busy now"),
				runs.StepBegan("r", "s1", "pay", 2), runs.StepEnded("r", "s1", "pay", 2, "ok"), runs.StepEnded("r", "s2", "tell", 0, "skipped: Not approved"), runs.StepEnded("r", "s3", "tell", 1, "failed")),
			[]string{
				"Planned 2 steps (risky steps need approval) 1-1", "waiting Step s1: pay (retry: Busy now) 2-4", "running pay 3-3", "ok Step s1: pay (attempt 2 · ok) 5-6",
				"Step s2: tell (skipped: Not approved) 7-7", "failed Step s3: tell (failed) 8-8",
			},
		},
		{
			"what is taken back",
			story(runs.UndoTold("r", claybot.EventUndoQueued, claybot.Undo{Step: "s1", Tool: "pay"}, ""), runs.UndoTold("r", claybot.EventUndoFinished, claybot.Undo{Step: "s1", Tool: "pay"}, ""),
				runs.UndoTold("r", claybot.EventUndoFailed, claybot.Undo{Step: "s2", Tool: "tell"}, "gone")),
			[]string{"Undo queued: pay (s1) 1-1", "Undone: pay (s1) 2-2", "failed Undo failed: tell (s2) 3-3"},
		},
		{
			"budgets that have no room",
			story(reached(runs.BudgetReached{Scope: "owner/a/2026-11-23/tokens", Name: "your budget for today", Limit: "1,000 tokens", Spent: "360 tokens", TooSmall: true}),
				reached(runs.BudgetReached{Scope: "all/-/always/microUSD", Name: "the budget of all agents", Limit: "$2.00", Spent: "$2.01"}),
				reached(runs.BudgetReached{Scope: "your budget", Name: "your budget"}),
				reached(runs.BudgetReached{Scope: runs.ScopePlan, Name: "the budget of a plan", Limit: "$0.50", Spent: "$0.75", TooSmall: true}),
				reached(runs.BudgetReached{Scope: "owner/a/2026-11-23/tokens", Limit: "1,000 tokens", Spent: "360 tokens"})),
			[]string{
				"waiting Budget too small (your budget for today: 360 of 1,000 tokens spent) 1-1",
				"waiting Budget spent (the budget of all agents: $2.01 of $2.00 spent) 2-2",
				"waiting The budget does not allow the call (your budget) 3-3",
				"waiting Budget too small (the budget of a plan: $0.75 of $0.50 estimated) 4-4",
				"waiting Budget reached (360 of 1,000 tokens spent) 5-5",
			},
		},
		{
			"the ends of runs",
			story(runs.Finished("r", "bye", claybot.Usage{}), runs.Failed("r", claybot.RunError{Code: "too_many_steps", Text: "20 steps"}, 20), runs.Stopped("r", "operator", "")),
			[]string{"end ok Done 1-1", "end failed Failed (too many steps) 2-2", "end Canceled (by operator) 3-3"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, it := range told(tt.events) {
				line := strings.TrimSpace(it.Tone + " " + it.Title)
				if it.Note != "" {
					line += " (" + it.Note + ")"
				}
				line += fmt.Sprintf(" %d-%d", it.Seq, it.Last)
				if it.MS > 0 {
					line += fmt.Sprintf(" %dms", it.MS)
				}
				got = append(got, line)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Every type of event has words of its own, and unknown data
// breaks nothing.
func TestTimelineOfEveryEvent(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	for _, kind := range slices.Sorted(maps.Keys(runs.Facts)) {
		data, err := json.Marshal(runs.Facts[kind])
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{string(data), `{"node":7,"tool":["x"]}`, `null`, ``, `<script>`} {
			items := told([]claybot.Event{{Run: "r", Seq: 1, Type: kind, Data: json.RawMessage(raw)}})
			if len(items) != 1 || items[0].Icon == "" || icons[items[0].Icon] == "" {
				t.Errorf("%s with %s makes %+v", kind, raw, items)
			}
			if items[0].Title == string(kind) {
				t.Errorf("%s has no words", kind)
			}
			if _, err := b.render("run", "items", timelineView{Items: items}); err != nil {
				t.Errorf("%s with %s: %v", kind, raw, err)
			}
		}
	}
	if it := told([]claybot.Event{{Seq: 1, Type: "Later"}})[0]; it.Title != "Later" {
		t.Errorf("an event of a later version is %+v", it)
	}
}

func TestHistoryLines(t *testing.T) {
	call := func(id string) claybot.ToolCall { return claybot.ToolCall{ID: id, Name: "wait", Args: "{}"} }
	result := func(id, text string) claybot.Record {
		return claybot.Record{Type: claybot.RecordTool, ToolCallID: id, Name: "wait", OK: text != "", Text: text}
	}
	lines := linesOf([]claybot.Record{
		{Type: claybot.RecordUser, Text: "go"},
		{Type: claybot.RecordNode, Name: "classify", Next: "planner", Text: "one intent"},
		{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{call("a"), call("b")}},
		result("b", "second"), result("a", "first"),
		{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{call("a")}}, // the same id again
		result("a", ""),
		result("z", "of no call"),
		{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{call("c")}, Text: strings.Repeat("é", textLimit)},
	})
	if len(lines) != 5 {
		t.Fatalf("%d lines", len(lines))
	}
	states := func(l line) (all []string) {
		for _, c := range l.Calls {
			s := c.State()
			if c.Result != nil {
				s += ":" + c.Result.Text
			}
			all = append(all, s)
		}
		return all
	}
	for i, want := range [][]string{nil, {"ok:first", "ok:second"}, {"failed:"}, nil, {"running"}} {
		if got := states(lines[i]); !slices.Equal(got, want) {
			t.Errorf("line %d has the calls %q, want %q", i, got, want)
		}
	}
	if text := lines[4].Text; len(text) > textLimit+200 || !strings.Contains(text, "20,000 more bytes") || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("the long text has %d bytes", len(text))
	}
}
