package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/tools"
)

// withFlows starts other flows: one whose output it uses, one that fails, and one that it does not wait
// for.
const withFlows = `
owner: chat/ann
start: child
nodes:
  child: {kind: flow, flow: sum, text: "{{ trigger.text }}", payload: {items: "{{ trigger.payload.items }}"}, next: other, error: tell}
  other: {kind: flow, flow: other, tries: 2, next: tell, error: only}
  only: {kind: flow, flow: third, wait: false, payload: ["{{ error.code }}"], next: tell}
  tell: {kind: reply, text: "{{ (child.output | default({})).total | default(0) }} {{ other.output | default('') }} {{ only.output | default('') }}", next: END}
`

var withFlowsWays = []flow.Case{
	{
		Name: "both", Trigger: flow.Started{Text: "go", Payload: map[string]any{"items": []any{1, 2}}},
		Nodes: map[string]any{"child": map[string]any{"total": 3}, "other": "fine"},
		Expect: flow.Expected{
			Path: []string{"child", "other", "tell"}, Replies: []string{"3 fine "}, Never: []string{"flow:third"},
			Calls:   map[string]any{"child": map[string]any{"flow": "sum", "text": "go", "payload": map[string]any{"items": []any{1, 2}}}},
			Outputs: map[string]any{"child": map[string]any{"total": 3}},
		},
	},
	{
		Name: "one fails for good", Trigger: flow.Started{Payload: map[string]any{"items": 1}},
		Nodes: map[string]any{"child": nil, "other": map[string]any{"fails": "no"}},
		Expect: flow.Expected{
			Path: []string{"child", "other", "only", "tell"}, Replies: []string{"0  third"},
			Calls: map[string]any{"only": map[string]any{"flow": "third", "text": "", "payload": []any{"flow_failed"}}},
		},
	},
	{
		Name: "one fails at first", Trigger: flow.Started{Payload: map[string]any{"items": 1}},
		Nodes:  map[string]any{"child": 1, "other": map[string]any{"visits": []any{map[string]any{"fails": "no"}, "at last"}}},
		Expect: flow.Expected{Replies: []string{"0 at last "}},
	},
	{
		Name: "the first fails", Trigger: flow.Started{Payload: map[string]any{"items": 1}},
		Nodes:  map[string]any{"child": map[string]any{"fails": "deadline: too late"}},
		Expect: flow.Expected{Path: []string{"child", "tell"}},
	},
	{
		Name: "what is given is missing", Trigger: flow.Started{Payload: map[string]any{}},
		Expect: flow.Expected{Path: []string{"child", "tell"}, Never: []string{"flow:sum"}},
	},
}

// Flows that a flow starts have their outputs and failures where the flow goes on, cut off behind and
// before each record as well.
func TestFlowsOfFlows(t *testing.T) {
	p := player(t, withFlows)
	for _, c := range withFlowsWays {
		goesItsWay(t, p, c)
	}
}

// goesItsWay requires that a case has no fault, also where it is cut off behind and before each record.
func goesItsWay(t *testing.T, p flow.Player, c flow.Case) {
	t.Helper()
	wrong, whole, err := p.Test(t.Context(), c)
	if err != nil || len(wrong) > 0 {
		t.Errorf("%s: %v %s", c.Name, err, strings.Join(wrong, "\n"))
		return
	}
	if wrong, _, err = p.Crash(t.Context(), c); err != nil || len(wrong) > 0 {
		t.Errorf("%s: cut off: %v %s", c.Name, err, strings.Join(wrong, "\n"))
	}
	for cut := 1; cut <= whole.Records; cut++ {
		got, err := p.Play(t.Context(), c, cut, true)
		if err != nil {
			t.Errorf("%s: cut off before record %d: %v", c.Name, cut, err)
			continue
		}
		for what, n := range got.Called {
			if n > whole.Called[what] && p.Effect(what) == tools.Once {
				t.Errorf("%s: cut off before record %d: %s %d times", c.Name, cut, what, n)
			}
		}
		unknown := strings.Contains(fmt.Sprint(got.Replies, got.Outputs), flow.CodeUnknown)
		if !unknown && (!slices.Equal(got.Path, whole.Path) || !slices.Equal(got.Replies, whole.Replies)) {
			t.Errorf("%s: cut off before record %d: path %v, replies %q", c.Name, cut, got.Path, got.Replies)
		}
	}
}

