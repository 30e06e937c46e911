package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

func TestGraphs(t *testing.T) {
	for _, g := range []*plan.Graph{plan.New(plan.Config{}), plan.NewUndo(plan.Config{})} {
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
}

// travel is an intent with inputs of several kinds.
func travel(claybot.Agent) []plan.Intent {
	return []plan.Intent{
		{Name: "weather", Description: "tell the weather"},
		{Name: "travel", Description: "book a trip", Inputs: []claybot.Question{
			{Key: "to", Text: "Where to?", Type: claybot.QuestionText, Required: true},
			{Key: "day", Text: "When?", Type: claybot.QuestionDate, Required: true},
			{Key: "seats", Text: "How many seats?", Type: claybot.QuestionNumber},
			{Key: "guests", Text: "Who comes along?", Type: claybot.QuestionEmailList},
		}},
	}
}

// scene asks for a missing input, has one step approved, fails once in another
// one, and tells what was done.
func scene(t testing.TB, h *hand) (plan.Config, *brain) {
	b := thinks(steps(
		step("step-01", "look", "{{ inputs.to }}"),
		step("step-02", "look", "prices"),
		`{"id": "step-03", "tool": "put", "what": "note the trip", "args": {"word": "{{ inputs.to }} on {{inputs.day}}"}, "dependsOn": ["step-01"], "costEstimate": 0.25}`,
		step("step-04", "pay", "ticket", "step-02", "step-03"),
	))
	b.replies[llm.ClassifyRequest] = []string{"Sure:\n```json\n" + `{"intent": "Travel", "targets": ["trip"], "inputValues": {"to": "Rome", "day": "soon", "seats": 2}}` + "\n```"}
	h.faults["put"] = []error{&tools.Fault{Code: "network", Text: "no connection", Retriable: true}}
	c := config(b, h.set(t), plan.Policy{})
	c.Intents = travel
	return c, b
}

func sayScene(q claybot.Question) claybot.Answer {
	if q.Key == "day" {
		return value(`"2026-03-31"`)
	}
	return value("true")
}

func TestScene(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("book a trip to Rome")
		c, b := scene(t, h)
		if err := d.run(t, plan.New(c), sayScene); err != nil {
			t.Fatal(err)
		}
		if got := d.path(); got != "classify planner confirm executor summarize" {
			t.Errorf("went %s", got)
		}
		if got := d.waves(); got != "step-01+step-02 step-03 step-04" {
			t.Errorf("waves %s", got)
		}
		want := []string{"look Rome", "look prices", "put Rome on 2026-03-31", "pay ticket"}
		slices.Sort(h.words[:2])
		if !slices.Equal(h.words, want) {
			t.Errorf("did %q", h.words)
		}
		if len(d.asked) != 2 || d.asked["inputs/1.0"] != 1 || d.asked["approve/1.0"] != 1 {
			t.Errorf("asked %v", d.asked)
		}
		out := d.output(t)
		if out.Summary != "All is done." || d.said() != out.Summary || out.Diff != "Things change." || len(out.Commits) != 4 || out.Awaiting != nil || out.Error != "" {
			t.Errorf("put out %+v", out)
		}
		if len(out.Undo) != 2 || out.Undo[0].Step != "step-03" || out.Undo[1].Call.Name != "unpay" {
			t.Errorf("undo %+v", out.Undo)
		}
		if n := d.count(claybot.EventPlanGenerated); n != 2 { // as it was made, and with its inputs
			t.Errorf("%d plans", n)
		}
		if n, m := d.count(claybot.EventStepStarted), d.count(claybot.EventStepFinished); n != 5 || m != 5 {
			t.Errorf("%d and %d events of steps", n, m)
		}
		if b.asked(llm.ClassifyRequest) != 1 || b.asked(llm.PlanRequest) != 1 || b.asked(llm.PlanSummaryRequest) != 1 {
			t.Errorf("the model was asked %d times", len(b.requests))
		}
		if d.usage.LLMCalls != 3 || d.usage.ToolCalls != 5 || d.usage.CostMicroUSD != 9 {
			t.Errorf("used %+v", d.usage)
		}
		d.valid(t)
		view := runs.PlanOf(d.events)
		for _, st := range view.Steps {
			if st.Status != runs.StepOK {
				t.Errorf("the page shows %s as %s", st.ID, st.Status)
			}
		}
	})
}

