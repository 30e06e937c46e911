package react_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/tools"
)

// requiring is a loop that pushes back n answers without a call.
func requiring(t *testing.T, m llm.Model, n int) *react.Loop {
	t.Helper()
	s, err := tools.NewSet(tools.Finisher(), tools.New(tools.Spec{Tool: llm.Tool{Name: "look"}, Effect: tools.ReadOnly}, looks))
	if err != nil {
		t.Fatal(err)
	}
	l := loop(m, s.Only([]string{"look"}))
	l.RequireTool = func(claybot.Agent) int { return n }
	return l
}

func looks(_ context.Context, _ tools.Env, in word) (tools.Result, error) {
	return tools.Result{Text: "seen " + in.Word}, nil
}

func finish(note string) llmtest.Reply {
	return llmtest.Use(claybot.ToolCall{ID: "f", Name: tools.Finish, Args: fmt.Sprintf(`{"note":%q}`, note)})
}

// short are the lines of a journal with what the model reads about answers without calls in one word.
func short(j *journal) (lines []string) {
	for i, r := range j.records {
		line := j.lines()[i]
		if r.Kind == claybot.KindPushBack {
			line = "pushed back"
		}
		lines = append(lines, line)
	}
	return lines
}

// An answer without a call is pushed back as often as the profile says, however the run is cut off: the
// records count.
func TestRequireTool(t *testing.T) {
	say, look := llmtest.Say, llmtest.Use(call("a", "look", "x"))
	asked, made := "user_message go", "1 assistant  [a look {\"word\":\"x\"}]"
	ended := func(step int, note string) []string {
		return []string{fmt.Sprintf(`%d assistant  [f finish {"note":%q}]`, step, note), fmt.Sprintf("%d f true %s", step, note), fmt.Sprintf("%d assistant %s", step+1, note)}
	}
	tests := []struct {
		name    string
		n       int
		replies []llmtest.Reply
		want    []string
	}{
		{"off", 0, []llmtest.Reply{say("I will look")}, []string{asked, "1 assistant I will look"}},
		{"twice", 2, []llmtest.Reply{say("I will look"), say("soon"), say("now")}, []string{asked, "1 assistant I will look", "pushed back", "2 assistant soon", "pushed back", "3 assistant now"}},
		{"between calls", 1, []llmtest.Reply{look, say("seen"), say("all")}, []string{asked, made, "1 a true seen x", "2 assistant seen", "pushed back", "3 assistant all"}},
		{"finished", 3, []llmtest.Reply{finish("done")}, append([]string{asked}, ended(1, "done")...)},
		{"finished later", 1, []llmtest.Reply{say("well"), finish("done")}, append([]string{asked, "1 assistant well", "pushed back"}, ended(2, "done")...)},
		{"finished without a note", 0, []llmtest.Reply{finish(" "), say("done")}, []string{asked, `1 assistant  [f finish {"note":" "}]`, "1 f false error: field note: must not be empty", "2 assistant done"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rest := func(j *journal) *llmtest.Script {
				n := 0
				for _, r := range j.records {
					if r.Type == claybot.RecordAssistant {
						n++
					}
				}
				return llmtest.NewScript(tt.replies[min(n, len(tt.replies)):]...)
			}
			for k := range len(tt.want) { // 0: without a crash
				for _, kept := range []bool{true, false} {
					j := newJournal("go")
					if err := j.pass(t.Context(), requiring(t, rest(j), tt.n), j.turn(), k, kept); err != nil && !errors.Is(err, errCrash) {
						t.Fatal(err)
					}
					script := rest(j)
					if err := j.run(t, requiring(t, script, tt.n)); err != nil {
						t.Fatal(err)
					}
					wantLines(t, short(j), tt.want)
				}
			}
		})
	}
}

// A note is the answer, also where that is to be JSON: without a fence around it.
func TestNoteInAFormat(t *testing.T) {
	const fenced = "```json\n{\"n\":1}\n```"
	for _, tt := range []struct {
		format *claybot.AnswerFormat
		want   string
	}{{&claybot.AnswerFormat{}, `{"n":1}`}, {nil, fenced}} {
		j := newJournal("go")
		j.messages = []claybot.AgentMessage{{Format: tt.format}}
		if err := j.run(t, requiring(t, llmtest.NewScript(finish(fenced)), 0)); err != nil || j.last().Text != tt.want {
			t.Errorf("%v, %v; want %s", err, j.lines(), tt.want)
		}
	}
}

// What the model is told comes behind its answer, and names the tool.
func TestPushedBackAnswerIsRead(t *testing.T) {
	j := newJournal("go")
	script := llmtest.NewScript(llmtest.Say("I will"), finish("done"))
	if err := j.run(t, requiring(t, script, 1)); err != nil {
		t.Fatal(err)
	}
	read := script.Requests()[1].Messages
	last := read[len(read)-1]
	if kind, _ := llm.SystemKind(last.Content); kind != claybot.KindPushBack || !strings.Contains(last.Content, tools.Finish) || read[len(read)-2].Content != "I will" {
		t.Errorf("the model reads %+v", read)
	}
}

