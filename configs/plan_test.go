package configs

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// planned is a file whose plan has the lines given, from line 5.
func planned(lines ...string) string {
	return "agents:\n  work:\n    match: web\n    plan:\n      " + strings.Join(lines, "\n      ") + "\n"
}

// intended is a file whose plan has one good intent before and one after the
// entry given, which stands in line 7.
func intended(entry string) string {
	return planned("intents:", "  - {name: a, description: d}", "  - "+entry, "  - {name: z, description: d, tools: [\"x_*\"]}")
}

// asked is a file whose intent in line 7 has an input that is fine, and the one
// given.
func asked(input string) string {
	return intended("{name: b, description: d, inputs: [{key: k, text: K}, " + input + "]}")
}

const (
	workPlan   = "agents.work.plan"
	workIntent = "agents.work.plan.intents[1]"
	workInput  = workIntent + ".inputs[1]"
	leftOut    = "; the intent is left out ?"
	held       = "; using mode: preview ?"
	heldAll    = "; using engine: plan and mode: preview ?"
)

var brokenPlan = []fault{
	{"engine", "agents:\n  default:\n    engine: ract\n", []string{`3 agents.default.engine: "ract" is not one of react, plan, explore; ignored ?react`}},
	{"engine undo", "agents:\n  default:\n    engine: undo\n", []string{`3 agents.default.engine: "undo" is not one of react, plan, explore; ignored ?`}},
	{"approve", "agents:\n  default:\n    approve: [mail_*, \"rm -rf\"]\n", []string{`3 agents.default.approve: "rm -rf" is not the name of a tool, nor a pattern such as mail_*; all tools ask ?`}},
	{"approve as group", "agents:\n  default:\n    approve: {a: b}\n", []string{"3 agents.default.approve: want a list, found a group of keys; all tools ask ?"}},
	{"engine beside a plan", "agents:\n  work:\n    match: web\n    engine: plann\n    plan: {mode: auto}\n", []string{`4 agents.work.engine: "plann" is not one of react, plan, explore` + heldAll + "plan"}},
	{"engine mistyped", "agents:\n  work:\n    match: web\n    plan: {mode: auto}\n    engin: plan\n", []string{"5 agents.work.engin: unknown key; using engine: plan and mode: preview ?agents.work.engine"}},
	{"engine as list", "agents:\n  work:\n    match: web\n    plan: {mode: auto}\n    engine: [plan]\n", []string{"5 agents.work.engine: want a single value, found a list" + heldAll}},
	{"engine twice", "agents:\n  work:\n    match: web\n    plan: {mode: auto}\n    engine: react\n    engine: plan\n", []string{"6 agents.work.engine: was given in line 5 already" + heldAll}},
	{"engine of the default profile", "agents:\n  default:\n    engine: paln\n  work:\n    match: web\n    plan: {mode: auto}\n", []string{
		`3 agents.default.engine: "paln" is not one of react, plan, explore; ignored ?plan`, "4 agents.work: the engine, here or in the default profile, was not understood" + heldAll,
	}},
	{"plan mistyped", "agents:\n  work:\n    match: web\n    engine: plan\n    plann: {deny: [shell]}\n", []string{"5 agents.work.plann: unknown key; using mode: preview ?" + workPlan}},
	{"deny outside of its group", "agents:\n  work:\n    match: web\n    deny: [shell]\n", []string{"4 agents.work.deny: unknown key; the profile has no tools until this is corrected ?agents.work.tools"}},
	{"deny as alias", planned("tools: &t [shell]", "deny: *t"), []string{"6 " + workPlan + ".deny: aliases are not supported, write the value out" + held}},
	{"deny twice", planned("deny: [a]", "deny: [b]"), []string{"6 " + workPlan + ".deny: was given in line 5 already" + held}},
	{"no intent left", planned("intents:", "  - {name: a}", "  - b"), []string{"6 " + workPlan + ".intents[0]: has no description; the intent is left out" + held, "7 " + workPlan + ".intents[1]: want a group of keys (name, description, tools, inputs), found a single value; the intent is left out" + held}},
	{"intents as word", planned("mode: auto", "intents: book"), []string{"6 " + workPlan + ".intents: want a list of intents, found a single value" + held}},
	{"plan as word", "agents:\n  work:\n    match: web\n    plan: auto\n", []string{"4 " + workPlan + ": want a group of keys (mode, intents, tools, deny, scopes, quiet_hours, quiet, budget, approvals, approvers, continue_on_error, retries, rates), found a single value" + held}},
	{"mistyped deny", planned("mode: auto", "deni: [shell]"), []string{"6 " + workPlan + ".deni: unknown key; using mode: preview ?" + workPlan + ".deny"}},
	{"mode", planned("mode: atuo"), []string{"5 " + workPlan + `.mode: "atuo" is not one of preview, approve, auto` + held + "auto"}},
	{"mode as list", planned("mode: [auto]"), []string{"5 " + workPlan + ".mode: want a single value, found a list" + held}},
	{"tools", planned("mode: auto", "tools: [\"a b\"]"), []string{"6 " + workPlan + `.tools: "a b" is not the name of a tool, nor a pattern such as mail_*` + held}},
	{"deny", planned("mode: auto", "deny: [\"[a\", shell]"), []string{"6 " + workPlan + `.deny: "[a" is not the name of a tool, nor a pattern such as mail_*` + held}},
	{"scopes", planned("scopes: [\"a b\"]"), []string{"5 " + workPlan + `.scopes: "a b" is not a scope such as schedule` + held}},
	{"quiet hours", planned("mode: auto", "quiet_hours: at night"), []string{"6 " + workPlan + `.quiet_hours: "at night" is not of the form 08:00-22:00` + held}},
	{"quiet hours that no clock shows", planned("quiet_hours: \"25:00-07:00\""), []string{"5 " + workPlan + `.quiet_hours: "25:00-07:00" holds a time that no clock shows` + held}},
	{"quiet", planned("quiet_hours: \"22:00-07:00\"", "quiet: silent"), []string{"6 " + workPlan + `.quiet: "silent" is not one of plan_only, defer, block` + held}},
	{"quiet without hours", planned("quiet: block"), []string{"5 " + workPlan + ".quiet: says what happens in quiet_hours, which are missing; ignored ?"}},
	{"budget", planned("budget: cheap"), []string{"5 " + workPlan + `.budget: "cheap" is not an amount in US dollars from 0 to 1000000` + held}},
	{"budget below nothing", planned("budget: -1"), []string{"5 " + workPlan + `.budget: "-1" is not an amount`}},
	{"budget of no number", planned("budget: NaN"), []string{"5 " + workPlan + `.budget: "NaN" is not an amount in US dollars from 0 to 1000000` + held}},
	{"approvals", planned("approvals: 0"), []string{"5 " + workPlan + `.approvals: "0" is not a whole number from 1 to 10` + held}},
	{"approvals without approvers", planned("approvals: 2", "approvers: [slack/U1]"), []string{"4 " + workPlan + ": 2 approvals need as many different people among the approvers, there are 1; using mode: preview ?"}},
	{"approvals by one person", "people: {ann: [slack/U1, telegram/5]}\n" + planned("approvals: 2", "approvers: [slack/U1, telegram/5]"), []string{"5 " + workPlan + ": 2 approvals need as many different people among the approvers, there are 1; using mode: preview ?"}},
	{"approvals by one person, named below", planned("approvals: 3", "approvers: [slack/U1, telegram/5, slack/U2]") + "people: {ann: [telegram/5, slack/U1]}\n", []string{"4 " + workPlan + ": 3 approvals need as many different people among the approvers, there are 2; using mode: preview ?"}},
	{"approvers", planned("approvers: [slack/bob, slak/U1, slack/U1]"), []string{
		"5 " + workPlan + `.approvers: "bob" is not the Slack id of a person, such as U012ABC, or T012ABC/U012ABC for one of another workspace` + held,
		"5 " + workPlan + `.approvers: "slak" is not a connector (telegram, slack, discord, web, terminal); using mode: preview ?slack`,
	}},
	{"continue", planned("continue_on_error: maybe"), []string{"5 " + workPlan + `.continue_on_error: "maybe" is not one of true, false; ignored ?`}},
	{"retries", planned("retries: 11"), []string{"5 " + workPlan + `.retries: "11" is not a whole number from 0 to 10; ignored ?`}},
	{"rates", planned("rates: {a: 5/s, b: 5, c: 0/s, d: 1001/m, \"e f\": 1/s}"), []string{
		"5 " + workPlan + `.rates.b: "5" is not a rate such as 5/s, 30/m or 100/h, up to 1000` + held,
		"5 " + workPlan + `.rates.c: "0/s" is not a rate`,
		"5 " + workPlan + `.rates.d: "1001/m" is not a rate`,
		"5 " + workPlan + `.rates.e f: "e f" is not the name of a tool` + held,
	}},
	{"rates as list", planned("rates: [5/s]"), []string{"5 " + workPlan + ".rates: want names of tools with their rates, found a list" + held}},
	{"intents as group", planned("intents: {name: a}"), []string{"5 " + workPlan + ".intents: want a list of intents, found a group of keys" + held}},
	{"intent as word", intended("book"), []string{"7 " + workIntent + ": want a group of keys (name, description, tools, inputs), found a single value" + leftOut}},
	{"intent without name", intended("{description: d}"), []string{"7 " + workIntent + ": has no name" + leftOut}},
	{"intent without description", intended("{name: b}"), []string{"7 " + workIntent + ": has no description" + leftOut}},
	{"intent with bad name", intended("{name: B b, description: d}"), []string{"7 " + workIntent + `.name: "B b" is not a name of at most 64 of a-z, 0-9, _ and -` + leftOut}},
	{"intent twice", intended("{name: a, description: d}"), []string{"7 " + workIntent + `: the name "a" was given in line 6 already` + leftOut}},
	{"intent with bad tool", intended("{name: b, description: d, tools: [\"a b\"]}"), []string{"7 " + workIntent + `.tools: "a b" is not the name of a tool, nor a pattern such as mail_*` + leftOut}},
	{"intent mistyped", intended("{name: b, description: d, tool: [x]}"), []string{"7 " + workIntent + ".tool: unknown key; the intent is left out ?" + workIntent + ".tools"}},
	{"inputs as group", intended("{name: b, description: d, inputs: {key: k}}"), []string{"7 " + workIntent + ".inputs: want a list of inputs, found a group of keys" + leftOut}},
	{"input as word", asked("k2"), []string{"7 " + workInput + ": want a group of keys (key, text, type, options, min, max, format, placeholder, example, default, required), found a single value" + leftOut}},
	{"input without key", asked("{text: T}"), []string{"7 " + workInput + `: the input "": it has no key` + leftOut}},
	{"input without text", asked("{key: b}"), []string{"7 " + workInput + `: the input "b": it has no text, which is what people are asked` + leftOut}},
	{"input twice", asked("{key: k, text: T}"), []string{"7 " + workInput + `: the input "k": its key is there twice` + leftOut}},
	{"input with bad key", asked("{key: a b, text: T}"), []string{"7 " + workInput + `: the input "a b": field key: `}},
	{"input with bad type", asked("{key: b, text: T, type: strng}"), []string{"7 " + workInput + `: the input "b": field type: invalid question type "strng"`}},
	{"input that approves", asked("{key: b, text: T, type: confirm}"), []string{"7 " + workInput + `: the input "b": confirm is for steps`}},
	{"select without options", asked("{key: b, text: T, type: select}"), []string{"7 " + workInput + `: the input "b": field options: must not be empty for select` + leftOut}},
	{"options for a text", asked("{key: b, text: T, options: [x]}"), []string{"7 " + workInput + `: the input "b": field options: only select and multiselect have options, not text` + leftOut}},
	{"bounds", asked("{key: b, text: T, min: 5, max: 3}"), []string{"7 " + workInput + `: the input "b": fields min and max: min 5 is more than max 3` + leftOut}},
	{"bound in words", asked("{key: b, text: T, min: few}"), []string{"7 " + workInput + `.min: "few" is not a number` + leftOut}},
	{"format", asked("{key: b, text: T, format: \"[\"}"), []string{"7 " + workInput + `: the input "b": field format: no regular expression`}},
	{"default that is not an answer", asked("{key: b, text: T, type: number, default: many}"), []string{"7 " + workInput + `: the input "b": field default: `}},
	{"required in words", asked("{key: b, text: T, required: perhaps}"), []string{"7 " + workInput + `.required: "perhaps" is not one of true, false` + leftOut}},
	{"input mistyped", asked("{key: b, text: T, typ: text}"), []string{"7 " + workInput + ".typ: unknown key; the intent is left out ?" + workInput + ".type"}},
}

