package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// atOnce has a node with branches for each way to join them, and lists for each way to fail.
const atOnce = `
owner: chat/ann
start: which
nodes:
  which: {kind: switch, value: "{{ trigger.text }}", cases: {any: any, two: two, go_on: go_on, collect: collect, items: items, kept: kept, each: each}, else: all}
  all:
    kind: parallel
    branches: {a: {kind: agent, prompt: "a {{ trigger.text }}"}, b: {kind: flow, flow: sum, payload: [1]}, c: {kind: agent, prompt: c, output: {n: number}}}
    next: tell
    error: sorry
  tell: {kind: template, value: "{{ all.a }} {{ all.b.total }} {{ all.c.n }} {{ all.first }} {{ all.messages | length }}", next: END}
  sorry: {kind: template, value: "{{ error.code }} {{ error.text }}", next: END}
  any: {kind: parallel, join: any, branches: {a: {kind: agent, prompt: a}, b: {kind: flow, flow: sum}}, next: won, error: sorry}
  won: {kind: template, value: "{{ any.first }} {{ any.a | default('-') }} {{ any.failed }}", next: END}
  two: {kind: parallel, join: 2, branches: {a: {kind: agent, prompt: a}, b: {kind: agent, prompt: b}, c: {kind: agent, prompt: c}}, next: END, error: sorry}
  go_on: {kind: parallel, on_error: continue, branches: {a: {kind: agent, prompt: a}, b: {kind: agent, prompt: b}}, next: END}
  collect: {kind: parallel, on_error: collect, branches: {a: {kind: agent, prompt: a}, b: {kind: agent, prompt: b}}, next: END}
  each: {kind: each, at_once: 2, over: "{{ trigger.payload }}", prompt: "{{ item }}", next: END, error: sorry}
  items: {kind: each, at_once: 1, on_error: continue, over: "{{ trigger.payload }}", prompt: "{{ item }}", next: left}
  left: {kind: template, value: "{{ items.output }} {{ items.failed }}", next: END}
  kept: {kind: each, on_error: collect, over: "{{ trigger.payload }}", prompt: "{{ item }}", next: END}
`

func fails(text string) any { return obj{"fails": text} }

