package react_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/tools"
)

func TestAnswers(t *testing.T) {
	stop := func(text string, s llm.Stop) llmtest.Reply {
		return llmtest.Reply{Response: llm.Response{Text: text, Stop: s, Model: "m", Usage: claybot.Usage{Input: 10, Output: 2, LLMCalls: 1}}}
	}
	refused := llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "no"}}
	tests := []struct {
		name    string
		replies []llmtest.Reply
		want    string
		calls   int64
	}{
		{"plain", []llmtest.Reply{stop("hello", llm.StopEnd)}, "hello", 1},
		{"unknown reason", []llmtest.Reply{stop("hello", "eos")}, "hello", 1},
		{"empty", []llmtest.Reply{stop("", llm.StopEnd)}, "The model gave an empty answer. Please ask again, perhaps in other words.", 1},
		{"blank", []llmtest.Reply{stop(" \n", llm.StopEnd)}, "The model gave an empty answer. Please ask again, perhaps in other words.", 1},
		{"tools promised, none made", []llmtest.Reply{stop("", llm.StopTools)}, "The model gave an empty answer. Please ask again, perhaps in other words.", 1},
		{"filtered", []llmtest.Reply{stop("", llm.StopFilter)}, "The model's provider withheld the answer (content filter).", 1},
		{"filtered half way", []llmtest.Reply{stop("I", llm.StopFilter)}, "I\n\n[ended by the content filter of the model's provider]", 1},
		{"cut, empty", []llmtest.Reply{stop("", llm.StopLength)}, "The model reached its length limit before it said anything. A shorter question may help.", 1},
		{"continued", []llmtest.Reply{stop("one ", llm.StopLength), stop("two", llm.StopEnd)}, "one two", 2},
		{"cut again", []llmtest.Reply{stop("one ", llm.StopLength), stop("two", llm.StopLength)}, "one two\n\n[cut off: the model reached its length limit]", 2},
		{"not continued", []llmtest.Reply{stop("one", llm.StopLength), refused}, "one\n\n[cut off: the model reached its length limit]", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := newJournal("hi")
			if err := j.run(t, loop(llmtest.NewScript(tt.replies...), nil)); err != nil {
				t.Fatal(err)
			}
			r := j.last()
			if len(j.records) != 2 || r.Text != tt.want || r.Step != 1 || r.Run != runID || r.At == 0 || r.Model != "m" || r.Stop == "" {
				t.Errorf("record %+v, want text %q", r, tt.want)
			}
			want := claybot.Usage{Input: 10 * tt.calls, Output: 2 * tt.calls, LLMCalls: tt.calls}
			if j.usage != want || *r.Tokens != want {
				t.Errorf("usage %+v, record %+v, want %+v", j.usage, *r.Tokens, want)
			}
		})
	}
}

func TestDeltasGrow(t *testing.T) {
	j := newJournal("hi")
	var c counter
	cut := llmtest.Reply{Response: llm.Response{Text: "abcd", Stop: llm.StopLength}}
	l := loop(llmtest.NewScript(llmtest.Use(call("a", "look", "")), cut, llmtest.Say("ef")), c.set(t))
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j.deltas, []string{"2:ab", "2:abcd", "2:abcde", "2:abcdef"})
}

// restless is a model that begins its answer anew, as a client does on a retry.
type restless struct{}

func (restless) Chat(_ context.Context, r llm.Request) (llm.Response, error) {
	r.Delta(0, "wrong ")
	r.Delta(6, "start")
	r.Delta(0, "right")
	r.Delta(5, " one")
	return llm.Response{Text: "right one", Stop: llm.StopEnd}, nil
}

func TestDeltaStartsAgain(t *testing.T) {
	j := newJournal("hi")
	if err := j.run(t, loop(restless{}, nil)); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j.deltas, []string{"1:wrong ", "1:wrong start", "1:right", "1:right one"})
}

