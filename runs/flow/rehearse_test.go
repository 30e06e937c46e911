package flow_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
)

// wouldOf are what the nodes of a run would have done.
func wouldOf(p flow.Played) (all []string) {
	for _, r := range p.Log {
		if what, ok := strings.CutPrefix(r.Text, flow.Would); ok && r.Type == claybot.RecordNode {
			all = append(all, r.Name+": "+what)
		}
	}
	return all
}

const shopping = `
owner: chat/ann
start: sure
nodes:
  sure: {kind: ask, text: "Buy {{ trigger.text }}?", denied: tell, next: price}
  price: {kind: tool, tool: look, next: rest}
  rest: {kind: wait, for: 2h, next: pay}
  pay: {kind: tool, tool: pay, args: {sum: "{{ price.sum }}"}, approve: {by: [chat/bob]}, next: hook}
  hook: {kind: http, method: POST, url: "https://example.org/x", body: {sum: "{{ price.sum }}"}, next: word}
  word: {kind: agent, prompt: "Thank {{ trigger.text }}", next: keep}
  keep: {kind: agent, memory: on, prompt: "Remember", next: tell}
  tell: {kind: reply, to: [trigger, chat/ops], text: "{{ word.output | default('no') }}", next: END}
`

// A dry run reads, and agents without tools work; nothing that acts is called, no person is asked, and
// nothing is sent.
func TestDryRun(t *testing.T) {
	p := player(t, shopping)
	c := flow.Case{
		Dry: true, Trigger: flow.Started{Text: "tea", User: "chat/ann"},
		Nodes:  map[string]any{"price": map[string]any{"sum": 12}, "word": "thanks"},
		Expect: flow.Expected{Path: []string{"sure", "price", "rest", "pay", "hook", "word", "keep", "tell"}, Never: []string{"pay", "http_once"}},
	}
	wrong, played, err := p.Test(t.Context(), c)
	if err != nil || len(wrong) > 0 || len(played.Replies) > 0 || len(played.Asks) > 0 || played.Called["look"] != 1 {
		t.Errorf("%v %v, replies %q, asks %v, called %v", err, wrong, played.Replies, played.Asks, played.Called)
	}
	want := []string{
		"sure: ask the person of the run: Buy tea? (taken as answered with true)",
		"rest: wait for 2h0m0s",
		`pay: call pay with {"sum":12}, once chat/bob approves it`,
		`hook: call POST https://example.org/x with {"sum":12}`,
		"keep: give an agent the task: Remember",
		"tell: send to trigger, chat/ops: thanks",
	}
	if got := wouldOf(played); !slices.Equal(got, want) {
		t.Errorf("would do\n%s", strings.Join(got, "\n"))
	}
	if wrong, _, err := p.Crash(t.Context(), c); err != nil || len(wrong) > 0 {
		t.Errorf("cut off: %v %v", err, wrong)
	}
	// An agent that would remember it does not work.
	for _, kind := range []string{"agent, memory: on", "deep, memory: on", "deep, files: store"} {
		remembering := c
		remembering.Expect = flow.Expected{}
		_, played, err := player(t, strings.ReplaceAll(shopping, "word: {kind: agent,", "word: {kind: "+kind+",")).Test(t.Context(), remembering)
		if err != nil || !slices.Contains(wouldOf(played), "word: give an agent the task: Thank tea") {
			t.Errorf("%s: %v %q", kind, err, wouldOf(played))
		}
	}
	// What it needs of a node that did not act, it does not have, and says so.
	p = player(t, strings.ReplaceAll(shopping, "Thank {{ trigger.text }}", "Thank for {{ pay.receipt }}"))
	c.Expect = flow.Expected{Fails: flow.CodeDry}
	wrong, played, err = p.Test(t.Context(), c)
	if err != nil || len(wrong) > 0 || !strings.Contains(played.Err.Text, "these nodes did nothing: sure, rest, pay, hook") {
		t.Errorf("%v %v %v", err, wrong, played.Err)
	}
}

// bought is a run that paid.
func bought(t *testing.T, p flow.Player) flow.Played {
	t.Helper()
	c := flow.Case{
		Trigger: flow.Started{Text: "tea", User: "chat/ann"},
		Nodes:   map[string]any{"price": map[string]any{"sum": 12}, "word": "thanks", "keep": "kept", "pay": map[string]any{"receipt": "r1"}, "hook": "ok"},
		Answers: map[string]any{"sure": "approve", "pay": "approve"},
		Expect:  flow.Expected{Path: []string{"sure", "price", "rest", "pay", "hook", "word", "keep", "tell"}},
	}
	wrong, played, err := p.Test(t.Context(), c)
	if err != nil || len(wrong) > 0 {
		t.Fatal(err, wrong)
	}
	return played
}

