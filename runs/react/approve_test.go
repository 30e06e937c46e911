package react_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/tools"
)

func yes() claybot.Answer {
	return claybot.Answer{Value: []byte("true"), Via: claybot.ViaButton, By: "u1"}
}

// asking is a loop that asks for the tools named.
func asking(m llm.Model, s *tools.Set, globs ...string) *react.Loop {
	l := loop(m, s)
	l.Approve = func(claybot.Agent) react.Rules { return react.Rules{Ask: globs} }
	return l
}

func TestApprovedCallRuns(t *testing.T) {
	var c counter
	j := newJournal("go")
	reply := llmtest.Use(call("a", "pay", "5"), call("b", "look", ""))
	reply.Text = "I pay the bill now."
	l := asking(llmtest.NewScript(reply, llmtest.Say("done")), c.set(t), "p*")
	for range 2 { // woken for nothing, it goes on waiting
		if got := until(t, j.run(t, l)); got != "answer/approve/a" {
			t.Fatalf("waits for %q", got)
		}
		if len(j.started) != 0 || len(c.runs) != 0 {
			t.Fatalf("started %v before the approval", j.started)
		}
	}
	q := j.last().Question
	want := []string{
		"**Approve this action: pay**\n```\n{\n  \"word\": \"5\"\n}\n```\nAsked by the agent of the operators.\nWhy: a rule requires an approval for this action.\nThe agent says: `I pay the bill now.`",
	}
	for _, w := range want {
		if !strings.Contains(q.Text, w) {
			t.Errorf("the question lacks %q:\n%s", w, q.Text)
		}
	}
	if q.Type != claybot.QuestionConfirm || q.Tool != "pay" || q.ToolCallID != "a" || q.Digest != tools.Digest("agent1", "", call("a", "pay", "5")) {
		t.Errorf("%+v", q)
	}
	j.say("approve/a", yes())
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	got := j.lines()
	wantLines(t, got[len(got)-3:], []string{"1 a true pay 5", "1 b true look ", "2 assistant done"})
	if c.runs["a"] != 1 || !slices.Equal(j.asked(), []string{"approve/a"}) || j.usage.ToolCalls != 2 {
		t.Errorf("ran %v, asked %v, usage %+v", c.runs, j.asked(), j.usage)
	}
	waiting := 0
	for _, e := range j.events {
		if e.Type == claybot.EventToolWaiting {
			waiting++
			if !strings.Contains(string(e.Data), `"reason":"approval"`) || !strings.Contains(string(e.Data), `"callId":"a"`) {
				t.Errorf("event %s", e.Data)
			}
		}
	}
	if waiting != 2 {
		t.Errorf("%d events tell that the call waits", waiting)
	}
}

func TestNotApproved(t *testing.T) {
	no := []byte("false")
	tests := []struct {
		name string
		a    claybot.Answer
		want string
	}{
		{"denied", claybot.Answer{Value: no, Via: claybot.ViaButton}, "not approved"},
		{"denied with a reason", claybot.Answer{Value: no, Via: claybot.ViaText, Reason: " use the other card\n"}, "not approved: use the other card"},
		{"expired", claybot.Answer{Value: no, Via: claybot.ViaDefault}, "not approved: no answer in time"},
		{"expired without a value", claybot.Answer{Via: claybot.ViaDefault}, "not approved: no answer in time"},
		{"odd", claybot.Answer{Value: []byte(`"true"`), Via: claybot.ViaHTTP}, "not approved"},
		{"for the session", claybot.Answer{Value: no, Via: claybot.ViaButton, Scope: claybot.ApproveSession}, "not approved"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c counter
			j := newJournal("go")
			l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "1"), call("b", "put", "2")), llmtest.Say("ok")), c.set(t), "pay")
			until(t, j.run(t, l))
			j.say("approve/a", tt.a)
			if err := j.run(t, l); err != nil {
				t.Fatal(err)
			}
			got := j.lines()
			wantLines(t, got[len(got)-3:], []string{"1 a false " + tt.want, "1 b true put 2", "2 assistant ok"})
			if c.runs["a"] != 0 || j.started["a"] != "" {
				t.Errorf("ran %v, started %v", c.runs, j.started)
			}
		})
	}
}