// A flow puts out for the run that waits for it what the node did that ended it; nothing where that
// failed.
func TestOutputOfFlow(t *testing.T) {
	e := flow.New(flow.Config{})
	result := func(v any, tainted bool) json.RawMessage {
		b, err := json.Marshal(map[string]any{"output": v, "tainted": tainted})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ended := func(name, next string, out json.RawMessage, fails string) claybot.Record {
		c := &claybot.StateChange{Output: map[string]json.RawMessage{}, Scratch: map[string]json.RawMessage{}}
		if out != nil {
			c.Output[name] = out
		}
		if fails != "" {
			c.Scratch["error"] = json.RawMessage(`{"node":"` + fails + `","visit":1}`)
		}
		return claybot.Record{Type: claybot.RecordNode, Run: "r", Name: name, Next: next, Change: c}
	}
	for _, tt := range []struct {
		name    string
		records []claybot.Record
		want    string
		tainted bool
	}{
		{"a value", []claybot.Record{ended("a", "b", result("x", true), ""), ended("b", "END", result(obj{"n": 1}, false), "")}, `{"n":1}`, false},
		{"what a stranger wrote", []claybot.Record{ended("a", "END", result("x", true), "")}, `"x"`, true},
		{"the last one failed", []claybot.Record{ended("a", "a", result("x", false), ""), ended("a", "END", nil, "a")}, `null`, false},
		{"another one failed before", []claybot.Record{ended("a", "b", nil, "a"), ended("b", "END", result(2, false), "")}, `2`, false},
		{"nothing", nil, `null`, false},
	} {
		got, tainted, _ := e.Output(&runs.Turn{Run: claybot.Run{ID: "r"}, History: tt.records})
		if string(got) != tt.want || tainted != tt.tainted {
			t.Errorf("%s: %s %v, want %s", tt.name, got, tainted, tt.want)
		}
	}
}

type obj = map[string]any

// What a flow puts out for another one is bounded.
func TestOutputIsBounded(t *testing.T) {
	p := player(t, "owner: chat/ann\nstart: a\nnodes: {a: {kind: agent, prompt: x, next: END}}\n")
	e := flow.New(flow.Config{
		Flow: func(context.Context, string, string) (*flows.Flow, error) { return p.Flow, nil }, Fill: p.Fill, Uses: p.Uses,
		Spawn: func(context.Context, tools.Env, []tools.Subagent, tools.Spawning) (tools.Result, error) {
			b, err := json.Marshal([]claybot.Result{{OK: true, Output: strings.Repeat("x", 100<<10)}})
			return tools.Result{Text: string(b)}, err
		},
	})
	for _, m := range []claybot.AgentMessage{{}, {Awaited: &claybot.Awaited{Run: "p"}}} {
		m.Payload = json.RawMessage("null")
		var got error
		for _, err := range e.Run(t.Context(), &runs.Turn{Run: claybot.Run{ID: "r", Engine: "flow:every@1"}, Messages: []claybot.AgentMessage{m}}) {
			got = err
		}
		why := (*runs.Error)(nil)
		if large := errors.As(got, &why) && why.Code == flow.CodeTooLarge; large != (m.Awaited != nil) {
			t.Errorf("awaited %v: %v", m.Awaited != nil, got)
		}
	}
}

// A dry run starts no flow, and says with what it would.
func TestDryRunStartsNoFlow(t *testing.T) {
	p := player(t, withFlows)
	c := withFlowsWays[0]
	c.Dry, c.Nodes, c.Expect = true, nil, flow.Expected{Path: []string{"child", "other", "tell"}, Never: []string{"flow:sum", "flow:other"}}
	wrong, played, err := p.Test(t.Context(), c)
	if got, want := wouldOf(played), `child: start the flow sum with go {"items":[1,2]}`; err != nil || len(wrong) > 0 || len(got) == 0 || got[0] != want {
		t.Errorf("%v %q would %q", err, wrong, got)
	}
}