func TestRequests(t *testing.T) {
	j := newJournal("hi", "there")
	j.inject = [][]claybot.Record{{user("m3", "more")}}
	var c counter
	set := c.set(t)
	script := llmtest.NewScript(llmtest.Use(call("a", "look", "1")), llmtest.Say("ok"))
	l := loop(script, set)
	prompts := 0
	l.Prompt = func(t *runs.Turn) (string, error) {
		prompts++
		return fmt.Sprintf("prompt %d of %s, %s", prompts, t.Agent.ID, t.Run.ID), nil
	}
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	requests := script.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, r := range requests {
		if r.System != "prompt 1 of agent1, run1" || r.Agent != "agent1" || r.Run != runID || len(r.Tools) != 4 {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	var roles []string
	for _, m := range requests[1].Messages {
		roles = append(roles, string(m.Role)+" "+llm.Unwrap(m.Content))
	}
	wantLines(t, roles, []string{"user hi", "user there", "assistant ", "tool look 1", "user more"})
	if j.usage.ToolCalls != 1 || j.usage.LLMCalls != 2 {
		t.Errorf("usage %+v", j.usage)
	}
	if j.started["a"] != "readOnly" {
		t.Errorf("started %v", j.started)
	}
}

// A message that is the command of a skill uses it before the model is called, once, wherever the
// run broke; the limit of steps is that of the model's answers.
func TestSkillCommand(t *testing.T) {
	type input struct {
		Name string `json:"name"`
	}
	use := tools.New(tools.Spec{Tool: llm.Tool{Name: tools.UseSkill}, Effect: tools.ReadOnly}, func(_ context.Context, _ tools.Env, in input) (tools.Result, error) {
		return tools.Result{Text: "how to " + in.Name, Only: []string{tools.UseSkill}}, nil
	})
	for k := range 4 {
		for _, durable := range []bool{false, true} {
			set, err := tools.NewSet(use)
			if err != nil {
				t.Fatal(err)
			}
			j := newJournal("/invoices for ACME")
			turn := func() *runs.Turn {
				x := j.turn()
				x.Messages = []claybot.AgentMessage{{ID: "m1", Type: claybot.MessageUser, Skill: "invoices"}}
				return x
			}
			script := llmtest.NewScript(llmtest.Say("done"), llmtest.Say("done"))
			l := loop(script, set)
			l.MaxSteps = func(claybot.Agent) int { return 1 }
			if k > 0 {
				if err := j.pass(t.Context(), l, turn(), k, durable); !errors.Is(err, errCrash) {
					t.Fatalf("crash at record %d: %v", k, err)
				}
			}
			if !durable || k < 3 { // the run had not ended
				if err := j.pass(t.Context(), l, turn(), 0, true); err != nil {
					t.Fatalf("after a crash at record %d, durable %v: %v", k, durable, err)
				}
			}
			if len(j.records) != 4 || len(j.records[1].ToolCalls) != 1 || j.records[2].Text != "how to invoices" || j.records[3].Text != "done" {
				t.Errorf("crash at record %d, durable %v: %+v", k, durable, j.records)
			}
			var chat []string
			for _, m := range script.Requests()[0].Messages {
				chat = append(chat, string(m.Role)+" "+llm.Unwrap(m.Content))
			}
			wantLines(t, chat, []string{"user /invoices for ACME", "assistant ", "tool how to invoices"})
		}
	}
}

func TestCallsAreRepaired(t *testing.T) {
	j := newJournal("hi")
	var c counter
	set := c.set(t)
	giant := claybot.ToolCall{ID: "", Name: strings.Repeat("n", 500), Args: `{"word":"` + strings.Repeat("x", 2<<20) + `"}`}
	script := llmtest.NewScript(
		llmtest.Use(call("", "look", "1"), call("same", "look", "2"), call("same", "look", "3")),
		llmtest.Use(call("same", "look", "4"), giant),
		llmtest.Say("ok"),
	)
	if err := j.run(t, loop(script, set)); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, r := range j.records {
		if r.Type == claybot.RecordTool {
			ids[r.ToolCallID] = true
		}
		for _, call := range r.ToolCalls {
			if len(call.Args) > 2000 || len(call.Name) > 64 || call.ID == "" {
				t.Errorf("recorded call %.100v", call)
			}
		}
	}
	if len(ids) != 5 {
		t.Errorf("results of %v", ids)
	}
}

func TestLimitsOfCalls(t *testing.T) {
	j := newJournal("hi")
	var c counter
	set := c.set(t)
	many := func(step int) llmtest.Reply {
		var calls []claybot.ToolCall
		for i := range 70 {
			calls = append(calls, call(fmt.Sprintf("c%d.%d", step, i), "look", fmt.Sprintf("%d %d", step, i)))
		}
		return llmtest.Use(calls...)
	}
	if err := j.run(t, loop(llmtest.NewScript(many(1), many(2), many(3), llmtest.Say("ok")), set)); err != nil {
		t.Fatal(err)
	}
	ok, step, run := 0, 0, 0
	for _, r := range j.records {
		switch {
		case r.Type != claybot.RecordTool:
		case r.OK:
			ok++
		case strings.Contains(r.Text, "at most 64 calls in one answer"):
			step++
		case strings.Contains(r.Text, "at most 200 calls in one run"):
			run++
		}
	}
	if ok != 64+64+60 || step != 18 || run != 4 || len(c.runs) != ok || j.usage.ToolCalls != int64(ok) {
		t.Errorf("%d ran (%d counted, %+v), %d and %d refused", ok, len(c.runs), j.usage, step, run)
	}
}

func TestStuckRunsEnd(t *testing.T) {
	repeat := func(n int, of ...llmtest.Reply) []llmtest.Reply {
		var all []llmtest.Reply
		for i := range n {
			all = append(all, of[i%len(of)])
		}
		return all
	}
	look := func(w string) llmtest.Reply { return llmtest.Use(call("", "look", w)) }
	broken := llmtest.Use(call("", "broken", ""))
	bad := func(i int) llmtest.Reply { return llmtest.Use(call("", fmt.Sprintf("none%d", i), "")) }
	cut := llmtest.Use(claybot.ToolCall{Name: "look", Args: `{"word":`})
	var counting []llmtest.Reply
	for i := range 10 {
		counting = append(counting, look(fmt.Sprint(i)))
	}
	tests := []struct {
		name     string
		replies  []llmtest.Reply
		max      int
		code     string
		requests int
	}{
		{"same call", repeat(9, look("1")), 0, runs.CodeRepeating, 6},
		{"same call, failing", repeat(9, broken), 0, runs.CodeRepeating, 6},
		{"two in turn", repeat(20, look("1"), look("2")), 0, runs.CodeRepeating, 12},
		{"two in one answer", repeat(20, llmtest.Use(call("", "look", "1"), call("", "look", "2"))), 0, runs.CodeRepeating, 6},
		{"five times the same", append(repeat(5, look("1")), look("2"), llmtest.Say("ok")), 0, "", 7},
		{"unknown tools", []llmtest.Reply{bad(1), bad(2), bad(3), bad(4), bad(5)}, 0, runs.CodeBadCalls, 4},
		{"cut arguments", repeat(9, cut), 0, runs.CodeBadCalls, 4},
		{"a good round between", []llmtest.Reply{bad(1), bad(2), bad(3), look("1"), bad(4), bad(5), bad(6), llmtest.Say("ok")}, 0, "", 8},
		{"a good call between", []llmtest.Reply{bad(1), bad(2), bad(3), llmtest.Use(call("", "none", ""), call("", "look", "")), bad(4), llmtest.Say("ok")}, 0, "", 6},
		{"failing tools are not bad calls", []llmtest.Reply{broken, broken, broken, broken, broken, llmtest.Say("ok")}, 0, "", 6},
		{"steps", counting, 3, runs.CodeTooMany, 3},
		{"last step answers", []llmtest.Reply{look("1"), look("2"), llmtest.Say("ok")}, 3, "", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, every := range []int{0, 1} { // also when each record is a pass of its own
				var c counter
				j := newJournal("hi")
				script := llmtest.NewScript(tt.replies...)
				l := loop(script, c.set(t))
				l.MaxSteps = func(claybot.Agent) int { return tt.max }
				err := errCrash
				for errors.Is(err, errCrash) {
					err = j.pass(t.Context(), l, j.turn(), every, true)
				}
				if got := code(err); got != tt.code || len(script.Requests()) != tt.requests {
					t.Errorf("every %d: %v after %d requests, want %q after %d", every, err, len(script.Requests()), tt.code, tt.requests)
				}
			}
		})
	}
}

func TestDefaultMaxSteps(t *testing.T) {
	var replies []llmtest.Reply
	for i := range 70 {
		replies = append(replies, llmtest.Use(call("", "look", fmt.Sprint(i))))
	}
	var c counter
	j := newJournal("hi")
	script := llmtest.NewScript(replies...)
	if err := j.run(t, loop(script, c.set(t))); code(err) != runs.CodeTooMany || len(script.Requests()) != react.DefaultMaxSteps {
		t.Errorf("%v after %d requests", err, len(script.Requests()))
	}
}

// code is the code of an error of the loop.
func code(err error) string {
	var e *runs.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return "no code: " + err.Error()
	}
	return ""
}