func TestNobodyCanBeAsked(t *testing.T) {
	for name, blind := range map[string]bool{"no person": false, "no way to ask": true} {
		var c counter
		j := newJournal("go")
		j.nobody = true
		l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "1")), llmtest.Say("ok")), c.set(t), "*")
		turn := j.turn()
		if blind {
			turn.Reader = nil
		}
		if err := j.pass(t.Context(), l, turn, 0, true); err != nil {
			t.Fatal(err)
		}
		wantLines(t, j.lines()[2:], []string{"1 a false not approved: no person can be asked", "2 assistant ok"})
		if len(c.runs)+len(j.started) != 0 {
			t.Errorf("%s: ran %v", name, c.runs)
		}
	}
}

// Which calls ask, and for how long an approval holds.
func TestRules(t *testing.T) {
	confirm := tools.Spec{Tool: llm.Tool{Name: "wire"}, Confirm: true}
	for _, tt := range []struct {
		name  string
		tool  string
		rules react.Rules
		prior *claybot.Answer
		asks  bool
	}{
		{"no rule", "pay", react.Rules{}, nil, false},
		{"named", "pay", react.Rules{Ask: []string{"look", "pay"}}, nil, true},
		{"glob", "pay", react.Rules{Ask: []string{"p?y"}}, nil, true},
		{"another", "pay", react.Rules{Ask: []string{"pa"}}, nil, false},
		{"a bad rule asks", "pay", react.Rules{Ask: []string{"[p"}}, nil, true},
		{"always", "pay", react.Rules{Ask: []string{"*"}, Always: []string{"pay"}}, nil, false},
		{"a bad rule allows nothing", "pay", react.Rules{Ask: []string{"*"}, Always: []string{"[pay"}}, nil, true},
		{"the tool asks", "wire", react.Rules{}, nil, true},
		{"the tool asks, always", "wire", react.Rules{Always: []string{"wire"}}, nil, false},
		{"session", "wire", react.Rules{}, &claybot.Answer{Value: []byte("true"), Scope: claybot.ApproveSession}, false},
		{"once before", "wire", react.Rules{}, &claybot.Answer{Value: []byte("true")}, true},
		{"unknown tool", "none", react.Rules{Ask: []string{"*"}}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := []tools.Tool{}
			for _, s := range []tools.Spec{confirm, {Tool: llm.Tool{Name: "pay"}}} {
				all = append(all, tools.New(s, func(context.Context, tools.Env, word) (tools.Result, error) { return tools.Result{}, nil }))
			}
			set, err := tools.NewSet(all...)
			if err != nil {
				t.Fatal(err)
			}
			j := newJournal("go")
			if tt.prior != nil {
				j.records = slices.Insert(j.records, 0, claybot.Record{Type: claybot.RecordQuestion, Run: "before", Question: &claybot.Question{ID: "old", Tool: tt.tool, Type: claybot.QuestionConfirm}})
				j.say("old", *tt.prior)
			}
			l := loop(llmtest.NewScript(llmtest.Use(call("a", tt.tool, "1")), llmtest.Say("ok")), set)
			l.Approve = func(claybot.Agent) react.Rules { return tt.rules }
			waits := until(t, j.run(t, l))
			if (waits != "") != tt.asks {
				t.Errorf("waits for %q", waits)
			}
		})
	}
}

