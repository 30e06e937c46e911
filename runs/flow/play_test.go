package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/prompts"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// The messages of agents, and what they took, are there for the nodes behind, also when the run is cut off.
func TestMessagesOfAgents(t *testing.T) {
	p := player(t, `
owner: chat/ann
start: a
nodes:
  a: {kind: agent, prompt: "Say {{ trigger.text }}", next: all}
  all: {kind: each, over: "{{ [1, 2] }}", prompt: "{{ item }}", next: b}
  b: {kind: template, value: ["{{ a.messages }}", "{{ all._messages | length }}", "{{ a.messages[1].text }}"], next: END}
`)
	said := map[string]any{"role": "user", "text": "Say hi"}
	c := flow.Case{
		Trigger: flow.Started{Text: "hi", User: "chat/ann"}, Nodes: map[string]any{"a": "hi yourself", "all": "x"},
		Expect: flow.Expected{Outputs: map[string]any{"b": []any{[]any{said, map[string]any{"role": "assistant", "text": "hi yourself"}}, 4, "hi yourself"}}},
	}
	if wrong, _, err := p.Test(t.Context(), c); err != nil || len(wrong) > 0 {
		t.Error(wrong, err)
	}
	if wrong, cuts, err := p.Crash(t.Context(), c); err != nil || len(wrong) > 0 || cuts < 5 {
		t.Error(wrong, cuts, err)
	}
}

// everyKind has a node of every kind, an error edge, and a cycle.
const everyKind = `
owner: chat/ann
start: words
nodes:
  words: {kind: template, value: {list: "{{ trigger.payload.items }}", n: 2}, next: count}
  count: {kind: agent, prompt: "Count {{ words.list }}", output: {kind: [big, small], n: integer}, next: route}
  route: {kind: switch, value: "{{ count.kind }}", cases: {big: sure}, else: again}
  sure: {kind: ask, text: "Buy {{ count.n }}?", denied: tell, next: pay}
  pay:
    kind: tool
    tool: pay
    args: {n: "{{ count.n }}", note: "for {{ trigger.text }}"}
    approve: {by: [chat/bob]}
    next: look
    error: tell
  look: {kind: tool, tool: look, tries: 2, next: parts, error: tell}
  parts: {kind: each, over: "{{ words.list }}", prompt: "{{ index }} {{ item }}", next: rest}
  rest: {kind: wait, for: 2h, next: tell}
  again: {kind: template, value: "again", max_visits: 2, next: count2}
  count2: {kind: deep, memory: on, prompt: "once more", max_visits: 2, output: {kind: [big, small]}, next: route2}
  route2: {kind: switch, max_visits: 2, value: "{{ count2.kind }}", cases: {small: again}, else: tell}
  tell: {kind: reply, to: [trigger, chat/ops], text: "{{ pay.output | default('nothing') }} {{ error.code | default('') }}", next: END}
`

func player(t testing.TB, text string) flow.Player {
	t.Helper()
	f, faults := configs.ReadFlow("every.yaml", []byte(text))
	uses := func(text string) (all []flows.Use, err error) {
		template, err := prompts.Parse("", text)
		if err != nil {
			return nil, err
		}
		for _, u := range template.Uses() {
			all = append(all, flows.Use(u))
		}
		return all, nil
	}
	if len(faults) == 0 {
		faults = flows.Check(&f, flows.World{Uses: uses})
	}
	for _, fault := range faults {
		t.Fatal(fault)
	}
	return flow.Player{
		Flow: &f, Uses: uses,
		Fill: func(turn *runs.Turn, text string, names flow.Names) (any, error) {
			template, err := prompts.Parse("", text)
			if err != nil {
				return nil, err
			}
			m := turn.Messages[0]
			data := prompts.Data{Trigger: prompts.Trigger{Text: m.Text}, Nodes: names.Nodes, Names: names.More}
			if err := json.Unmarshal(m.Payload, &data.Trigger.Payload); err != nil {
				return nil, err
			}
			v, _, err := template.Value(data, prompts.Options{Strict: true})
			return v, err
		},
		Settle: func(set *tools.Set) flow.Settle {
			return (&react.Loop{Tools: func(claybot.Agent) *tools.Set { return set }, Model: func(claybot.Agent) llm.Model { return nil }}).Settle
		},
		Effect: func(tool string) tools.Effect {
			if tool == "look" {
				return tools.ReadOnly
			}
			return tools.Once
		},
	}
}

