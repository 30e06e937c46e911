package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
)

// garbled are plans that cannot be used, with words of the sentence that says so.
var garbled = map[string]struct {
	text string
	want []string
}{
	"nothing":          {"", []string{"it has no JSON object"}},
	"words":            {"I would rather talk about the weather.", []string{"it has no JSON object"}},
	"not JSON":         {`{"steps": [oh]}`, []string{"it is not JSON"}},
	"cut":              {`{"steps": [{"id": "a", "tool": "put", "args": {"steps": []}}, {"id"`, []string{"the JSON is cut off"}},
	"cut in an object": {"{\n\"steps\": [\n{\"id\": \"a\", \"args\": {\"steps\": []}\n}", []string{"the JSON is cut off"}},
	"a list":           {`[` + step("a", "put", "x") + `]`, []string{`the object has no "steps"`}},
	"no list":          {`{"steps": "none"}`, []string{`"steps" is not a list`}},
	"no object":        {`{"steps": ["put"]}`, []string{"step-01: it is not an object"}},
	"no tool":          {`{"steps": [{"id": "a", "args": {}}]}`, []string{`"a": it names no tool`}},
	"odd arguments":    {`{"steps": [{"id": "a", "tool": "put", "args": [1]}]}`, []string{"the arguments are not an object"}},
	"odd cost":         {`{"steps": [{"id": "a", "tool": "put", "costEstimate": -1}, {"id": "b", "tool": "put", "costEstimate": "much"}]}`, []string{`"a": the cost estimate`, `"b": the cost estimate`}},
	"unknown tool":     {steps(step("a", "fly", "x"), step("b", "swim", "y")), []string{`"a": there is no tool "fly"`, `"b": there is no tool "swim"`}},
	"hidden tool":      {steps(step("a", "unput", "x")), []string{`there is no tool "unput"`}},
	"wrong type":       {`{"steps": [{"id": "a", "tool": "put", "args": {"word": 5}}]}`, []string{`"a": `, "word"}},
	"unknown field":    {`{"steps": [{"id": "a", "tool": "put", "args": {"color": "red"}}]}`, []string{`"a": `, "color"}},
	"twice":            {steps(step("a", "put", "x"), step("a", "put", "y")), []string{`"a": there are two steps`}},
	"depends on none":  {steps(step("a", "put", "x", "b", "c")), []string{`"a": it depends on "b"`, `"a": it depends on "c"`}},
	"on itself":        {steps(step("a", "put", "x", "a")), []string{`in a circle: "a" → "a"`}},
	"circle":           {steps(step("z", "put", "0"), step("a", "put", "x", "c"), step("b", "put", "y", "a"), step("c", "put", "z", "b", "z")), []string{`in a circle: "a" → "c" → "b" → "a"`}},
	"odd id":           {steps(step("a b", "put", "x"), step("step-with-a-name-that-is-far-too-long", "put", "y")), []string{`invalid step id "a b"`, `"step-with-a-name`}},
	"no such input":    {steps(step("a", "put", "{{ inputs.color }}")), []string{`"a": there is no input "color"`}},
	"odd input":        {steps(step("a", "put", "{{ inputs.x | upper }}")), []string{"another form than"}},
	"denied tool":      {steps(step("a", "pay", "x")), []string{`"a": the policy denies the tool "pay"`}},
	"denied scope":     {steps(step("a", "mail", "x")), []string{`what the tool "mail" reaches: people`}},
	"1,000 steps":      {steps(slices.Repeat([]string{step("a", "put", "x")}, 1000)...), []string{"The plan cannot be used: the plan has 1000 steps, at most 50 are allowed. Nothing was run; please ask again, perhaps in other words."}},
	"many faults":      {steps(slices.Repeat([]string{step("a", "fly", "x")}, 40)...), []string{"; and 67 more."}},
	"too long":         {`{"steps": [], "diff": "` + strings.Repeat("x", 1<<20) + `"}`, []string{"the limit is"}},
}