var atOnceWays = []flow.Case{
	{
		Name: "all", Trigger: flow.Started{Text: "go"},
		Nodes: obj{"all": obj{"a": "one", "b": obj{"total": 3}, "c": obj{"n": 7}}},
		Expect: flow.Expected{
			Path: []string{"which", "all", "tell"}, Outputs: obj{"tell": "one 3 7 one 6", "all": obj{"a": "one", "b": obj{"total": 3}, "c": obj{"n": 7}}},
			Calls: obj{"all": obj{"flow": "sum", "text": "", "payload": []any{1}}},
		},
	},
	{
		Name: "one fails", Nodes: obj{"all": obj{"a": "one", "b": fails("no"), "c": "no object"}},
		Expect: flow.Expected{Path: []string{"which", "all", "sorry"}, Outputs: obj{"sorry": "flow_failed all.b: no"}},
	},
	{
		Name: "one does not put out what it should", Nodes: obj{"all": obj{"a": "one", "b": 1, "c": "no object"}},
		Expect: flow.Expected{Outputs: obj{"sorry": "bad_output all.c: the answer has no JSON object"}},
	},
	{
		Name: "the second is first", Trigger: flow.Started{Text: "any"}, Nodes: obj{"any": obj{"b": 5}},
		Expect: flow.Expected{Path: []string{"which", "any", "won"}, Outputs: obj{"won": "5 - []"}},
	},
	{
		Name: "one fails and the other wins", Trigger: flow.Started{Text: "any"}, Nodes: obj{"any": obj{"a": fails("no"), "b": 5}},
		Expect: flow.Expected{Outputs: obj{"won": "5 - ['a']"}},
	},
	{
		Name: "none wins", Trigger: flow.Started{Text: "any"}, Nodes: obj{"any": fails("no")},
		Expect: flow.Expected{Path: []string{"which", "any", "sorry"}, Outputs: obj{"sorry": "agent_failed any.a: no"}},
	},
	{
		Name: "two of three", Trigger: flow.Started{Text: "two"}, Nodes: obj{"two": obj{"a": "x", "c": "y"}},
		Expect: flow.Expected{Outputs: obj{"two": obj{"a": "x", "c": "y"}}},
	},
	{
		Name: "two of three cannot be", Trigger: flow.Started{Text: "two"}, Nodes: obj{"two": obj{"a": fails("no"), "c": fails("never")}},
		Expect: flow.Expected{Path: []string{"which", "two", "sorry"}, Outputs: obj{"sorry": "agent_failed two.a: no"}},
	},
	{
		Name: "what failed is left out", Trigger: flow.Started{Text: "go_on"}, Nodes: obj{"go_on": obj{"a": fails("no"), "b": "y"}},
		Expect: flow.Expected{Outputs: obj{"go_on": obj{"b": "y"}}},
	},
	{
		Name: "all are collected", Trigger: flow.Started{Text: "collect"}, Nodes: obj{"collect": obj{"a": fails("no"), "b": "y"}},
		Expect: flow.Expected{Outputs: obj{"collect": obj{
			"a": obj{"ok": false, "output": nil, "error": "collect.a: no"}, "b": obj{"ok": true, "output": "y", "error": ""},
		}}},
	},
	{
		Name: "a list", Trigger: flow.Started{Text: "each", Payload: []any{1, 2, 3, 4, 5}}, Nodes: obj{"each": obj{"visits": []any{"a", "b", "c", "d", "e"}}},
		Expect: flow.Expected{Outputs: obj{"each": []any{"a", "b", "c", "d", "e"}}},
	},
	{
		Name: "an item fails, and none is started behind it", Trigger: flow.Started{Text: "each", Payload: []any{1, 2, 3, 4, 5}},
		Nodes:  obj{"each": obj{"visits": []any{"a", fails("no"), "c", "d", "e"}}},
		Expect: flow.Expected{Outputs: obj{"sorry": "agent_failed item 2: each: no"}},
	},
	{
		Name: "items that fail are left out", Trigger: flow.Started{Text: "items", Payload: []any{1, 2, 3}}, Nodes: obj{"items": obj{"visits": []any{fails("no"), "b", fails("no")}}},
		Expect: flow.Expected{Outputs: obj{"items": []any{"b"}, "left": "['b'] [0, 2]"}},
	},
	{
		Name: "items are collected", Trigger: flow.Started{Text: "kept", Payload: []any{1, 2}}, Nodes: obj{"kept": obj{"visits": []any{fails("no"), "b"}}},
		Expect: flow.Expected{Outputs: obj{"kept": []any{obj{"ok": false, "output": nil, "error": "item 1: kept: no"}, obj{"ok": true, "output": "b", "error": ""}}}},
	},
	{Name: "no items", Trigger: flow.Started{Text: "each", Payload: []any{}}, Expect: flow.Expected{Outputs: obj{"each": []any{}}}},
}

// Several agents and flows of a node are joined as the file says, cut off behind and before each record as
// well.
func TestSeveralAtOnce(t *testing.T) {
	p := player(t, atOnce)
	for _, c := range atOnceWays {
		goesItsWay(t, p, c)
	}
}

// A case says what as many branches put out as the node needs.
func TestCaseNamesEnoughBranches(t *testing.T) {
	p := player(t, atOnce)
	for _, x := range []struct {
		text  string
		nodes obj
		want  string
	}{
		{"go", obj{"all": obj{"a": "one"}}, "all: the case says nothing of what the branch b puts out"},
		{"two", obj{"two": obj{"a": "one"}}, "two: the case says nothing of what as many branches put out as join needs"},
	} {
		wrong, _, _ := p.Test(t.Context(), flow.Case{Trigger: flow.Started{Text: x.text}, Nodes: x.nodes})
		if len(wrong) != 1 || wrong[0] != x.want {
			t.Errorf("%q, want %q", wrong, x.want)
		}
	}
}