// A bad entry costs itself only; a mistake in what keeps steps back leaves
// nothing to run.
func TestBrokenPlans(t *testing.T) {
	for _, tt := range brokenPlan {
		c, _ := load(t, tt.file, nil)
		p := c.Agents.Profiles["work"]
		if strings.Contains(tt.want[0], "intents[1]") {
			want := []Intent{{Name: "a", Description: "d"}, {Name: "z", Description: "d", Tools: []string{"x_*"}}}
			if got := p.Engine.Plan.Intents; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", tt.name, got, want)
			}
		}
		if p.Engine.Plan == nil {
			continue
		}
		mode := PlanApprove
		if strings.Contains(strings.Join(tt.want, ""), "preview") || strings.Contains(tt.want[0], "budget") {
			mode = PlanPreview
		}
		if tt.want[0] != "" && p.Engine.Plan.Mode != mode {
			t.Errorf("%s: the mode is %s, want %s", tt.name, p.Engine.Plan.Mode, mode)
		}
		if strings.Contains(strings.Join(tt.want, ""), heldAll) && p.Engine.Name != "plan" {
			t.Errorf("%s: the engine is %s, whom the plan does not bind", tt.name, p.Engine.Name)
		}
	}
	for _, file := range []string{"[a b]", "{a: b}", "[[a]]"} {
		c, _ := load(t, "agents: {default: {approve: "+file+"}}\n", nil)
		if got := c.Agents.Profiles[DefaultProfile].Care.Approve; !reflect.DeepEqual(got, []string{"*"}) {
			t.Errorf("approve: %s makes %q, so that tools do not ask", file, got)
		}
	}
}

