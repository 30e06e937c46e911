package react_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// askers are tools that wait for the answer named by their call: ask repeats
// safely, peek is read-only and runs beside others, risk may act only once.
func askers(t testing.TB, j *journal, c *counter) *tools.Set {
	t.Helper()
	c.runs = map[string]int{}
	tool := func(name string, e tools.Effect, wait bool) tools.Tool {
		spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: e}
		return tools.New(spec, func(_ context.Context, env tools.Env, _ word) (tools.Result, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.runs[env.CallID]++
			id := claybot.MessageID("answer/" + env.CallID)
			if answer, there := j.answers[id]; there || !wait {
				return tools.Result{Text: name + " " + answer}, nil
			}
			return tools.Result{Wait: &claybot.Awaiting{Answers: []claybot.MessageID{id}, Until: 9}}, nil
		})
	}
	s, err := tools.NewSet(tool("ask", tools.Idempotent, true), tool("peek", tools.ReadOnly, true), tool("look", tools.ReadOnly, false),
		tool("risk", tools.Once, true), tool("pay", tools.Once, false))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until returns what a pass waits for, empty when it ended otherwise.
func until(t testing.TB, err error) claybot.MessageID {
	t.Helper()
	var w *runs.WaitError
	if !errors.As(err, &w) {
		return ""
	}
	if len(w.Answers) != 1 || w.Until != 9 {
		t.Errorf("waits for %+v", w.Awaiting)
	}
	return w.Answers[0]
}

func TestWaitingCallEndsThePass(t *testing.T) {
	var c counter
	j := newJournal("go")
	set := askers(t, j, &c)
	script := llmtest.NewScript(llmtest.Use(call("p", "pay", ""), call("a", "ask", ""), call("q", "pay", "")), llmtest.Say("all done"))
	l := loop(script, set)
	for range 2 { // woken for nothing, it goes on waiting
		if got := until(t, j.run(t, l)); got != "answer/a" {
			t.Fatalf("waits for %q", got)
		}
		wantLines(t, j.lines()[2:], []string{"1 p true pay "})
	}
	j.answers["answer/a"] = "yes"
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j.lines()[2:], []string{"1 p true pay ", "1 a true ask yes", "1 q true pay ", "2 assistant all done"})
	if c.runs["p"] != 1 || c.runs["a"] != 3 || c.runs["q"] != 1 || len(j.started) != 3 || j.usage.ToolCalls != 3 {
		t.Errorf("ran %v, started %v, usage %+v", c.runs, j.started, j.usage)
	}
}

// Results in front of a waiting call are kept; what ran behind it has no effect
// and runs again.
func TestWaitInAGroup(t *testing.T) {
	var c counter
	j := newJournal("go")
	set := askers(t, j, &c)
	script := llmtest.NewScript(llmtest.Use(call("a", "look", ""), call("b", "peek", ""), call("c", "look", ""), call("d", "peek", "")), llmtest.Say("ok"))
	l := loop(script, set)
	for _, step := range []struct {
		waits claybot.MessageID
		lines []string
	}{
		{"answer/b", []string{"1 a true look "}},
		{"answer/d", []string{"1 a true look ", "1 b true peek 1", "1 c true look "}},
		{"", []string{"1 a true look ", "1 b true peek 1", "1 c true look ", "1 d true peek 1", "2 assistant ok"}},
	} {
		err := j.run(t, l)
		if got := until(t, err); got != step.waits || got == "" && err != nil {
			t.Fatalf("waits for %q, %v", got, err)
		}
		wantLines(t, j.lines()[2:], step.lines)
		j.answers[step.waits] = "1"
	}
	if j.usage.ToolCalls != 4 {
		t.Errorf("usage %+v", j.usage)
	}
}

func TestOnceMustNotWait(t *testing.T) {
	var c counter
	j := newJournal("go")
	l := loop(llmtest.NewScript(llmtest.Use(call("a", "risk", "")), llmtest.Say("ok")), askers(t, j, &c))
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j.lines()[2:], []string{"1 a false error: risk failed inside; the operator's log has the details", "2 assistant ok"})
}