// A dry replay makes no call at all; it goes through a changed flow with the results of the run.
func TestReplayDry(t *testing.T) {
	p := player(t, shopping)
	past := bought(t, p).Log
	for _, tt := range []struct {
		name, flow, from string
		path             []string
		would            []string
	}{
		{"as it was", shopping, "", []string{"sure", "price", "rest", "pay", "hook", "word", "keep", "tell"}, nil},
		{"from a node", shopping, "word", []string{"sure", "price", "rest", "pay", "hook", "word", "keep", "tell"}, nil},
		{
			"changed", strings.ReplaceAll(shopping, "next: hook}", "next: note}\n  note: {kind: reply, to: [chat/ops], text: \"{{ pay.receipt }}\", next: hook}"), "pay",
			[]string{"sure", "price", "rest", "pay", "note", "hook", "word", "keep", "tell"},
			[]string{"note: send to chat/ops: r1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := player(t, tt.flow)
			c := flow.Case{Dry: true, Replay: &claybot.FlowReplay{Run: "case", From: tt.from}, Past: past, Trigger: flow.Started{Text: "tea", User: "chat/ann"}, Expect: flow.Expected{Path: tt.path}}
			wrong, played, err := p.Test(t.Context(), c)
			if err != nil || len(wrong) > 0 || len(played.Called) > 0 || len(played.Replies) > 0 || len(played.Asks) > 0 {
				t.Errorf("%v %v, called %v, replies %q, asks %v, failed %v", err, wrong, played.Called, played.Replies, played.Asks, played.Err)
			}
			if got := wouldOf(played); !slices.Equal(got, tt.would) {
				t.Errorf("would do %q", got)
			}
			if receipt, _ := played.Outputs["pay"].(map[string]any); receipt["receipt"] != "r1" {
				t.Errorf("outputs %v", played.Outputs)
			}
			if wrong, _, err := p.Crash(t.Context(), c); err != nil || len(wrong) > 0 {
				t.Errorf("cut off: %v %v", err, wrong)
			}
		})
	}
}

// A live replay works again, but what has acted is not done again, unless it is named and approved.
func TestReplayLive(t *testing.T) {
	p := player(t, shopping)
	past := bought(t, p).Log
	// cutPast is the run up to the call of pay, which was cut off.
	i := slices.IndexFunc(past, func(r claybot.Record) bool { return r.Type == claybot.RecordTool && r.Name == "pay" })
	cutPast := past[:i]
	base := flow.Case{
		Trigger: flow.Started{Text: "tea", User: "chat/ann"}, Past: past, Replay: &claybot.FlowReplay{Run: "case"},
		Nodes:   map[string]any{"price": map[string]any{"sum": 20}, "word": "thanks again", "keep": "kept", "pay": map[string]any{"receipt": "r2"}, "hook": "ok"},
		Answers: map[string]any{"sure": "approve", "pay": "approve"},
	}
	for _, tt := range []struct {
		name    string
		change  func(*flow.Case)
		called  map[string]int
		receipt string
		fails   string
		replies int
	}{
		{"all", func(*flow.Case) {}, map[string]int{"look": 1}, "r1", "", 0},
		{"from", func(c *flow.Case) { c.Replay.From = "pay" }, nil, "r1", "", 0},
		{"again, approved", func(c *flow.Case) { c.Replay.Again = []string{"pay"} }, map[string]int{"look": 1, "pay": 1}, "r2", "", 0},
		{"again, denied", func(c *flow.Case) { c.Replay.Again, c.Answers["pay"] = []string{"pay"}, "deny" }, map[string]int{"look": 1}, "r1", "", 0},
		{"one that was cut off", func(c *flow.Case) { c.Past, c.Replay.From = cutPast, "pay" }, nil, "", flow.CodeUnknown, 0},
		{"one that was cut off, again", func(c *flow.Case) { c.Past, c.Replay.From, c.Replay.Again = cutPast, "pay", []string{"pay"} }, map[string]int{"pay": 1, "http_once": 1}, "r2", "", 2},
		{"a node that it did not come to", func(c *flow.Case) { c.Past, c.Replay.From = cutPast, "word" }, nil, "", flow.CodeFlow, 0},
		{"no records", func(c *flow.Case) { c.Past = nil }, nil, "", flow.CodeFlow, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := base
			c.Replay = &claybot.FlowReplay{Run: "case"}
			c.Answers = map[string]any{"sure": "approve", "pay": "approve"}
			tt.change(&c)
			c.Expect = flow.Expected{Fails: tt.fails}
			wrong, played, err := p.Test(t.Context(), c)
			if err != nil || len(wrong) > 0 {
				t.Fatal(err, wrong)
			}
			for _, tool := range []string{"look", "pay", "http_once"} {
				if played.Called[tool] != tt.called[tool] {
					t.Errorf("%s was called %d times", tool, played.Called[tool])
				}
			}
			if receipt, _ := played.Outputs["pay"].(map[string]any); tt.receipt != "" && receipt["receipt"] != tt.receipt {
				t.Errorf("outputs %v", played.Outputs)
			}
			if len(played.Replies) != tt.replies {
				t.Errorf("replies %q", played.Replies)
			}
			if wrong, _, err := p.Crash(t.Context(), c); err != nil || len(wrong) > 0 {
				t.Errorf("cut off: %v %v", err, wrong)
			}
		})
	}
}