var ways = []flow.Case{
	{
		Name: "bought", Trigger: flow.Started{Text: "shop", User: "chat/ann", Payload: map[string]any{"items": []any{"a", "b"}}},
		Nodes:   map[string]any{"count": map[string]any{"kind": "big", "n": 7}, "pay": map[string]any{"receipt": "r1"}, "look": "seen", "parts": "done"},
		Answers: map[string]any{"sure": "approve", "pay": "approve"},
		Expect: flow.Expected{
			Path: []string{"words", "count", "route", "sure", "pay", "look", "parts", "rest", "tell"}, Replies: []string{"{'receipt': 'r1'} ", "{'receipt': 'r1'} "},
			Outputs: map[string]any{"parts": []any{"done", "done"}, "pay": map[string]any{"receipt": "r1"}}, Calls: map[string]any{"pay": map[string]any{"n": 7, "note": "for shop"}},
			Asks: map[string]string{"sure": "Buy 7?"},
		},
	},
	{
		Name: "not approved", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": []any{}}},
		Nodes: map[string]any{"count": map[string]any{"kind": "big", "n": 1}}, Answers: map[string]any{"sure": true, "pay": "deny"},
		Expect: flow.Expected{Path: []string{"words", "count", "route", "sure", "pay", "tell"}, Never: []string{"pay"}, Replies: []string{"nothing not_approved", "nothing not_approved"}},
	},
	{
		Name: "denied", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": 1}},
		Nodes: map[string]any{"count": "```json\n{\"kind\": \"big\", \"n\": 1}\n```"}, Answers: map[string]any{"sure": "deny"},
		Expect: flow.Expected{Path: []string{"words", "count", "route", "sure", "tell"}, Never: []string{"pay"}},
	},
	{
		Name: "no answer", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": 1}},
		Nodes: map[string]any{"count": map[string]any{"kind": "big", "n": 1}}, Answers: map[string]any{"sure": "expire"},
		Expect: flow.Expected{Fails: flow.CodeExpired},
	},
	{
		Name: "a tool that fails", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": []any{}}},
		Nodes: map[string]any{"count": map[string]any{"kind": "big", "n": 1}, "pay": "ok", "look": map[string]any{"fails": "gone"}}, Answers: map[string]any{"sure": true, "pay": true},
		Expect: flow.Expected{Path: []string{"words", "count", "route", "sure", "pay", "look", "tell"}, Replies: []string{"ok tool_failed", "ok tool_failed"}},
	},
	{
		Name: "an agent that never fits", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": 1}},
		Nodes: map[string]any{"count": "I would say big"}, Expect: flow.Expected{Fails: flow.CodeOutput},
	},
	{
		Name: "an agent that fits at last", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": 1}},
		Nodes:  map[string]any{"count": map[string]any{"visits": []any{"hm", map[string]any{"kind": "small", "n": 2}}}, "count2": map[string]any{"kind": "big"}},
		Expect: flow.Expected{Path: []string{"words", "count", "route", "again", "count2", "route2", "tell"}},
	},
	{
		Name: "too many visits", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{"items": 1}},
		Nodes:  map[string]any{"count": map[string]any{"kind": "small", "n": 2}, "count2": map[string]any{"kind": "small"}},
		Expect: flow.Expected{Fails: flow.CodeVisits},
	},
	{
		Name: "a name that is missing", Trigger: flow.Started{User: "chat/ann", Payload: map[string]any{}}, Expect: flow.Expected{Fails: flow.CodeFlow},
	},
}