// A rule that asks no more, while its question waits, lets the call run; but a no
// that was said stands.
func TestRuleGoneWhileAsked(t *testing.T) {
	no := []byte("false")
	for _, tt := range []struct {
		name string
		a    *claybot.Answer
		want string // the result of a
	}{
		{"denied", &claybot.Answer{Value: no, Via: claybot.ViaButton}, "false not approved"},
		{"denied with a reason", &claybot.Answer{Value: no, Via: claybot.ViaButton, Reason: "too dear"}, "false not approved: too dear"},
		{"expired", &claybot.Answer{Value: no, Via: claybot.ViaDefault}, "false not approved: no answer in time"},
		{"approved", &claybot.Answer{Value: []byte("true"), Via: claybot.ViaButton}, "true look 1"},
		{"open", nil, "true look 1"},
	} {
		for rule, change := range map[string]func(*react.Rules){
			"removed": func(r *react.Rules) { r.Ask = nil },
			"always":  func(r *react.Rules) { r.Always = []string{"look"} },
		} {
			t.Run(tt.name+" "+rule, func(t *testing.T) {
				var c counter
				j := newJournal("go")
				rules := react.Rules{Ask: []string{"look"}}
				l := loop(llmtest.NewScript(llmtest.Use(call("x", "pay", "0"), call("a", "look", "1"), call("b", "look", "2")), llmtest.Say("ok")), c.set(t))
				l.Approve = func(claybot.Agent) react.Rules { return rules }
				if got := until(t, j.run(t, l)); got != "answer/approve/a" {
					t.Fatalf("waits for %q", got)
				}
				change(&rules)
				if tt.a != nil {
					j.say("approve/a", *tt.a)
				}
				if err := j.run(t, l); err != nil {
					t.Fatal(err)
				}
				got := j.lines()
				wantLines(t, got[len(got)-3:], []string{"1 a " + tt.want, "1 b true look 2", "2 assistant ok"})
				if ran := c.runs["a"] > 0; ran != strings.HasPrefix(tt.want, "true") || ran != (j.started["a"] != "") {
					t.Errorf("ran %v, started %v", c.runs, j.started)
				}
			})
		}
	}
}

// A question of another run, or of another tool, says nothing about a call.
func TestQuestionOfAnotherCall(t *testing.T) {
	for name, r := range map[string]claybot.Record{
		"another run":  {Run: "before", Question: &claybot.Question{Tool: "pay", ToolCallID: "a", Type: claybot.QuestionConfirm}},
		"another tool": {Run: runID, Question: &claybot.Question{Tool: "put", ToolCallID: "a", Type: claybot.QuestionConfirm}},
		"no approval":  {Run: runID, Question: &claybot.Question{Tool: "pay", ToolCallID: "a", Type: claybot.QuestionBoolean}},
		"another call": {Run: runID, Question: &claybot.Question{Tool: "pay", ToolCallID: "b", Type: claybot.QuestionConfirm}},
		"nothing":      {Run: runID},
	} {
		var c counter
		j := newJournal("go")
		r.Type = claybot.RecordQuestion
		j.records = slices.Insert(j.records, 0, r)
		j.approvals["approve/a"] = claybot.Answer{Value: []byte("false"), Via: claybot.ViaButton}
		if err := j.run(t, loop(llmtest.NewScript(llmtest.Use(call("a", "pay", "1")), llmtest.Say("ok")), c.set(t))); err != nil || c.runs["a"] != 1 {
			t.Errorf("%s: %v, ran %v", name, err, c.runs)
		}
	}
}

// A call that no tool takes, and one beyond the limits, are refused unasked.
func TestRefusedCallsAskNobody(t *testing.T) {
	var c counter
	j := newJournal("go")
	bad := claybot.ToolCall{ID: "a", Name: "pay", Args: `{"word":1}`}
	cut := claybot.ToolCall{ID: "b", Name: "pay", Args: `{"wor`}
	if err := j.run(t, asking(llmtest.NewScript(llmtest.Use(bad, cut), llmtest.Say("ok")), c.set(t), "*")); err != nil {
		t.Fatal(err)
	}
	if len(j.asked()) != 0 || len(c.runs) != 0 {
		t.Errorf("asked %v, ran %v", j.asked(), c.runs)
	}
}