// failing is a model that always fails.
type failing struct{ err error }

func (f failing) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{}, f.err
}

func TestModelErrors(t *testing.T) {
	tests := []struct {
		err  error
		want string
		text string
	}{
		{&llm.Error{Class: llm.Transient, Status: 503, Text: "overloaded"}, runs.CodeModel, "model: overloaded (HTTP 503)"},
		{&llm.Error{Class: llm.Rate, Status: 429, Text: "slow down"}, runs.CodeModel, "model: slow down (HTTP 429)"},
		{&llm.Error{Class: llm.Permanent, Status: 401, Text: "bad key"}, runs.CodeRefused, "model: bad key (HTTP 401)"},
		{&llm.Error{Class: llm.Permanent, Status: 500, Text: "do not retry"}, runs.CodeModel, "model: do not retry (HTTP 500)"},
		{fmt.Errorf("metered: %w", &llm.Error{Class: llm.Context, Text: "too long"}), runs.CodeContext, "model: too long"},
		{errors.New("secret"), runs.CodeModel, "the model failed with an error of type *errors.errorString"},
	}
	for _, tt := range tests {
		j := newJournal("hi")
		err := j.run(t, loop(failing{tt.err}, nil))
		if got := runs.Explain(err); got != (claybot.RunError{Code: tt.want, Text: tt.text}) || !errors.Is(err, tt.err) {
			t.Errorf("%v: %+v", tt.err, got)
		}
		if len(j.records) != 1 {
			t.Errorf("%v: records %v", tt.err, j.lines())
		}
	}
	j := newJournal("hi")
	if err := j.run(t, loop(nil, nil)); code(err) != runs.CodeNoModel {
		t.Errorf("without a model: %v", err)
	}
}