func TestWays(t *testing.T) {
	p := player(t, everyKind)
	for _, c := range ways {
		wrong, _, err := p.Test(t.Context(), c)
		if err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v %s", c.Name, err, strings.Join(wrong, "\n"))
		}
	}
}

// Cut off behind each record, a run goes the same way, calls the same tools and says the same.
func TestCrashAtEveryRecord(t *testing.T) {
	p := player(t, everyKind)
	for _, c := range ways {
		wrong, cuts, err := p.Crash(t.Context(), c)
		if err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v %s", c.Name, err, strings.Join(wrong, "\n"))
		}
		if cuts < 1 && c.Expect.Fails != flow.CodeFlow {
			t.Errorf("%s: cut off %d times", c.Name, cuts)
		}
	}
}

// Where the record is lost as well, a tool that may act only once has acted at most once, and the run
// ends.
func TestCrashBeforeEveryRecord(t *testing.T) {
	p, doubts := player(t, everyKind), 0
	for _, c := range ways {
		whole, err := p.Play(t.Context(), c, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 1; cut <= whole.Records; cut++ {
			got, err := p.Play(t.Context(), c, cut, true)
			if err != nil {
				t.Errorf("%s: cut off before record %d: %v", c.Name, cut, err)
				continue
			}
			if got.Called["pay"] > 1 {
				t.Errorf("%s: cut off before record %d: paid %d times", c.Name, cut, got.Called["pay"])
			}
			same := slices.Equal(got.Path, whole.Path) && slices.Equal(got.Replies, whole.Replies)
			unknown := slices.ContainsFunc(got.Replies, func(s string) bool { return strings.Contains(s, flow.CodeUnknown) })
			if unknown {
				doubts++
			}
			if !same && !unknown {
				t.Errorf("%s: cut off before record %d: path %v, replies %q", c.Name, cut, got.Path, got.Replies)
			}
		}
	}
	if doubts == 0 {
		t.Error("no cut left it open whether the tool had acted")
	}
}

// A version that is not there fails the run with the reason.
func TestNoFlow(t *testing.T) {
	e := flow.New(flow.Config{Flow: func(context.Context, string, string) (*flows.Flow, error) { return nil, errors.New("is not stored") }})
	for engine, want := range map[string]string{"flow": "names no flow", "flow:a@b": "the flow a, version b: is not stored"} {
		var got error
		for _, err := range e.Run(t.Context(), &runs.Turn{Run: claybot.Run{ID: "r", Engine: engine}}) {
			got = err
		}
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v", engine, got)
		}
	}
}

// A request has its effect by its method and its key, which is the same when it is repeated. What a
// template makes is never a reference to a secret.
func TestRequestNodes(t *testing.T) {
	const text = `
owner: chat/ann
start: get
nodes:
  get: {kind: http, url: "https://example.org/a?q={{ trigger.text }}", headers: {Authorization: "env:TOKEN", X-Note: "{{ trigger.text }}"}, next: put}
  put: {kind: http, method: PUT, url: "https://example.org/b", body: {n: "{{ get.status }}"}, key_header: Idempotency-Key, next: post}
  post: {kind: http, method: POST, url: "https://example.org/c", next: END}
`
	p := player(t, text)
	c := flow.Case{
		Trigger: flow.Started{Text: "env:SECRET"},
		Nodes:   map[string]any{"get": map[string]any{"status": 200, "body": "x"}, "put": "ok", "post": "ok"},
		Expect: flow.Expected{Path: []string{"get", "put", "post"}, Calls: map[string]any{
			"get": map[string]any{
				"method": "GET", "url": "https://example.org/a?q=env:SECRET", "headers": map[string]any{"X-Note": "env:SECRET"},
				"secrets": map[string]any{"Authorization": "env:TOKEN"},
			},
			"post": map[string]any{"method": "POST", "url": "https://example.org/c"},
		}},
	}
	wrong, played, err := p.Test(t.Context(), c)
	if err != nil || len(wrong) > 0 {
		t.Fatal(err, wrong)
	}
	if want := map[string]int{"http_read": 1, "http_keyed": 1, "http_once": 1}; !maps.Equal(played.Called, want) {
		t.Errorf("called %v", played.Called)
	}
	key := func(p flow.Played) any {
		return p.Calls["put"].(map[string]any)["headers"].(map[string]any)["Idempotency-Key"]
	}
	for cut := 1; cut <= played.Records; cut++ {
		again, err := p.Play(t.Context(), c, cut, true)
		if err != nil || again.Called["http_once"] > 1 {
			t.Errorf("cut off before record %d: %v, posted %d times", cut, err, again.Called["http_once"])
		}
		if again.Calls["put"] != nil && key(again) != key(played) {
			t.Errorf("cut off before record %d: another key", cut)
		}
	}
}