// A live replay does not start what may have acted again because its node failed, unless it is named and
// approved.
func TestReplayLiveStartsOnce(t *testing.T) {
	for kind, node := range map[string]string{
		"agent": `{kind: agent, tools: [pay], prompt: "Pay", output: {sum: number}, next: tell}`,
		"deep":  `{kind: deep, tools: [pay], prompt: "Pay", output: {sum: number}, next: tell}`,
		"each":  `{kind: each, over: "{{ ['a', 'b'] }}", tools: [pay], prompt: "Pay {{ item }}", output: {sum: number}, next: tell}`,
		"flow":  `{kind: flow, flow: pay, next: tell}`,
	} {
		for name, tt := range map[string]struct {
			again []string
			said  string
			fails string
		}{
			"not named": {nil, "", flow.CodeUnknown},
			"approved":  {[]string{"pay"}, "approve", ""},
			"denied":    {[]string{"pay"}, "deny", flow.CodeDenied},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				p := player(t, "owner: chat/ann\nstart: hello\nnodes:\n  hello: {kind: template, value: hi, next: pay}\n  pay: "+node+"\n  tell: {kind: reply, text: done, next: END}\n")
				c := flow.Case{Trigger: flow.Started{Text: "tea", User: "chat/ann"}, Nodes: map[string]any{"pay": "paid, no JSON"}}
				if kind == "flow" {
					c.Nodes["pay"] = map[string]any{"fails": "no money"}
				}
				_, played, err := p.Test(t.Context(), c)
				if err != nil || played.Err == nil {
					t.Fatal(err, "it did not fail")
				}
				c.Past, c.Replay, c.Nodes = played.Log, &claybot.FlowReplay{Run: "case", Again: tt.again}, map[string]any{"pay": map[string]any{"sum": 1}}
				c.Answers, c.Expect = map[string]any{"pay": tt.said}, flow.Expected{Fails: tt.fails, Path: []string{"hello"}}
				if tt.fails == "" {
					c.Expect.Path = []string{"hello", "pay", "tell"}
				}
				wrong, played, err := p.Test(t.Context(), c)
				if err != nil || len(wrong) > 0 {
					t.Fatal(err, wrong)
				}
				if asked := played.Asks["pay"]; (asked != "") != (tt.again != nil) || tt.again != nil && !strings.HasPrefix(asked, "May the workflow every do its step pay again?") {
					t.Errorf("asked %q", asked)
				}
				if wrong, _, err := p.Crash(t.Context(), c); err != nil || len(wrong) > 0 {
					t.Errorf("cut off: %v %v", err, wrong)
				}
				// From another node it is as from the first one.
				c.Replay = &claybot.FlowReplay{Run: "case", From: "pay", Again: tt.again}
				if wrong, _, err := p.Test(t.Context(), c); err != nil || len(wrong) > 0 {
					t.Errorf("from pay: %v %v", err, wrong)
				}
			})
		}
	}
}