func TestErrorsOfTheTurn(t *testing.T) {
	disk := errors.New("disk full")
	for _, broken := range []string{"start", "inject"} {
		var c counter
		j := newJournal("hi")
		turn := j.turn()
		switch broken {
		case "start":
			runstest.Of(turn).StartedFunc = func(context.Context, claybot.ToolCall, string) error { return disk }
		case "inject":
			runstest.Of(turn).InjectFunc = func(context.Context) ([]claybot.Record, error) { return nil, disk }
		}
		l := loop(llmtest.NewScript(llmtest.Use(call("a", "pay", "1")), llmtest.Say("ok")), c.set(t))
		if err := j.pass(t.Context(), l, turn, 0, true); !errors.Is(err, disk) {
			t.Errorf("%s: %v", broken, err)
		}
		if ran := len(c.runs) > 0; ran == (broken == "start") {
			t.Errorf("%s: the tool ran: %v", broken, ran)
		}
	}
}

func TestEndOfContext(t *testing.T) {
	stopped := errors.New("stopped by the user")
	tests := []struct {
		name  string
		end   func(context.Context) (context.Context, context.CancelFunc)
		check func(error) bool
	}{
		{"canceled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(3*time.Second, func() { cancel(stopped) })
			return ctx, func() { timer.Stop(); cancel(nil) }
		}, func(err error) bool { return errors.Is(err, stopped) }},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, func(err error) bool { return code(err) == runs.CodeDeadline }},
	}
	for _, tt := range tests {
		for _, place := range []string{"model", "tool"} {
			t.Run(tt.name+" in the "+place, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := tt.end(t.Context())
					defer cancel()
					j := newJournal("hi")
					l, records := loop(hanging{}, nil), 1
					if place == "tool" {
						l, records = loop(llmtest.NewScript(llmtest.Use(claybot.ToolCall{ID: "a", Name: "hang"})), hangingTool(t)), 2
					}
					start := time.Now()
					err := j.pass(ctx, l, j.turn(), 0, true)
					if !tt.check(err) || time.Since(start) != 3*time.Second {
						t.Errorf("%v after %v", err, time.Since(start))
					}
					if len(j.records) != records { // what was cut short has no result
						t.Errorf("records %v", j.lines())
					}
				})
			})
		}
	}
}