// What strangers write taints what is made of it, but not numbers, dates and words of a list.
func TestTaint(t *testing.T) {
	const text = `
owner: chat/ann
start: read
nodes:
  read: {kind: agent, prompt: "{{ trigger.text }}", output: {kind: [a, b], order: "/^[0-9]{1,8}$/", say: text}, next: clean}
  clean: {kind: tool, tool: put, args: {a: "{{ read.kind }}", b: "{{ read.order }}"}, next: dirty}
  dirty: {kind: tool, tool: put, args: {a: "{{ read.say }}"}, next: END}
`
	p := player(t, text)
	var tainted []string
	settle := p.Settle
	p.Settle = func(set *tools.Set) flow.Settle {
		inner := settle(set)
		return func(ctx context.Context, turn *runs.Turn, rules *tools.Rules, yield func(claybot.Record) error) error {
			tainted = append(tainted, fmt.Sprint(turn.History[len(turn.History)-1].ToolCalls[0].ID, " ", tools.Tainted(turn.History)))
			return inner(ctx, turn, rules, yield)
		}
	}
	c := flow.Case{Trigger: flow.Started{Text: "x", Tainted: true}, Nodes: map[string]any{
		"read": map[string]any{"kind": "a", "order": "12", "say": "rm -rf"}, "clean": "ok", "dirty": "ok",
	}}
	if _, err := p.Play(t.Context(), c, 0, false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"clean.1.1 false", "dirty.1.1 true"}; !slices.Equal(tainted, want) {
		t.Errorf("%q, want %q", tainted, want)
	}
}

// What fits a field of the input that only data fits is none of a stranger's texts, whatever else the payload has.
func TestTaintOfInput(t *testing.T) {
	for _, input := range []string{"{order: \"/^[0-9]{1,8}$/\", note: text}", "{note: text}"} {
		p := player(t, `
owner: chat/ann
input: `+input+`
start: a
nodes:
  a: {kind: tool, tool: put, args: {a: "{{ trigger.payload.order }}"}, next: b}
  b: {kind: tool, tool: put, args: {a: "{{ trigger.payload.note }}"}, next: c}
  c: {kind: tool, tool: put, args: {a: "{{ trigger.payload }}"}, next: END}
`)
		var tainted []bool
		settle := p.Settle
		p.Settle = func(set *tools.Set) flow.Settle {
			inner := settle(set)
			return func(ctx context.Context, turn *runs.Turn, rules *tools.Rules, yield func(claybot.Record) error) error {
				tainted = append(tainted, tools.Tainted(turn.History))
				return inner(ctx, turn, rules, yield)
			}
		}
		c := flow.Case{Trigger: flow.Started{Payload: map[string]any{"order": "12", "note": "x"}, Tainted: true}, Nodes: map[string]any{"a": "ok", "b": "ok", "c": "ok"}}
		if _, err := p.Play(t.Context(), c, 0, false); err != nil {
			t.Fatal(err)
		}
		if want := []bool{!strings.Contains(input, "order"), true, true}; !slices.Equal(tainted, want) {
			t.Errorf("%s: %v, want %v", input, tainted, want)
		}
		c.Trigger.Payload = map[string]any{"order": "12"}
		if _, err := p.Play(t.Context(), c, 0, false); err == nil || !strings.Contains(err.Error(), "payload.note is missing") {
			t.Errorf("a case whose payload does not fit: %v", err)
		}
	}
}