// A replay that is not approved leaves what a node of agents has put out.
func TestReplayLiveDeniedKeeps(t *testing.T) {
	p := player(t, "owner: chat/ann\nstart: pay\nnodes:\n  pay: {kind: agent, tools: [pay], prompt: Pay, next: tell}\n  tell: {kind: reply, text: \"{{ pay.output }}\", next: END}\n")
	c := flow.Case{Trigger: flow.Started{Text: "tea", User: "chat/ann"}, Nodes: map[string]any{"pay": "first"}, Answers: map[string]any{"pay": "deny"}}
	_, played, err := p.Test(t.Context(), c)
	if err != nil || played.Err != nil {
		t.Fatal(err, played.Err)
	}
	for said, want := range map[string]string{"deny": "first", "approve": "second"} {
		again := flow.Case{
			Trigger: c.Trigger, Past: played.Log, Replay: &claybot.FlowReplay{Run: "case", Again: []string{"pay"}},
			Nodes: map[string]any{"pay": "second"}, Answers: map[string]any{"pay": said}, Expect: flow.Expected{Outputs: map[string]any{"pay": want}},
		}
		if wrong, _, err := p.Test(t.Context(), again); err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v %v", said, err, wrong)
		}
	}
}

// A dry run does not read what people have to approve: it goes on as if they had, as after any approval.
func TestDryApproved(t *testing.T) {
	p := player(t, "owner: chat/ann\nstart: price\nnodes:\n  price: {kind: tool, tool: look, approve: {by: [chat/bob]}, next: tell}\n  tell: {kind: reply, text: done, next: END}\n")
	c := flow.Case{Dry: true, Trigger: flow.Started{Text: "tea", User: "chat/ann"}, Expect: flow.Expected{Path: []string{"price", "tell"}, Never: []string{"look"}}}
	wrong, played, err := p.Test(t.Context(), c)
	want := []string{"price: call look with {}, once chat/bob approves it", "tell: send to trigger: done"}
	if got := wouldOf(played); err != nil || len(wrong) > 0 || played.Err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, failed %v, would do %q", err, wrong, played.Err, got)
	}
}

// What a run sent in the node in which it ended, it may have sent as soon as it came there: that it was canceled much
// later says nothing about it.
func TestReplyOfCanceledRun(t *testing.T) {
	const day = 24 * time.Hour
	begun := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	at := func(d time.Duration) claybot.Time { return claybot.At(begun.Add(d)) }
	for _, tt := range []struct {
		name  string
		waits time.Duration // in the reply, for an approval, before it was sent; 0: it does not
		sent  bool          // the text is sent again
	}{{"at once", 0, false}, {"after a wait", 5 * day, true}} {
		t.Run(tt.name, func(t *testing.T) {
			p := player(t, "owner: chat/ann\nstart: a\nnodes: {a: {kind: template, value: 1, next: tell}, tell: {kind: reply, to: [chat/one], text: tea, next: END}}\n")
			played, err := p.Play(t.Context(), flow.Case{}, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			records := played.Log[:1]
			if records[0].At = at(0); tt.waits > 0 {
				records = append(records, claybot.Record{Type: claybot.RecordNode, Run: "case", Name: "tell", Next: "tell", At: at(tt.waits)})
			}
			records = append(records, claybot.Record{Type: claybot.RecordSystem, Run: "case", Text: "canceled", At: at(6 * day)})
			sent := 0
			e := flow.New(flow.Config{
				Flow: func(context.Context, string, string) (*flows.Flow, error) { return p.Flow, nil },
				Fill: p.Fill, Uses: p.Uses,
				Route:    func(v string) (claybot.Route, error) { return claybot.Route{Connector: "chat", ChannelID: "one"}, nil },
				Recorded: func(context.Context, claybot.RunID) ([]claybot.Record, error) { return records, nil },
				Sent:     func(context.Context, claybot.RunID, string) (*claybot.Route, error) { return nil, nil },
				Kept:     func() time.Duration { return 7 * day },
				Now:      func() time.Time { return begun.Add(8 * day) },
				Send: func(context.Context, *runs.Turn, claybot.Route, string, string) error {
					sent++
					return nil
				},
			})
			turn := &runs.Turn{
				Run:      claybot.Run{ID: "new", Engine: flow.NameOf("every", p.Flow.Hash)},
				Messages: []claybot.AgentMessage{{Payload: []byte("null"), Flow: &claybot.FlowStart{Name: "every", Replay: &claybot.FlowReplay{Run: "case"}}}},
			}
			var failed *runs.Error
			for _, err := range e.Run(t.Context(), turn) {
				if err != nil && !errors.As(err, &failed) {
					t.Fatal(err)
				}
			}
			if tt.sent != (sent == 1) || !tt.sent && (failed == nil || failed.Code != flow.CodeUnknown) {
				t.Errorf("sent %d times, %v", sent, failed)
			}
		})
	}
}