// What the page shows while the run waits for an approval.
func TestViewOfApproval(t *testing.T) {
	h, d := newHand(), newDesk("pay")
	c := config(thinks(steps(step("step-01", "look", "a"), step("step-02", "pay", "b"))), h.set(t), plan.Policy{})
	wait, err := d.pass(t.Context(), plan.New(c))
	if err != nil || wait == nil || wait.Reason != claybot.AwaitApproval {
		t.Fatalf("%v %v", wait, err)
	}
	view := runs.PlanOf(append(d.events, runs.Paused(runID, *wait)))
	if view.Mode != "approve" || view.Steps[0].Status != runs.StepPending || view.Steps[1].Status != runs.StepWaiting || view.Steps[1].Risk != "high" {
		t.Errorf("shows %+v", view)
	}
	if out := d.output(t); out.Awaiting == nil || out.Awaiting.Reason != claybot.AwaitApproval || len(out.Awaiting.Questions) != 1 || out.Awaiting.At == 0 {
		t.Errorf("put out %+v", out.Awaiting)
	}
	if len(h.words) != 0 {
		t.Errorf("did %q before the approval", h.words)
	}
}

func TestInputs(t *testing.T) {
	keyed := func(key string, typ claybot.QuestionType, required bool) claybot.Question {
		return claybot.Question{Key: key, Text: key + "?", Type: typ, Required: required}
	}
	for name, x := range map[string]struct {
		inputs []claybot.Question
		found  string // by the model
		args   string // of the step
		asked  []string
		says   map[string]string
		want   string // arguments of the call
	}{
		"nothing is missing": {
			[]claybot.Question{keyed("a", claybot.QuestionText, true)}, `{"a": "x"}`, `{"word": "{{ inputs.a }}!"}`, nil, nil, `{"word":"x!"}`,
		},
		"typed": {
			[]claybot.Question{keyed("n", claybot.QuestionNumber, true)}, `{"n": "7"}`, `{"n": "{{ inputs.n }}", "word": "{{inputs.n}} of {{ inputs.n }}"}`, nil, nil, `{"n":7,"word":"7 of 7"}`,
		},
		"does not fit": {
			[]claybot.Question{keyed("n", claybot.QuestionNumber, true)}, `{"n": "seven"}`, `{"n": "{{ inputs.n }}"}`, []string{"n"}, map[string]string{"n": "7"}, `{"n":7}`,
		},
		"null, blank and empty": {
			[]claybot.Question{keyed("a", claybot.QuestionText, true), keyed("b", claybot.QuestionText, true), keyed("c", claybot.QuestionEmailList, true)},
			`{"a": null, "b": "  ", "c": []}`, `{"word": "{{ inputs.a }}{{ inputs.b }}{{ inputs.c }}"}`,
			[]string{"a", "b", "c"},
			map[string]string{"a": `"x"`, "b": `"y"`, "c": `["a@example.org","b@example.org"]`},
			`{"word":"xya@example.org, b@example.org"}`,
		},
		"optional is never asked": {
			[]claybot.Question{keyed("a", claybot.QuestionText, false)}, `{}`, `{"word": "{{ inputs.a }}", "n": 1}`, nil, nil, `{"n":1}`,
		},
		"optional in a text": {
			[]claybot.Question{keyed("a", claybot.QuestionText, false)}, `{}`, `{"word": "x{{ inputs.a }}y"}`, nil, nil, `{"word":"xy"}`,
		},
		"dotted": {
			[]claybot.Question{keyed("who.name", claybot.QuestionText, true), keyed("who.age", claybot.QuestionNumber, true)},
			`{"who": {"name": "Ann"}}`, `{"word": "{{ inputs.who.name }}", "n": "{{ inputs.who.age }}"}`,
			[]string{"who.age"},
			map[string]string{"who.age": "9"},
			`{"n":9,"word":"Ann"}`,
		},
		"what was said is not read again": {
			[]claybot.Question{keyed("a", claybot.QuestionText, true), keyed("b", claybot.QuestionText, true)},
			`{"a": "{{ inputs.b }}", "b": "secret"}`, `{"word": "{{ inputs.a }}"}`, nil, nil, `{"word":"{{ inputs.b }}"}`,
		},
		"what is answered is not read again": {
			[]claybot.Question{keyed("a", claybot.QuestionText, true), keyed("b", claybot.QuestionText, true)},
			`{"b": "secret"}`, `{"word": "{{ inputs.a }}"}`,
			[]string{"a"},
			map[string]string{"a": `"{{ inputs.b }}"`},
			`{"word":"{{ inputs.b }}"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			b := thinks(steps(`{"id": "s", "tool": "put", "args": ` + x.args + `}`))
			b.replies[llm.ClassifyRequest] = []string{`{"intent": "it", "inputValues": ` + x.found + `}`}
			c := config(b, h.set(t), plan.Policy{})
			c.Intents = func(claybot.Agent) []plan.Intent { return []plan.Intent{{Name: "it", Inputs: x.inputs}} }
			var asked []string
			err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
				asked = append(asked, q.Key)
				return value(x.says[q.Key])
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(asked, x.asked) {
				t.Errorf("asked %q, want %q", asked, x.asked)
			}
			for _, r := range d.records {
				if len(r.ToolCalls) > 0 && r.ToolCalls[0].Args != x.want {
					t.Errorf("called with %s, want %s", r.ToolCalls[0].Args, x.want)
				}
			}
			if len(h.words) != 1 {
				t.Errorf("did %q", h.words)
			}
		})
	}
}

// An approval is for the arguments with the inputs in them.
func TestApprovalShowsInputs(t *testing.T) {
	h, d := newHand(), newDesk("go")
	b := thinks(steps(step("s", "pay", "{{ inputs.to }}")))
	b.replies[llm.ClassifyRequest] = []string{`{"intent": "travel", "inputValues": {"day": "2026-03-31"}}`}
	c := config(b, h.set(t), plan.Policy{})
	c.Intents = travel
	err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
		if q.Key == "to" {
			return value(`"Rome"`)
		}
		want := tools.Digest(d.agent.ID, "", claybot.ToolCall{Name: "pay", Args: `{"word":"Rome"}`})
		if !strings.Contains(q.Text, "Rome") || q.Digest != want {
			t.Errorf("asked %q with digest %s", q.Text, q.Digest)
		}
		return value("true")
	})
	if err != nil || !slices.Equal(h.words, []string{"pay Rome"}) {
		t.Errorf("%v, did %q", err, h.words)
	}
}

func TestNoIntent(t *testing.T) {
	for text, want := range map[string]string{
		`{"intent": "none", "text": "Hello!"}`: "Hello!",
		`{"intent": "none"}`:                   "That is none of the things that I do here. I do: weather, travel.",
	} {
		h, d := newHand(), newDesk("hello")
		b := thinks("")
		b.replies[llm.ClassifyRequest] = []string{text}
		c := config(b, h.set(t), plan.Policy{})
		c.Intents = travel
		if err := d.run(t, plan.New(c), nil); err != nil {
			t.Fatal(err)
		}
		if d.said() != want || b.asked(llm.PlanRequest) != 0 {
			t.Errorf("said %q, want %q", d.said(), want)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	for text, want := range map[string]string{
		`{"steps": [], "diff": "Two and two is four."}`: "Two and two is four.",
		`{"steps": []}`: "There is nothing to do.",
	} {
		h, d := newHand(), newDesk("2+2?")
		if err := d.run(t, plan.New(config(thinks(text), h.set(t), plan.Policy{})), nil); err != nil {
			t.Fatal(err)
		}
		if d.said() != want || d.output(t).Summary != want || d.count(claybot.EventPlanGenerated) != 0 {
			t.Errorf("said %q, want %q", d.said(), want)
		}
		d.valid(t)
	}
}

func TestModelFails(t *testing.T) {
	for name, x := range map[string]struct {
		err  error
		code string
	}{
		"transient": {&llm.Error{Class: llm.Transient, Text: "busy"}, runs.CodeModel},
		"rate":      {&llm.Error{Class: llm.Rate, Status: 429, Text: "slow"}, runs.CodeModel},
		"refused":   {&llm.Error{Class: llm.Permanent, Status: 401, Text: "no"}, runs.CodeRefused},
		"too long":  {&llm.Error{Class: llm.Context, Status: 400, Text: "long"}, runs.CodeContext},
		"foreign":   {errors.New("secret words"), runs.CodeModel},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			b := thinks("")
			b.fail = map[string]error{llm.PlanRequest: x.err}
			err := failure(t, d.run(t, plan.New(config(b, h.set(t), plan.Policy{})), nil))
			if err.Code != x.code || err.Say != "" || strings.Contains(err.Text, "secret") {
				t.Errorf("got %+v", err)
			}
		})
	}
	h := newHand()
	if err := failure(t, newDesk("go").run(t, plan.New(plan.Config{}), nil)); err.Code != runs.CodeNoModel {
		t.Errorf("without a model: %v", err)
	}
	c := config(thinks(""), h.set(t), plan.Policy{})
	c.Prompt = func(*runs.Turn) (string, error) { return "", errors.New("line 3: bad name") }
	if err := failure(t, newDesk("go").run(t, plan.New(c), nil)); err.Code != runs.CodePrompt {
		t.Errorf("with a broken prompt: %v", err)
	}
}

// A model that fails at the end costs nothing but its words.
func TestSummaryWithoutModel(t *testing.T) {
	h, d := newHand(), newDesk("go")
	b := thinks(steps(step("s", "put", "a_b")))
	b.fail = map[string]error{llm.PlanSummaryRequest: &llm.Error{Class: llm.Transient, Text: "busy"}}
	if err := d.run(t, plan.New(config(b, h.set(t), plan.Policy{})), nil); err != nil {
		t.Fatal(err)
	}
	if want := "Things change.\n\nDone:\n- s (put): put did a_b"; d.said() != want {
		t.Errorf("said %q, want %q", d.said(), want)
	}
}

// The system prompt of the agent stands before the engine's own words, and the
// steps of the run are told only to the model call that sums them up.
func TestRequests(t *testing.T) {
	h, d := newHand(), newDesk("tidy up")
	b := thinks(steps(step("s", "put", "x")))
	c := config(b, h.set(t), plan.Policy{Deny: []string{"p?y"}})
	c.Prompt = func(turn *runs.Turn) (string, error) { return "You are " + string(turn.Agent.ID) + ".", nil }
	if err := d.run(t, plan.New(c), nil); err != nil {
		t.Fatal(err)
	}
	planner := b.requests[0]
	if !strings.HasPrefix(planner.System, "You are agent1.\n\n") || planner.Run != runID || len(planner.Tools) != 0 {
		t.Errorf("asked %+v", planner)
	}
	text := planner.Messages[0].Content
	if !strings.Contains(text, "tidy up") || !strings.Contains(text, "- put (idempotent)") || strings.Contains(text, "- pay (") || strings.Contains(text, "unput") {
		t.Errorf("asked %s", text)
	}
	if text := b.requests[1].Messages[0].Content; !strings.Contains(text, "put did x") {
		t.Errorf("summed up %s", text)
	}
}

// A conversation that the provider finds too long is shown in a shorter form.
func TestLongConversation(t *testing.T) {
	h, d := newHand(), newDesk("go")
	for range 40 {
		old := claybot.Record{Type: claybot.RecordUser, Run: "old", MessageID: "x", Text: strings.Repeat("long ", 500)}
		d.records = append([]claybot.Record{old}, d.records...)
	}
	b := thinks(steps(step("s", "put", "x")))
	c := config(nil, h.set(t), plan.Policy{})
	c.Model = func(claybot.Agent) llm.Model { return narrow{b, 20_000} }
	if err := d.run(t, plan.New(c), nil); err != nil {
		t.Fatal(err)
	}
	if n := b.asked(llm.PlanRequest); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A narrow model takes short requests only.
type narrow struct {
	llm.Model
	limit int
}

func (n narrow) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	if len(r.Messages[0].Content) > n.limit {
		return llm.Response{}, &llm.Error{Class: llm.Context, Status: 400, Text: "too long"}
	}
	return n.Model.Chat(ctx, r)
}

// Settings that change while a person thinks count afterwards.
func TestIntentGone(t *testing.T) {
	h, d := newHand(), newDesk("go")
	c, _ := scene(t, h)
	wait, err := d.pass(t.Context(), plan.New(c))
	if err != nil || wait == nil {
		t.Fatal(wait, err)
	}
	d.answer(t, wait, "day", value(`"2026-03-31"`))
	c.Intents = func(claybot.Agent) []plan.Intent { return []plan.Intent{{Name: "weather"}} }
	e := failure(t, d.run(t, plan.New(c), nil))
	if e.Code != runs.CodePlan || !strings.Contains(e.Say, `no "travel" any more`) || len(h.words) > 0 {
		t.Errorf("got %+v, did %q", e, h.words)
	}
}

func TestNobodyToAsk(t *testing.T) {
	h, d := newHand(), newDesk("go")
	c, _ := scene(t, h)
	d.nobody = true
	e := failure(t, d.run(t, plan.New(c), nil))
	if e.Say != "No person can be asked for what is missing: day. Nothing was run." || d.output(t).Error == "" || d.said() != e.Say {
		t.Errorf("got %+v", e)
	}
	d = newDesk("go")
	d.nobody = true
	c = config(thinks(steps(step("a", "pay", "x"), step("b", "put", "y"), step("c", "put", "z", "a"))), h.set(t), plan.Policy{})
	if err := d.run(t, plan.New(c), nil); err != nil {
		t.Fatal(err)
	}
	want := []plan.Skip{{Step: "a", Why: "not approved: no person can be asked"}, {Step: "c", Why: "a was not run"}}
	if out := d.output(t); !slices.Equal(out.Skipped, want) || len(out.Commits) != 1 {
		t.Errorf("put out %+v", out)
	}
}

// An answer without a value says nothing.
func TestUnanswered(t *testing.T) {
	h, d := newHand(), newDesk("go")
	c, _ := scene(t, h)
	e := failure(t, d.run(t, plan.New(c), func(claybot.Question) claybot.Answer {
		return claybot.Answer{Via: claybot.ViaDefault, Value: json.RawMessage(nil)}
	}))
	if !strings.Contains(e.Say, `no answer to "When?"`) || len(h.words) > 0 {
		t.Errorf("got %+v", e)
	}
}