func TestGarbledPlans(t *testing.T) {
	for name, x := range garbled {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			b := thinks(x.text, x.text)
			policy := plan.Policy{Mode: plan.ModeAuto, Deny: []string{"pay"}, Scopes: []string{"files"}}
			e := failure(t, d.run(t, plan.New(config(b, h.set(t), policy)), nil))
			if e.Code != runs.CodePlan || strings.Count(e.Say, "\n") > 0 {
				t.Errorf("got %s, said %s", e.Code, e.Say)
			}
			for _, want := range x.want {
				if !strings.Contains(strings.ReplaceAll(e.Say, `\`, ""), want) {
					t.Errorf("said %q without %q", e.Say, want)
				}
			}
			if len(h.words) > 0 || d.count(claybot.EventPlanGenerated) > 0 || d.count(claybot.EventFallback) != 1 || d.path() != "classify planner" {
				t.Errorf("did %q, went %s", h.words, d.path())
			}
			if n := b.asked(llm.PlanRequest); n != 2 {
				t.Errorf("asked %d times", n)
			}
			if d.said() != e.Say || d.output(t).Error == "" {
				t.Errorf("the agent remembers %q, and put out %+v", d.said(), d.output(t))
			}
			d.valid(t)

			// What is wrong is told to the model, which then does better.
			h, d = newHand(), newDesk("go")
			b = thinks(x.text, steps(step("s", "put", "well")))
			if err := d.run(t, plan.New(config(b, h.set(t), policy)), nil); err != nil || !slices.Equal(h.words, []string{"put well"}) {
				t.Errorf("repaired: %v, did %q", err, h.words)
			}
			asked := b.requests[1].Messages
			if len(asked) != 3 || asked[1].Role != llm.RoleAssistant || !strings.Contains(asked[2].Content, "without these faults:\n- ") {
				t.Errorf("asked again with %+v", asked)
			}
			if n := d.count(claybot.EventPlanGenerated); n != 1 {
				t.Errorf("%d plans", n)
			}
		})
	}
}

// What models put around a plan, and how they write it.
func TestToleratedPlans(t *testing.T) {
	for name, text := range map[string]string{
		"fence":             "```json\n" + steps(step("a", "put", "x")) + "\n```",
		"words around":      "Here {as asked} is my plan:\n\n" + steps(step("a", "put", "x")) + "\nIs that {well}?",
		"another object":    "{\"thought\": \"steps\"}\n" + steps(step("a", "put", "x")),
		"fence in a line":   "```json " + steps(step("a", "put", "x")) + "```",
		"other names":       `{"Steps": [{"ID": 1, "Tool": "put", "Args": {"word": "x"}, "depends_on": null, "Risk": "LOW", "cost_estimate": "$0.5"}]}`,
		"no ids":            `{"steps": [{"tool": "put", "args": {"word": "x"}}]}`,
		"arguments as text": `{"steps": [{"id": "a", "tool": "put", "args": "{\"word\": \"x\"}"}]}`,
		"one dependency":    `{"steps": [{"id": 1, "tool": "look"}, {"id": 2, "tool": "put", "args": {"word": "x"}, "dependsOn": 1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			b := thinks(text)
			if err := d.run(t, plan.New(config(b, h.set(t), plan.Policy{})), nil); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(h.words, "put x") || b.asked(llm.PlanRequest) != 1 {
				t.Errorf("did %q", h.words)
			}
		})
	}
}

func TestGarbledIntents(t *testing.T) {
	for _, text := range []string{"", "travel", `{"intent": 5}`, `{"intent": "swim"}`, `{"intent": "trav`, `{"name": "travel"}`} {
		h, d := newHand(), newDesk("go")
		b := thinks("")
		b.replies[llm.ClassifyRequest] = []string{text, text}
		c := config(b, h.set(t), plan.Policy{})
		c.Intents = travel
		e := failure(t, d.run(t, plan.New(c), nil))
		if e.Code != runs.CodePlan || !strings.HasPrefix(e.Say, "I couldn't find out what you want: ") || b.asked(llm.ClassifyRequest) != 2 {
			t.Errorf("%q: got %s, said %s", text, e.Code, e.Say)
		}
	}
}

// Fifty steps are a plan.
func TestManySteps(t *testing.T) {
	h, d := newHand(), newDesk("go")
	var all []string
	for i := range 50 {
		s := step(fmt.Sprintf("s%d", i), "put", fmt.Sprint(i))
		if i > 0 {
			s = step(fmt.Sprintf("s%d", i), "put", fmt.Sprint(i), fmt.Sprintf("s%d", i-1))
		}
		all = append([]string{s}, all...) // the last one first
	}
	if err := d.run(t, plan.New(config(thinks(steps(all...)), h.set(t), plan.Policy{})), nil); err != nil {
		t.Fatal(err)
	}
	if len(h.words) != 50 || h.words[0] != "put 0" || h.words[49] != "put 49" {
		t.Errorf("did %q", h.words)
	}
}