type hanging struct{}

func (hanging) Chat(ctx context.Context, _ llm.Request) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, &llm.Error{Class: llm.Transient, Text: ctx.Err().Error()}
}

func hangingTool(t *testing.T) *tools.Set {
	s, err := tools.NewSet(tools.New(tools.Spec{Tool: llm.Tool{Name: "hang"}},
		func(ctx context.Context, _ tools.Env, _ struct{}) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Read-only neighbours run side by side, everything else alone; results come in
// the order of the calls.
func TestOrderOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type span struct {
			id       string
			from, to time.Duration
		}
		start := time.Now()
		spans := make(chan span, 10)
		tool := func(name string, e tools.Effect) tools.Tool {
			type input struct {
				Seconds int `json:"seconds"`
			}
			return tools.New(tools.Spec{Tool: llm.Tool{Name: name}, Effect: e},
				func(_ context.Context, env tools.Env, in input) (tools.Result, error) {
					from := time.Since(start)
					time.Sleep(time.Duration(in.Seconds) * time.Second)
					spans <- span{env.CallID, from, time.Since(start)}
					return tools.Result{}, nil
				})
		}
		set, err := tools.NewSet(tool("read", tools.ReadOnly), tool("act", tools.Once))
		if err != nil {
			t.Fatal(err)
		}
		c := func(id, name string, seconds int) claybot.ToolCall {
			return claybot.ToolCall{ID: id, Name: name, Args: fmt.Sprintf(`{"seconds":%d}`, seconds)}
		}
		j := newJournal("hi")
		script := llmtest.NewScript(llmtest.Use(c("a", "act", 1), c("b", "read", 3), c("c", "read", 2), c("d", "act", 1), c("e", "act", 1)), llmtest.Say("ok"))
		if err := j.run(t, loop(script, set)); err != nil {
			t.Fatal(err)
		}
		close(spans)
		var got []string
		for s := range spans {
			got = append(got, fmt.Sprintf("%s %v-%v", s.id, s.from, s.to))
		}
		slices.Sort(got)
		wantLines(t, got, []string{"a 0s-1s", "b 1s-4s", "c 1s-3s", "d 4s-5s", "e 5s-6s"})
		var order []string
		for _, r := range j.records {
			if r.Type == claybot.RecordTool {
				order = append(order, r.ToolCallID)
			}
		}
		wantLines(t, order, []string{"a", "b", "c", "d", "e"})
	})
}