func TestActionThatCannotBeShown(t *testing.T) {
	var c counter
	j := newJournal("go")
	l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", strings.Repeat("x", 20_000))), llmtest.Say("ok")), c.set(t), "*")
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	if got := j.lines()[2]; !strings.HasPrefix(got, "1 a false not approved: the action is longer than") || len(c.runs) != 0 {
		t.Errorf("%s, ran %v", got, c.runs)
	}
}

// What was approved is one action; another one under the same name does not run.
func TestApprovalOfAnotherAction(t *testing.T) {
	tests := map[string]func(q *claybot.Question){
		"other arguments": func(q *claybot.Question) { q.Digest = tools.Digest("agent1", "", call("a", "pay", "1")) },
		"another tool":    func(q *claybot.Question) { q.Digest = tools.Digest("agent1", "", call("a", "put", "1000")) },
		"another agent":   func(q *claybot.Question) { q.Digest = tools.Digest("agent2", "", call("a", "pay", "1000")) },
		"no digest":       func(q *claybot.Question) { q.Digest = "" },
		"no question":     func(q *claybot.Question) { q.ID = "lost" },
	}
	for name, change := range tests {
		var c counter
		j := newJournal("go")
		l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "1000")), llmtest.Say("ok")), c.set(t), "*")
		until(t, j.run(t, l))
		change(j.last().Question)
		j.say("approve/a", yes())
		if err := j.run(t, l); err != nil {
			t.Fatal(err)
		}
		if got := j.lines()[len(j.lines())-2]; !strings.HasPrefix(got, "1 a false not approved: the approval was for another action") || len(c.runs)+len(j.started) != 0 {
			t.Errorf("%s: %s, ran %v", name, got, c.runs)
		}
	}
}

// Calls of one answer come in their order, whether they wait for an approval or
// for their tool; what stands before the one that waits has its result.
func TestApprovalsInAGroup(t *testing.T) {
	var c counter
	j := newJournal("go")
	set := askers(t, j, &c)
	script := llmtest.NewScript(llmtest.Use(call("a", "look", "1"), call("b", "peek", "2"), call("c", "look", "3"), call("d", "peek", "4")), llmtest.Say("ok"))
	l := asking(script, set, "look")
	for _, want := range []struct {
		wait claybot.MessageID
		ran  map[string]int
	}{
		{"answer/approve/a", map[string]int{}},
		{"answer/b", map[string]int{"a": 1, "b": 1}},
		{"answer/approve/c", map[string]int{"a": 1, "b": 2}},
		{"answer/d", map[string]int{"a": 1, "b": 2, "c": 1, "d": 1}},
		{"", map[string]int{"a": 1, "b": 2, "c": 1, "d": 2}},
	} {
		err := j.run(t, l)
		if got := until(t, err); got != want.wait || got == "" && err != nil {
			t.Fatalf("waits for %q, %v, want %q", got, err, want.wait)
		}
		if !maps.Equal(c.runs, want.ran) {
			t.Errorf("before %q: ran %v, want %v", want.wait, c.runs, want.ran)
		}
		if round, ok := strings.CutPrefix(string(want.wait), "answer/approve/"); ok {
			j.say("approve/"+round, yes())
		} else {
			j.answers[want.wait] = "1"
		}
	}
}