// A run that may not go on pushes nothing back, and can always finish: what it said is the answer.
func TestPushBackEndsNoRun(t *testing.T) {
	t.Run("steps", func(t *testing.T) {
		j := newJournal("go")
		l := requiring(t, llmtest.NewScript(llmtest.Say("one"), llmtest.Say("two")), 5)
		l.MaxSteps = func(claybot.Agent) int { return 2 }
		if err := j.run(t, l); err != nil {
			t.Fatal(err)
		}
		wantLines(t, short(j), []string{"user_message go", "1 assistant one", "pushed back", "2 assistant two"})
	})
	t.Run("calls", func(t *testing.T) {
		j := newJournal("go")
		l := requiring(t, llmtest.NewScript(llmtest.Use(call("a", "look", "x")), finish("done")), 5)
		l.Limits = func(claybot.Agent) tools.Limits { return tools.Limits{RunCalls: 1} }
		if err := j.run(t, l); err != nil || j.last().Text != "done" {
			t.Errorf("%v, %v", err, j.lines())
		}
	})
	t.Run("skill", func(t *testing.T) { // which narrows the tools
		j := newJournal("go")
		j.records = append(j.records,
			claybot.Record{Type: claybot.RecordAssistant, Run: runID, Step: 1, ToolCalls: []claybot.ToolCall{call("a", "look", "x")}},
			claybot.Record{Type: claybot.RecordTool, Run: runID, Step: 1, ToolCallID: "a", OK: true, Only: []string{"look"}})
		if err := j.run(t, requiring(t, llmtest.NewScript(finish("done")), 1)); err != nil || j.last().Text != "done" {
			t.Errorf("%v, %v", err, j.lines())
		}
	})
	t.Run("permissions", func(t *testing.T) {
		j := newJournal("go")
		l := requiring(t, llmtest.NewScript(finish("done")), 1)
		of := l.Tools
		l.Tools = func(a claybot.Agent) *tools.Set {
			return of(a).Permitted(func() tools.Permit { return func(tools.Spec, json.RawMessage) error { return errors.New("no") } })
		}
		names := func(all []llm.Tool) (names []string) {
			for _, tool := range all {
				names = append(names, tool.Name)
			}
			return names
		}
		if got := names(l.Tools(claybot.Agent{}).Tools()); !slices.Equal(got, []string{tools.Finish}) {
			t.Errorf("tools %v", got)
		}
		if err := j.run(t, l); err != nil || j.last().Text != "done" {
			t.Errorf("%v, %v", err, j.lines())
		}
	})
}

// A note beside other calls would hide what came of them: finish runs only alone.
func TestFinishRunsAlone(t *testing.T) {
	end := claybot.ToolCall{ID: "f", Name: tools.Finish, Args: `{"note":"done"}`}
	const alone = "1 f false error: not run: call finish alone, after you have read the results of the other calls"
	for name, tt := range map[string]struct {
		calls []claybot.ToolCall
		want  []string
	}{
		"behind a call that fails": {[]claybot.ToolCall{call("a", "gone", "x"), end}, []string{`1 a false error: unknown tool "gone"`, alone}},
		"before a call":            {[]claybot.ToolCall{end, call("a", "look", "x")}, []string{alone, "1 a true seen x"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal("go")
			if err := j.run(t, requiring(t, llmtest.NewScript(llmtest.Use(tt.calls...), llmtest.Use(claybot.ToolCall{ID: "g", Name: tools.Finish, Args: `{"note":"it failed"}`})), 1)); err != nil {
				t.Fatal(err)
			}
			got := j.lines()[2:4]
			if !strings.HasPrefix(got[0], tt.want[0]) || !strings.HasPrefix(got[1], tt.want[1]) || j.last().Text != "it failed" {
				t.Errorf("got\n%s", strings.Join(j.lines(), "\n"))
			}
		})
	}
}

// An answer in a format is what was asked for, so it is not pushed back.
func TestFormatIsNotPushedBack(t *testing.T) {
	j := newJournal("go")
	j.messages = []claybot.AgentMessage{{Format: &claybot.AnswerFormat{}}}
	if err := j.run(t, requiring(t, llmtest.NewScript(llmtest.Say(`{"n":1}`)), 3)); err != nil {
		t.Fatal(err)
	}
	wantLines(t, short(j), []string{"user_message go", `1 assistant {"n":1}`})
}

// No person is asked whether a run may end, whatever needs an approval.
func TestFinishNeedsNoApproval(t *testing.T) {
	j := newJournal("go")
	l := requiring(t, llmtest.NewScript(finish("done")), 1)
	l.Approve = func(claybot.Agent) react.Rules { return react.Rules{Ask: []string{"*"}} }
	if err := j.run(t, l); err != nil || j.last().Text != "done" {
		t.Errorf("%v, %v", err, j.lines())
	}
}