// A recorded run of branches and of a list is a case that takes its way.
func TestRecordSeveral(t *testing.T) {
	p := player(t, atOnce)
	for _, c := range atOnceWays {
		c.Trigger.User = "chat/ann"
		played, err := p.Play(t.Context(), c, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		message := claybot.AgentMessage{Text: c.Trigger.Text, Flow: &claybot.FlowStart{Name: "every", Connector: "chat"}, From: claybot.Sender{UserID: "ann"}, Payload: raw(t, c.Trigger.Payload)}
		got, err := p.Record(t.Context(), flow.Recording{Run: claybot.Run{ID: "case", State: claybot.RunSucceeded}, Message: message, Records: played.Log})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if strings.Join(got.Expect.Path, " ") != strings.Join(played.Path, " ") {
			t.Errorf("%s: path %q, want %q", c.Name, got.Expect.Path, played.Path)
		}
	}
}

// A dry run says what branches that act would do.
func TestDryRunOfBranches(t *testing.T) {
	c := flow.Case{Dry: true, Trigger: flow.Started{Text: "go"}, Expect: flow.Expected{Path: []string{"which", "all"}, Never: []string{"flow:sum"}, Fails: flow.CodeDry}}
	wrong, played, err := player(t, atOnce).Test(t.Context(), c)
	want := "all: start at once: all.a: a go\nall.b: sum  [1]\nall.c: c"
	if got := wouldOf(played); err != nil || len(wrong) > 0 || len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%v %q would %q", err, wrong, got)
	}
}

func raw(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spawning runs the text "text" of a flow with a function that starts its branches, and returns its records.
func spawning(t *testing.T, text string, spawn func(how tools.Spawning) ([]*claybot.Result, error)) (records []claybot.Record, err error) {
	t.Helper()
	p := player(t, atOnce)
	e := flow.New(flow.Config{
		Flow: func(context.Context, string, string) (*flows.Flow, error) { return p.Flow, nil }, Fill: p.Fill, Uses: p.Uses,
		Spawn: func(_ context.Context, _ tools.Env, _ []tools.Subagent, how tools.Spawning) (tools.Result, error) {
			all, err := spawn(how)
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{Text: string(raw(t, all))}, nil
		},
	})
	message := claybot.AgentMessage{Text: text, Payload: json.RawMessage("[1, 2]")}
	for r, failed := range e.Run(t.Context(), &runs.Turn{Run: claybot.Run{ID: "r", Engine: "flow:every@1"}, Messages: []claybot.AgentMessage{message}}) {
		if err = failed; err == nil {
			r.Run = "r"
			records = append(records, r)
		}
	}
	return records, err
}

// A branch that was stopped by others, or dropped before it began, is lost: a node that needs it does not wait for
// the others, and one that does not has it among those that failed, with what it took.
func TestLostBranches(t *testing.T) {
	lost := func(why claybot.Loss) *claybot.Result {
		if strings.Contains(string(why), " ") { // as an earlier version stored it
			return &claybot.Result{Error: string(why), TokenUsage: claybot.Usage{Input: 5}}
		}
		return &claybot.Result{Error: "as it may be", Lost: why, TokenUsage: claybot.Usage{Input: 5}}
	}
	for _, why := range []claybot.Loss{claybot.LostDropped, claybot.LostStopped, "canceled: stopped by the parent", "the message was dropped"} {
		enough := false
		_, _ = spawning(t, "go", func(how tools.Spawning) ([]*claybot.Result, error) {
			enough = how.Enough([]*claybot.Result{lost(why), nil, nil})
			return nil, errors.New("seen")
		})
		if !enough {
			t.Errorf("%s: the node waits for the others", why)
		}
		records, err := spawning(t, "go_on", func(tools.Spawning) ([]*claybot.Result, error) {
			return []*claybot.Result{lost(why), {OK: true, Output: "y", TokenUsage: claybot.Usage{Input: 2}}}, nil
		})
		var got flow.Result
		if err == nil {
			err = json.Unmarshal(runs.OutputOf(records, "r")["go_on"], &got)
		}
		if err != nil || string(got.Output) != `{"b":"y"}` || fmt.Sprint(got.More["failed"]) != "[a]" || got.Usage.Input != 7 {
			t.Errorf("%s: %s %v %+v, %v", why, got.Output, got.More, got.Usage, err)
		}
	}
}

// A store that is unavailable while a node starts others is no failure of theirs: the run is resumed.
func TestSpawnWithoutStore(t *testing.T) {
	records, err := spawning(t, "go", func(tools.Spawning) ([]*claybot.Result, error) {
		return nil, fmt.Errorf("give the subagent its task: %w", storage.ErrBusy)
	})
	if fault := (*storage.Fault)(nil); len(records) != 1 || errors.As(err, new(*runs.Error)) || !errors.As(err, &fault) || !storage.Unavailable(err) {
		t.Errorf("%d records, %v", len(records), err)
	}
}