// Crashes between question, answer, start and result: asked once, run once.
func TestCrashAroundApprovals(t *testing.T) {
	replies := []llmtest.Reply{
		llmtest.Use(call("a", "pay", "1"), call("b", "look", "2"), call("c", "look", "3")),
		llmtest.Use(call("d", "put", "4")), llmtest.Say("all done"),
	}
	left := func(j *journal) *llmtest.Script {
		n := 0
		for _, r := range j.records {
			if r.Type == claybot.RecordAssistant {
				n++
			}
		}
		return llmtest.NewScript(replies[n:]...)
	}
	for k := 1; k <= 8; k++ {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d %v", k, keep), func(t *testing.T) {
				var c counter
				set, j := c.set(t), newJournal("go")
				passes, crashed := 0, false
				for n := 0; ; passes++ {
					if passes > 20 {
						t.Fatalf("no end:\n%s", strings.Join(j.lines(), "\n"))
					}
					before := len(j.records)
					err := j.pass(t.Context(), asking(left(j), set, "pay", "look", "put"), j.turn(), max(k-n, 0), keep)
					n += len(j.records) - before
					var w *runs.WaitError
					switch {
					case errors.Is(err, errCrash):
						crashed, n = true, 1000
					case errors.As(err, &w):
						n -= len(w.Questions)
						if crashed {
							n = 1000
						}
						for _, q := range w.Questions {
							if c.runs[q.ToolCallID] != 0 || j.started[q.ToolCallID] != "" {
								t.Errorf("%s ran before it was approved", q.ToolCallID)
							}
							j.say(q.ID, yes())
						}
					case err != nil:
						t.Fatal(err)
					}
					if err == nil {
						break
					}
				}
				asked := slices.Sorted(slices.Values(j.asked()))
				if !slices.Equal(asked, []string{"approve/a", "approve/b", "approve/c", "approve/d"}) {
					t.Errorf("asked %v", asked)
				}
				if c.runs["a"] != 1 || c.runs["b"] < 1 || c.runs["c"] < 1 || c.runs["d"] < 1 || j.last().Text != "all done" {
					t.Errorf("ran %v:\n%s", c.runs, strings.Join(j.lines(), "\n"))
				}
			})
		}
	}
}

// A call that may act only once and was cut off is in doubt: no second approval
// makes it run again.
func TestApprovedOnceCallInDoubt(t *testing.T) {
	var c counter
	j := newJournal("go")
	l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "1")), llmtest.Say("ok")), c.set(t), "*")
	until(t, j.run(t, l))
	j.say("approve/a", yes())
	if err := j.pass(t.Context(), l, j.turn(), 1, false); !errors.Is(err, errCrash) { // the result is lost
		t.Fatal(err)
	}
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	if got := j.lines()[len(j.lines())-2]; !strings.HasPrefix(got, "1 a false interrupted, outcome unknown") || c.runs["a"] != 1 {
		t.Errorf("%s, ran %v", got, c.runs)
	}
}

func TestPromptError(t *testing.T) {
	var c counter
	script := llmtest.NewScript(llmtest.Say("ok"))
	l := loop(script, c.set(t))
	own := &runs.Error{Code: runs.CodePrompt, Text: "line 3", Say: "The prompt is broken."}
	for _, cause := range []error{errors.New("line 3: unknown name user.nmae"), own} {
		l.Prompt = func(*runs.Turn) (string, error) { return "half a prompt", cause }
		var got *runs.Error
		err := newJournal("go").run(t, l)
		if !errors.As(err, &got) || got.Code != runs.CodePrompt || !errors.Is(err, cause) || errors.Is(cause, own) && got.Say == "" {
			t.Errorf("%v", err)
		}
	}
	if len(script.Requests()) != 0 {
		t.Error("the model was asked")
	}
	size := l.Measure(newJournal("hi").turn())
	if size.System != 0 || size.Conversation == 0 {
		t.Errorf("%+v", size)
	}
	j := talk(20, 500)
	l.Model = func(claybot.Agent) llm.Model { return llmtest.NewScript(llmtest.Say("short")) }
	n := 0
	for r, err := range l.Compact(t.Context(), j.turn()) {
		if err != nil || r.Text != "short" {
			t.Errorf("%+v, %v", r, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d records", n)
	}
}
