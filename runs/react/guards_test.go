package react_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/tools"
)

// Whatever becomes of a call, the sixth time that it comes to the same ends the
// run; so does the sixth time of the same two calls.
func TestSixthRepeatEnds(t *testing.T) {
	one := func(name, word string) func(int) claybot.ToolCall {
		return func(i int) claybot.ToolCall { return call(fmt.Sprint("c", i), name, word) }
	}
	two := func(x, y func(int) claybot.ToolCall) func(int) claybot.ToolCall {
		return func(i int) claybot.ToolCall {
			if i%2 == 0 {
				return x(i)
			}
			return y(i)
		}
	}
	blanks := func(i int) claybot.ToolCall {
		return claybot.ToolCall{ID: fmt.Sprint("c", i), Name: "look", Args: strings.Repeat(" ", i) + `{"word":"x"}`}
	}
	for _, tt := range []struct {
		name  string
		next  func(i int) claybot.ToolCall
		rules react.Rules
		dry   bool
		want  int // results
	}{
		{"works", one("look", "x"), react.Rules{}, false, 6},
		{"with other blanks", blanks, react.Rules{}, false, 6},
		{"acts", one("put", "x"), react.Rules{}, false, 6},
		{"fails", one("broken", "x"), react.Rules{}, false, 6},
		{"is refused", one("pay", "x"), react.Rules{Ask: []string{"pay"}}, false, 6},
		{"is dry", one("pay", "x"), react.Rules{}, true, 6},
		{"two that work", two(one("look", "x"), one("look", "y")), react.Rules{}, false, 12},
		{"one works, one fails", two(one("look", "x"), one("broken", "y")), react.Rules{}, false, 12},
		{"one works, one is refused", two(one("look", "x"), one("pay", "y")), react.Rules{Ask: []string{"pay"}}, false, 12},
		{"one works, one is unknown", two(one("look", "x"), one("none", "y")), react.Rules{}, false, 12},
	} {
		var c counter
		var replies []llmtest.Reply
		for i := range 40 {
			replies = append(replies, llmtest.Use(tt.next(i)))
		}
		j := newJournal("go")
		j.nobody = true
		l := loop(llmtest.NewScript(replies...), c.set(t))
		l.Approve = func(claybot.Agent) react.Rules { return tt.rules }
		l.Dry = func(claybot.Agent) bool { return tt.dry }
		err := j.run(t, l)
		if got := results(j); code(err) != runs.CodeRepeating || len(got) != tt.want {
			t.Errorf("%s: %v after %d results", tt.name, err, len(got))
		}
	}
}

// results are the results in the history by the ids of their calls.
func results(j *journal) map[string]claybot.Record {
	all := make(map[string]claybot.Record)
	for _, r := range j.records {
		if r.Type == claybot.RecordTool {
			all[r.ToolCallID] = r
		}
	}
	return all
}

// Beyond a budget each call has its result, which says so, and the model may
// answer once more.
func TestToolBudgets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits tools.Limits
		before int64 // milliseconds that a call before took
		last   llmtest.Reply
		want   string // the code of the end
		over   string
	}{
		{"output, it answers", tools.Limits{Output: 6}, 0, llmtest.Say("done"), "", "6 bytes"},
		{"output, it goes on", tools.Limits{Output: 6}, 0, llmtest.Use(call("e", "look", "5")), runs.CodeToolBudget, "6 bytes"},
		{"time, it answers", tools.Limits{Time: time.Minute}, 60_000, llmtest.Say("done"), "", "1m0s"},
		{"the default time", tools.Limits{}, 2 * 3600 * 1000, llmtest.Use(call("e", "look", "5")), runs.CodeToolBudget, "2h0m0s"},
	} {
		var c counter
		j := newJournal("go")
		j.records = append(j.records,
			claybot.Record{Type: claybot.RecordAssistant, Run: runID, Step: 1, ToolCalls: []claybot.ToolCall{call("z", "look", "0")}},
			claybot.Record{Type: claybot.RecordTool, Run: runID, Step: 1, ToolCallID: "z", Name: "look", OK: true, Text: "look 0", MS: tt.before})
		l := loop(llmtest.NewScript(llmtest.Use(call("c", "pay", "3"), call("d", "look", "4")), tt.last), c.set(t))
		l.Limits = func(claybot.Agent) tools.Limits { return tt.limits }
		err := j.run(t, l)
		got := results(j)
		if (err == nil) != (tt.want == "") || err != nil && code(err) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		for id, r := range got {
			if id != "z" && (r.OK || !strings.Contains(r.Text, "have") || !strings.Contains(r.Text, tt.over)) {
				t.Errorf("%s: %s is %v %s", tt.name, id, r.OK, r.Text)
			}
		}
		want := 3
		if tt.want != "" {
			want = 4
		}
		if len(got) != want || len(c.runs) > 0 {
			t.Errorf("%s: %d results, ran %v", tt.name, len(got), c.runs)
		}
	}
}