// A failure is told to those whom the flow names, also where the run could not begin or a deadline
// ends it.
func TestFailed(t *testing.T) {
	p := player(t, "owner: chat/ann\nstart: a\non_failure: [owner, chat/ops]\nnodes: {a: {kind: template, value: 1, next: b}, b: {kind: template, value: 1, next: END}}\n")
	there, told := true, []string{}
	e := flow.New(flow.Config{
		Flow: func(context.Context, string, string) (*flows.Flow, error) {
			if !there {
				return nil, errors.New("is not stored")
			}
			return p.Flow, nil
		},
		Route: func(v string) (claybot.Route, error) { return claybot.Route{Connector: v}, nil },
		Notify: func(_ context.Context, _ claybot.Agent, key string, _ func(texts.Voice) string) {
			told = append(told, key)
		},
		Send: func(_ context.Context, _ *runs.Turn, to claybot.Route, key, _ string) error {
			told = append(told, to.Connector+" "+key)
			return nil
		},
	})
	turn := &runs.Turn{Run: claybot.Run{ID: "r", Engine: "flow:every@1"}, History: []claybot.Record{{Type: claybot.RecordNode, Run: "r", Name: "a", Next: "b"}}}
	err := e.Failed(t.Context(), turn, runs.Error{Code: runs.CodeDeadline})
	if err.Code != runs.CodeDeadline || !strings.Contains(err.Say, "step b") || fmt.Sprint(told) != "[flow/r/failed chat/ops failed/1]" {
		t.Errorf("%+v, told %q", err, told)
	}
	there, told = false, nil
	if err = e.Failed(t.Context(), turn, runs.Error{Code: flow.CodeFlow}); !strings.Contains(err.Say, "every") || fmt.Sprint(told) != "[flow/r/failed]" {
		t.Errorf("%+v, told %q", err, told)
	}
}

// What a stranger gives as their name or channel is as tainted as what they write; a tool that may act
// is called once, also where claybot could repeat the call; and an output that is too large leads to the
// error edge.
func TestHostileInputs(t *testing.T) {
	const text = `
owner: chat/ann
start: name
nodes:
  name: {kind: tool, tool: put, args: {a: "{{ user.name }}"}, next: place}
  place: {kind: tool, tool: put, args: {a: "{{ trigger.channel }}"}, next: fails}
  fails: {kind: tool, tool: put, next: big, error: big}
  big: {kind: template, value: [COPIES], next: END, error: told}
  told: {kind: reply, text: "{{ error.code }}", next: END}
`
	p := player(t, strings.ReplaceAll(text, "COPIES", strings.Repeat(`"{{ name.output }}", `, 50)))
	p.Effect = func(string) tools.Effect { return tools.Idempotent }
	p.Fill = func(next func(*runs.Turn, string, flow.Names) (any, error)) func(*runs.Turn, string, flow.Names) (any, error) {
		return func(turn *runs.Turn, text string, names flow.Names) (any, error) {
			if strings.Contains(text, "user.name") || strings.Contains(text, "trigger.channel") {
				return "x", nil
			}
			return next(turn, text, names)
		}
	}(p.Fill)
	var tainted []string
	settle := p.Settle
	p.Settle = func(set *tools.Set) flow.Settle {
		inner := settle(set)
		return func(ctx context.Context, turn *runs.Turn, rules *tools.Rules, yield func(claybot.Record) error) error {
			tainted = append(tainted, fmt.Sprint(turn.History[len(turn.History)-1].ToolCalls[0].ID, " ", tools.Tainted(turn.History)))
			return inner(ctx, turn, rules, yield)
		}
	}
	c := flow.Case{Trigger: flow.Started{Tainted: true}, Nodes: map[string]any{
		"name": strings.Repeat("x", flows.MaxOutput/2), "place": "ok", "fails": map[string]any{"fails": "no"},
	}}
	got, err := p.Play(t.Context(), c, 0, false)
	if err != nil || fmt.Sprint(got.Replies) != "[too_large]" || got.Called["put"] != 3 {
		t.Errorf("%v %v %v %+v", err, got.Replies, got.Called, got.Err)
	}
	if want := []string{"name.1.1 true", "place.1.1 true", "fails.1.1 false"}; !slices.Equal(tainted, want) {
		t.Errorf("%q, want %q", tainted, want)
	}
}