func TestPlan(t *testing.T) {
	c, warnings := load(t, `
agents:
  default:
    engine: plan
    approve: ["mail_*", shell, shell]
    plan:
      mode: auto
      tools: ["*"]
      deny: [shell]
      scopes: [schedule, "crm:write"]
      quiet_hours: 22:00 - 7:00
      quiet: defer
      budget: 0.50
      approvals: 2
      approvers: [slack/U1, "telegram:5", slack/U1]
      continue_on_error: yes
      retries: 0
      rates: {web_fetch: 5/s, mail_send: 30/m, x: 1000/h}
      intents:
        - name: book
          description: books
          tools: ["calendar_*"]
          inputs:
            - {key: room, text: "Which?", type: select, options: [Blue, Green]}
            - {key: seats.n, text: "How many?", type: number, min: 1, max: 2.5, default: 2, required: false}
            - {key: title, text: "Title?", format: "[a-z]+", placeholder: p, example: abc}
  same: {match: web}
  other: {match: slack, engine: react, approve: [], plan: {quiet_hours: "00:00-24:00", approvers: [], approvals: 1, budget: 0.0000001, intents: [], tools: []}}
  loud: {match: telegram, plan: {quiet_hours: off, retries: 10}}
  later: {match: terminal, plan: {quiet_hours: "12:30-13:15"}}
`, nil)
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	one, most, zero, ten := 1.0, 2.5, 0, 10
	def := Plan{
		Mode: PlanAuto, Tools: []string{"*"}, Deny: []string{"shell"}, Scopes: []string{"schedule", "crm:write"},
		Quiet: &Quiet{22 * time.Hour, 7 * time.Hour, QuietDefer}, BudgetMicroUSD: 500_000, Approvals: 2,
		Approvers: []string{"slack/U1", "telegram/5"}, ContinueOnError: true, Retries: &zero,
		Rates: map[string]string{"web_fetch": "5/s", "mail_send": "30/m", "x": "1000/h"},
		Intents: []Intent{{"book", "books", []string{"calendar_*"}, []claybot.Question{
			{Key: "room", Text: "Which?", Type: claybot.QuestionSelect, Options: []string{"Blue", "Green"}, Required: true},
			{Key: "seats.n", Text: "How many?", Type: claybot.QuestionNumber, Min: &one, Max: &most, Default: "2"},
			{Key: "title", Text: "Title?", Type: claybot.QuestionText, Format: "[a-z]+", Placeholder: "p", Example: "abc", Required: true},
		}}},
	}
	other, loud, later := def, def, def
	other.Quiet, other.Approvers, other.Approvals, other.BudgetMicroUSD, other.Intents, other.Tools = &Quiet{0, 24 * time.Hour, QuietDefer}, []string{}, 1, 1, nil, []string{}
	loud.Quiet, loud.Retries = nil, &ten
	later.Quiet = &Quiet{12*time.Hour + 30*time.Minute, 13*time.Hour + 15*time.Minute, QuietDefer}
	for name, want := range map[string]Plan{DefaultProfile: def, "same": def, "other": other, "loud": loud, "later": later} {
		if got := c.Agents.Profiles[name].Engine.Plan; !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, want)
		}
	}
	if p := c.Agents.Profiles["same"]; p.Engine.Name != "plan" || !reflect.DeepEqual(p.Care.Approve, []string{"mail_*", "shell"}) {
		t.Errorf("inherited: %q, %q", p.Engine.Name, p.Care.Approve)
	}
	if p := c.Agents.Profiles["other"]; p.Engine.Name != "react" || len(p.Care.Approve) != 0 {
		t.Errorf("changed: %q, %q", p.Engine.Name, p.Care.Approve)
	}
}