// A run that is stopped while it waits does not go on waiting.
func TestStoppedWhileWaiting(t *testing.T) {
	stopped := errors.New("stopped by the user")
	ctx, cancel := context.WithCancelCause(t.Context())
	j := newJournal("go")
	set, err := tools.NewSet(tools.New(tools.Spec{Tool: llm.Tool{Name: "ask"}, Effect: tools.Idempotent},
		func(context.Context, tools.Env, word) (tools.Result, error) {
			cancel(stopped)
			return tools.Result{Wait: &claybot.Awaiting{Answers: []claybot.MessageID{"a"}}}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.pass(ctx, loop(llmtest.NewScript(llmtest.Use(call("a", "ask", ""))), set), j.turn(), 0, true); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// waiting is a run that waits twice, among calls that must not be repeated.
var waiting = []llmtest.Reply{
	llmtest.Use(call("a", "look", ""), call("b", "peek", ""), call("c", "pay", "")),
	llmtest.Use(call("d", "pay", ""), call("e", "ask", ""), call("f", "pay", "")),
	llmtest.Say("all done"),
}

func TestCrashAtEveryStepOfAWait(t *testing.T) {
	const total = 9
	for _, keep := range []bool{true, false} {
		for k := 1; k <= total; k++ {
			var c counter
			j := newJournal("go")
			set := askers(t, j, &c)
			count, waits := 0, 0
			for done := false; !done; {
				n := 0
				if count < k {
					n = k - count
				}
				before := len(j.records)
				answers := 0
				for _, r := range j.records {
					if r.Type == claybot.RecordAssistant {
						answers++
					}
				}
				err := j.pass(t.Context(), loop(llmtest.NewScript(waiting[answers:]...), set), j.turn(), n, keep)
				count += len(j.records) - before
				switch {
				case errors.Is(err, errCrash):
					count = k
				case until(t, err) != "":
					waits++
					j.answers[until(t, err)] = "1"
				case err != nil:
					t.Fatalf("k=%d: %v", k, err)
				default:
					done = true
				}
			}
			checkWait(t, k, keep, j, &c)
			if waits != 2 {
				t.Errorf("k=%d: waited %d times", k, waits)
			}
		}
	}
}

func checkWait(t *testing.T, k int, keep bool, j *journal, c *counter) {
	t.Helper()
	results := map[string]int{}
	for _, r := range j.records {
		if r.Type != claybot.RecordTool {
			continue
		}
		results[r.ToolCallID]++
		if !r.OK && (keep || !strings.HasPrefix(r.Text, "interrupted")) {
			t.Errorf("k=%d: %+v", k, r)
		}
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if results[id] != 1 {
			t.Errorf("k=%d: call %s has %d results", k, id, results[id])
		}
	}
	for _, id := range []string{"c", "d", "f"} {
		if c.runs[id] != 1 {
			t.Errorf("k=%d: pay %s ran %d times", k, id, c.runs[id])
		}
	}
	if j.last().Text != "all done" || len(j.started) != 6 {
		t.Errorf("k=%d: started %v, ended with\n%s", k, j.started, strings.Join(j.lines(), "\n"))
	}
}

func TestLongResultIsSaved(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	set, err := tools.NewSet(tools.New(tools.Spec{Tool: llm.Tool{Name: "read"}}, func(context.Context, tools.Env, word) (tools.Result, error) {
		return tools.Result{Text: long}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	j := newJournal("go")
	script := llmtest.NewScript(llmtest.Use(call("a", "read", "")), llmtest.Say("ok"))
	if err := j.run(t, loop(script, set)); err != nil {
		t.Fatal(err)
	}
	r := j.records[2]
	if j.saved["a"] != long || r.Saved != "results/a.txt" || !strings.Contains(r.Text, "is in results/a.txt]") || len(r.Text) > 20<<10 {
		t.Errorf("%d bytes saved, path %q, %d bytes recorded", len(j.saved["a"]), r.Saved, len(r.Text))
	}
	if got := script.Requests()[1].Messages[2].Content; got != r.Text {
		t.Errorf("the model reads %d bytes, recorded are %d", len(got), len(r.Text))
	}
}