// What all nodes of a run have put out is bounded as well: the node beyond it fails, and what was put out before is
// there.
func TestStateIsBounded(t *testing.T) {
	var nodes strings.Builder
	for i := range 18 {
		fmt.Fprintf(&nodes, "  n%d: {kind: template, value: \"{{ trigger.text }}\", next: n%d, error: told}\n", i, i+1)
	}
	p := player(t, "owner: chat/ann\nstart: n0\nnodes:\n"+nodes.String()+`
  n18: {kind: template, value: all, next: END}
  told: {kind: reply, text: "{{ error.code }} {{ n15.output | default('') | length }} {{ error.text }}", next: END}
`)
	got, err := p.Play(t.Context(), flow.Case{Trigger: flow.Started{Text: strings.Repeat("x", 250<<10)}}, 0, false)
	const want = "[too_large 256000 n16: what the nodes of the run have put out would be 4352034 bytes; the limit is 4194304]"
	if err != nil || fmt.Sprint(got.Replies) != want || got.Err != nil {
		t.Errorf("%v %q %v", err, got.Replies, got.Err)
	}
}

// An agent whose tools act is not started once more by itself.
func TestActingAgentIsTriedOnce(t *testing.T) {
	for text, want := range map[string]string{"tools: [put]": flow.CodeOutput, "tools: [put], tries: 2": "", "tools: [look]": ""} {
		p := player(t, "owner: chat/ann\nstart: a\nnodes: {a: {kind: agent, prompt: x, output: {n: integer}, "+text+", next: look}, look: {kind: tool, tool: look, next: END}}\n")
		c := flow.Case{Nodes: map[string]any{"a": map[string]any{"visits": []any{"hm", map[string]any{"n": 1}}}, "look": "ok"}, Expect: flow.Expected{Fails: want}}
		if wrong, _, err := p.Test(t.Context(), c); err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v %q", text, err, wrong)
		}
	}
}

// A tool whose arguments have changed while the run waited is not called, whether the run waited for its
// approval or before.
func TestToolChanged(t *testing.T) {
	c := ways[0]
	for _, tt := range []struct {
		name    string
		changes int // the calls of Schema until the schema is another one
		fails   string
	}{
		{"never", 100, ""},
		{"while it waits", 2, flow.CodeChanged}, // one for each of two tools is noted
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := player(t, strings.ReplaceAll(everyKind, "\n    error: tell", ""))
			calls := 0
			p.Schema = func(string) string {
				if calls++; calls > tt.changes {
					return "new"
				}
				return "old"
			}
			c.Expect = flow.Expected{Fails: tt.fails}
			if tt.fails != "" {
				c.Expect.Never = []string{"pay"}
			}
			if wrong, _, err := p.Test(t.Context(), c); err != nil || len(wrong) > 0 {
				t.Error(err, wrong)
			}
		})
	}
}