// People with several ids approve as well as others.
func TestPlanByPeople(t *testing.T) {
	c, warnings := load(t, "people: {ann: [slack/U1, telegram/5]}\n"+planned("approvals: 2", "approvers: [slack/U1, telegram/5, slack/U2]"), nil)
	if p := c.Agents.Profiles["work"].Engine.Plan; len(warnings) != 0 || p.Mode != PlanApprove || len(p.Approvers) != 3 {
		t.Errorf("%+v, warnings %v", p, warnings)
	}
}

func TestPlanByDefault(t *testing.T) {
	for file, want := range map[string]*Plan{
		"engine: plan": nil, "plan: ": nil, "plan: {}": {Mode: PlanApprove, Approvals: 1},
		"plan: {mode: preview}": {Mode: PlanPreview, Approvals: 1}, "plan: []": {Mode: PlanPreview, Approvals: 1},
	} {
		c, _ := load(t, "agents:\n  default:\n    "+file+"\n", nil)
		if got := c.Agents.Profiles[DefaultProfile].Engine.Plan; !reflect.DeepEqual(got, want) {
			t.Errorf("%s makes %+v, want %+v", file, got, want)
		}
	}
}

// checkPlan reports settings that break their rules.
func checkPlan(t *testing.T, p Profile) {
	t.Helper()
	if p.Engine.Name != "react" && p.Engine.Name != "plan" && p.Engine.Name != "explore" {
		t.Errorf("engine %q", p.Engine.Name)
	}
	if e := p.Engine.Explore; e != nil && (e.MaxIterations < 1 || e.MaxIterations > 1000 || e.NoProgress < 1 || e.NoProgress > 1000) {
		t.Errorf("explore %+v", e)
	}
	if p.Engine.Plan == nil {
		return
	}
	d := p.Engine.Plan
	if d.Mode != PlanPreview && d.Mode != PlanApprove && d.Mode != PlanAuto || d.BudgetMicroUSD < 0 || d.Approvals < 1 || d.Approvals > 10 {
		t.Errorf("plan %+v", d)
	}
	if d.Mode != PlanPreview && d.Approvals > 1 && len(d.Approvers) < d.Approvals {
		t.Errorf("plan that cannot be approved: %+v", d)
	}
	if q := d.Quiet; q != nil && (q.From < 0 || q.To < 0 || q.From >= 24*time.Hour || q.To > 24*time.Hour || q.From == q.To || q.What == "") {
		t.Errorf("quiet %+v", q)
	}
	for _, in := range d.Intents {
		if in.Name == "" || in.Description == "" {
			t.Errorf("intent %+v", in)
		}
		for _, q := range in.Inputs {
			if q.Key == "" || q.Valid() != nil {
				t.Errorf("input %+v: %v", q, q.Valid())
			}
		}
	}
	for tool, rate := range d.Rates {
		if !forms["tool"].looks.MatchString(tool) || !forms["rate"].looks.MatchString(rate) {
			t.Errorf("rate %q of %q", rate, tool)
		}
	}
}