// Whatever a model writes, each call has exactly one result in history, and it
// is not asked to mend its calls more often than three times.
func TestBadCalls(t *testing.T) {
	many := make([]claybot.ToolCall, 100)
	for i := range many {
		many[i] = call(fmt.Sprint("m", i), "look", fmt.Sprint(i))
	}
	raw := func(id, name, args string) claybot.ToolCall { return claybot.ToolCall{ID: id, Name: name, Args: args} }
	huge := `{"word":"` + strings.Repeat("a", 5<<20) + `"}`
	for _, tt := range []struct {
		name  string
		calls []claybot.ToolCall
		bad   bool // all of them are malformed
		ran   int
	}{
		{"cut JSON", []claybot.ToolCall{raw("a", "look", `{"word":"x`)}, true, 0},
		{"no JSON", []claybot.ToolCall{raw("a", "look", `word=x`)}, true, 0},
		{"no object", []claybot.ToolCall{raw("a", "look", `"x"`)}, true, 0},
		{"member twice", []claybot.ToolCall{raw("a", "look", `{"word":"x","word":"y"}`)}, true, 0},
		{"wrong type", []claybot.ToolCall{raw("a", "look", `{"word":1}`)}, true, 0},
		{"unknown tool", []claybot.ToolCall{call("a", "none", "x")}, true, 0},
		{"no name", []claybot.ToolCall{raw("a", "", `{}`)}, true, 0},
		{"5 MiB of arguments", []claybot.ToolCall{raw("a", "look", huge)}, true, 0},
		{"no ids", []claybot.ToolCall{call("", "look", "x"), call("", "look", "y")}, false, 2},
		{"ids twice", []claybot.ToolCall{call("a", "look", "x"), call("a", "put", "y"), call("a", "none", "z")}, false, 2},
		{"100 at once", many, false, tools.DefaultStepCalls},
		{"good and bad", []claybot.ToolCall{raw("a", "look", `{`), call("b", "look", "x"), call("c", "none", "")}, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c counter
			j := newJournal("go")
			if err := j.run(t, loop(llmtest.NewScript(llmtest.Use(tt.calls...), llmtest.Say("done")), c.set(t))); err != nil {
				t.Fatal(err)
			}
			oneResultEach(t, j)
			if len(c.runs) != tt.ran {
				t.Errorf("ran %d, want %d", len(c.runs), tt.ran)
			}
			if !tt.bad {
				return
			}
			again := newJournal("go")
			var replies []llmtest.Reply
			for i := range 10 {
				replies = append(replies, llmtest.Use(tt.calls...))
				if tt.calls[0].Name == "look" && i%2 == 1 { // another mistake each time, so that it is not a repetition
					replies[i] = llmtest.Use(raw("a", "look", fmt.Sprint(`{"word":`, i)))
				}
			}
			err := again.run(t, loop(llmtest.NewScript(replies...), c.set(t)))
			if code(err) != runs.CodeBadCalls || len(results(again)) != 4 {
				t.Errorf("%v after %d rounds", err, len(results(again)))
			}
			oneResultEach(t, again)
		})
	}
}

// oneResultEach checks that each call of a history has one result, and no result
// is of another call.
func oneResultEach(t *testing.T, j *journal) {
	t.Helper()
	got := make(map[string]int)
	for _, r := range j.records {
		for _, c := range r.ToolCalls {
			if _, twice := got[c.ID]; twice || c.ID == "" {
				t.Errorf("the id %q is there twice", c.ID)
			}
			got[c.ID] += 0
		}
		if r.Type == claybot.RecordTool {
			got[r.ToolCallID]++
		}
	}
	for id, n := range got {
		if n != 1 {
			t.Errorf("call %s has %d results", id, n)
		}
	}
}
