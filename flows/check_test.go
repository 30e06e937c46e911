package flows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm/prompts"
)

// small is the world of the tests.
var small = flows.World{
	Uses: func(text string) (all []flows.Use, err error) {
		template, err := prompts.Parse("", text)
		if err != nil {
			return nil, err
		}
		for _, u := range template.Uses() {
			all = append(all, flows.Use(u))
		}
		return all, nil
	},
	Near:       configs.Nearest,
	Profiles:   []string{"default", "support"},
	Connectors: []string{"slack", "telegram", "shop"},
	Flows:      []string{"sub"},
	Models:     func(string) []string { return []string{"small", "large"} },
	Tools: func(string) map[string]flows.Params {
		return map[string]flows.Params{"web_search": {All: []string{"query"}, Required: []string{"query"}}, "pay": {Open: true}}
	},
	Owner: named, Route: named,
	Secret: func(reference string) error {
		if reference == "env:MISSING" {
			return errors.New("the secret cannot be read")
		}
		return nil
	},
	Secrets: func(text string) (kinds []string) {
		if strings.Contains(text, "sk-") {
			kinds = append(kinds, "an API key")
		}
		return kinds
	},
	Cron: func(v string) error {
		if len(strings.Fields(v)) != 5 {
			return fmt.Errorf("%q has no five fields", v)
		}
		return nil
	},
}

// A budget in money refuses each call of a model without a price.
func TestCheckBudgetWithoutPrice(t *testing.T) {
	world := small
	world.Unpriced = func(profile, model string) string {
		switch {
		case profile != "support":
			t.Errorf("asked for the profile %q", profile)
		case model == "":
			return "own"
		}
		return ""
	}
	const file = "owner: slack/U1\nprofile: support\nlimits: {%s}\nstart: a\nnodes:\n  a: {kind: agent, prompt: x, next: b}\n  b: {kind: agent, prompt: x, model: large, next: END}\n"
	for limits, want := range map[string]string{
		"budget: 1": `f.yaml:3: limits.budget: claybot knows no price of "own", the model of the node "a", so each run fails there with the code budget; set model.prices, or use limits.tokens`,
		"tokens: 1": "",
	} {
		f, faults := configs.ReadFlow("f.yaml", []byte(fmt.Sprintf(file, limits)))
		faults = append(faults, flows.Check(&f, world)...)
		got := ""
		for _, x := range faults {
			got += fmt.Sprintf("f.yaml:%d: %s: %s", x.Line, x.Key, x.Text)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", limits, got, want)
		}
	}
}

func named(v string) error {
	if !strings.Contains(v, "/") {
		return fmt.Errorf("%q is not connector/id", v)
	}
	return nil
}

// faultsOf reads and checks the text of a flow.
func faultsOf(text string) (all []string) {
	f, faults := configs.ReadFlow("flow.yaml", []byte(text))
	if len(faults) == 0 {
		faults = flows.Check(&f, small)
	}
	for _, x := range faults {
		all = append(all, x.String())
	}
	return all
}

// good is a flow in which each fault below is planted, by one replacement.
const good = `owner: slack/U1
profile: support
concurrency: {max: 20, key: "{{ trigger.channel }}", busy: cancel}
time: 2h
on_failure: [owner, slack/C1]
triggers:
  chat: {on: slack, channel: C1}
  said: {on: slack, channel: C1, mention: true}
  daily: {cron: "0 9 * * *", text: go}
start: ask
nodes:
  ask: {kind: agent, model: small, tools: [web_search], output: {kind: [a, b], n: integer}, prompt: "{{ trigger.text }}", next: route, error: sorry}
  route: {kind: switch, value: "{{ ask.kind }}", cases: {a: find}, else: again}
  find: {kind: tool, tool: web_search, args: {query: "{{ ask.n }}"}, approve: {by: [slack/U7]}, next: all}
  all: {kind: each, over: "{{ find.hits }}", prompt: "{{ index }} {{ item }}", next: sure}
  sure: {kind: ask, type: select, options: [x, y], text: "{{ all.output }}?", by: [slack/U7], next: rest}
  rest: {kind: wait, for: 1h, next: both}
  both: {kind: parallel, join: any, branches: {x: {kind: agent, prompt: "{{ ask.n }}"}, y: {kind: flow, flow: sub}}, next: tell}
  again: {kind: template, max_visits: 3, value: "{{ error.code | default('') }}", next: more}
  more: {kind: tool, max_visits: 3, tool: pay, next: back}
  back: {kind: switch, max_visits: 3, value: "{{ more.text }}", cases: {again: again}, else: tell}
  sorry: {kind: reply, to: [trigger, slack/C2], text: "{{ error.text }}", next: END}
  tell: {kind: reply, text: "{{ sure.output | default('none') }} {{ trigger.user.name }}", next: END}
`

// Each planted fault is found, at its line, with the word that was meant.
func TestPlantedFaults(t *testing.T) {
	if got := faultsOf(good); len(got) > 0 {
		t.Fatalf("the good flow: %q", got)
	}
	for i, tt := range []struct{ from, to, want string }{
		{"owner: slack/U1", "owners: slack/U1", "1: owners"},
		{"owner: slack/U1\n", "owner: U1\n", "1: owner"},
		{"profile: support", "profile: suport", "2: profile: there is no profile"},
		{"trigger.channel }}", "trigger.chanel }}", "3: concurrency.key: trigger has no field"},
		{"busy: cancel", "busy: cancl", "3: concurrency.busy: \"cancl\" is not one of queue, skip, cancel"},
		{"key: \"{{ trigger.channel }}\", ", "", "3: concurrency.busy: needs key"},
		{"max: 20", "max: 0", "3: concurrency.max: "},
		{"max: 20", "mx: 20", "3: concurrency.mx: unknown key; did you mean max?"},
		{"concurrency: {", "concurency: {", "3: concurency: unknown key; did you mean concurrency?"},
		{"trigger.channel }}", "ask.kind }}", "3: concurrency.key: ask may not have run"},
		{"profile: support", "agents: [default, suport]", "2: agents: there is no profile \"suport\"; did you mean support?"},
		{"time: 2h", "time: soon", "4: time"},
		{"time: 2h", "time: 99d", "4: time"},
		{"on_failure: [owner, slack/C1]", "on_failure: [ownr]", "5: on_failure"},
		{"chat: {on: slack,", "chat: {on: slak,", "7: triggers.chat.on: there is no connector \"slak\"; did you mean slack?"},
		{"chat: {on: slack,", "chat: {", "7: triggers.chat: want on"},
		{"chat: {on: slack,", "2chat: {on: slack,", "7: triggers.2chat"},
		{", mention: true", "", "8: triggers.said: takes messages"},
		{"daily: {cron:", "daily: {on: shop, cron:", "9: triggers.daily: want on or cron"},
		{"0 9 * * *", "0 9 * *", "9: triggers.daily.cron"},
		{"text: go}", "match: go}", "9: triggers.daily.match: belongs to a trigger with on"},
		{"start: ask", "start: aks", "10: start: there is no node \"aks\"; did you mean ask?"},
		{"start: ask", "start: END", "10: start: the flow begins with its end"},
		{"ask: {kind: agent,", "ask: {kind: agnt,", "12: nodes.ask.kind: there is no kind"},
		{"ask: {kind: agent,", "ask: {", "12: nodes.ask: the node has no kind"},
		{"model: small", "model: smal", "12: nodes.ask.model"},
		{"tools: [web_search]", "tools: [websearch]", "12: nodes.ask.tools"},
		{"model: small,", "model: small, engine: pln,", "12: nodes.ask.engine: \"pln\" is not one of react, plan"},
		{"ask: {kind: agent,", "ask: {kind: plan, engine: plan,", "12: nodes.ask.engine: is what the kind says already"},
		{"tools: [web_search], output", "engine: plan, output", "12: nodes.ask.tools: is missing: a plan"},
		{"ask: {kind: agent,", "ask: {kind: deep, files: stat,", "12: nodes.ask.files: \"stat\" is not one of state"},
		{"ask: {kind: agent,", "ask: {kind: deep, todo: false,", "12: nodes.ask.todo: unknown key; did you mean todos?"},
		{"ask: {kind: agent,", "ask: {kind: deep, subagents: [{name: a, description: b}],", "12: nodes.ask.subagents[0]: has no system_prompt"},
		{"ask: {kind: agent,", "ask: {kind: deep, subagents: [{name: a, description: b, system_prompt: c, model: smal}],", "12: nodes.ask.subagents.a.model: there is no model \"smal\" in the profile; did you mean small?"},
		{"ask: {kind: agent,", "ask: {kind: deep, subagents: [{name: a, description: b, system_prompt: c, tools: [web_serch]}],", "12: nodes.ask.subagents.a.tools: \"web_serch\" is none of the tools of the node; did you mean web_search?"},
		{"ask: {kind: agent,", "ask: {kind: deep, subagents: [{name: a, description: b, system_prompt: \"{{ x }}\"}],", "12: nodes.ask.subagents: is no template"},
		{"ask: {kind: agent,", "ask: {kind: agent, todos: true,", "12: nodes.ask.todos: unknown key"},
		{"model: small,", "model: small, memory: always,", "12: nodes.ask.memory: \"always\" is not one of on, off"},
		{"model: small,", "model: small, memory: on, thread: nod,", "12: nodes.ask.thread: \"nod\" is not one of flow, node"},
		{"model: small,", "model: small, thread: node,", "12: nodes.ask.thread: belongs to memory: on"},
		{"all: {kind: each,", "all: {kind: each, memory: on,", "15: nodes.all.memory: the agents of a list"},
		{"model: small,", "model: small, memry: on,", "12: nodes.ask.memry: unknown key; did you mean memory?"},
		{"n: integer", "n: integr", "12: nodes.ask.output.n"},
		{"n: integer", "output: integer", "12: nodes.ask.output.output: is a name"},
		{"{{ trigger.text }}", "{{ trigger.text", "12: nodes.ask.prompt"},
		{"{{ trigger.text }}", "{{ env.KEY }}", "12: nodes.ask.prompt: \"env\""},
		{"error: sorry}", "error: sory}", "12: nodes.ask.error: there is no node \"sory\"; did you mean sorry?"},
		{"{{ ask.kind }}", "{{ ask.knd }}", "13: nodes.route.value: ask has no field"},
		{"cases: {a: find}", "cases: {a: fnd}", "13: nodes.route.cases: there is no node"},
		{"cases: {a: find}", "cases: {\"{{ x }}\": find}", "13: nodes.route.cases: is no template"},
		{", else: again}", "}", "13: nodes.route.else: is missing"},
		{"tool: web_search", "tool: web_serch", "14: nodes.find.tool: the profile has no tool \"web_serch\"; did you mean web_search?"},
		{"{query:", "{qury:", "14: nodes.find.args.query: is missing"},
		{"approve: {by: [slack/U7]}", "approve: {by: [U7]}", "14: nodes.find.approve.by"},
		{"next: all}", "timeout: 1m, next: all}", "14: nodes.find.timeout: only an agent and a flow have one"},
		{"over: \"{{ find.hits }}\", ", "", "15: nodes.all.over: is missing"},
		{"{{ index }} {{ item }}", "{{ itm }}", "15: nodes.all.prompt"},
		{"type: select", "type: selct", "16: nodes.sure.type"},
		{"options: [x, y], ", "", "16: nodes.sure.options"},
		{"by: [slack/U7], next", "denied: tell, by: [slack/U7], next", "16: nodes.sure.denied: only a confirm"},
		{"for: 1h, ", "", "17: nodes.rest: want for"},
		{"for: 1h", "for: 40d", "17: nodes.rest.for"},
		{"for: 1h", "for: 1h, expired: tell", "17: nodes.rest.expired: belongs to event: callback"},
		{"for: 1h", "event: calback", "17: nodes.rest.event: \"calback\" is not one of callback"},
		{"for: 1h", "event: callback, until: now", "17: nodes.rest.until: belongs to a wait without event"},
		{"for: 1h", "event: callback, expired: tel", "17: nodes.rest.expired: there is no node \"tel\"; did you mean tell?"},
		{"for: 1h", "event: callback, expird: tell", "17: nodes.rest.expird: unknown key; did you mean expired?"},
		{"{{ ask.n }}\"}, approve", "{{ rest.callback }}\"}, approve", "14: nodes.find.args.query: rest may not have run"}, // it waits for no call
		{"for: 1h", "for: 1h, tries: 2", "17: nodes.rest.tries"},
		{"again: {kind: template, max_visits: 3,", "again: {kind: template,", "21: nodes.back.cases: leads back to again"},
		{"max_visits: 3, tool: pay", "max_visits: 3000, tool: pay", "20: nodes.more.max_visits"},
		{"slack/C2], text", "\"slack/{{ x }}\"], text", "22: nodes.sorry.to: is no template"},
		{"sure.output | default('none')", "sure.output", "23: nodes.tell.text: sure may not have run"},
		{"next: END}\n  tell", "}\n  tell", "22: nodes.sorry.next: is missing"},
		{"else: tell}\n  sorry", "else: call}\n  call: {kind: http, url: \"ftp://example.org/\", next: tell}\n  sorry", "22: nodes.call.url: begins with http"},
		{"else: tell}\n  sorry", "else: call}\n  call: {kind: http, url: \"https://example.org/\", headers: {Authorization: \"env:MISSING\"}, next: tell}\n  sorry", "22: nodes.call.headers.Authorization: the secret cannot be read"},
		{"else: tell}\n  sorry", "else: call}\n  call: {kind: http, url: \"https://example.org/\", headers: {Authorization: \"Bearer sk-1\"}, next: tell}\n  sorry", "22: nodes.call.headers.Authorization: has an API key"},
		{"else: tell}\n  sorry", "else: call}\n  call: {kind: http, url: \"https://example.org/\", body: {key: \"env:SHOP_KEY\"}, next: tell}\n  sorry", "22: nodes.call.body.key: only a header"},
		{"query: \"{{ ask.n }}\"", "query: \"file:/run/secrets/shop\"", "14: nodes.find.args.query: only a header"},
		{"text: \"{{ error.text }}\"", "text: \"key sk-1\"", "22: nodes.sorry.text: has an API key"},
		{"options: [x, y]", "options: [x, sk-1]", "16: nodes.sure.options: has an API key"},
		{"  tell: {", "  lost: {kind: wait, for: 1h, next: END}\n  tell: {", "23: nodes.lost: no edge leads here"},
		{"  tell: {", "  user: {kind: wait, for: 1h, next: tell}\n  tell: {", "23: nodes.user: user is a name"},
		{"  tell: {", "  tell: {kind: wait, for: 1h, next: END}\n  tell: {", "24: nodes.tell"},
		{"kind: reply, text: \"{{ sure", "kind: reply, txt: \"{{ sure", "23: nodes.tell.txt"},
		{"cases: {a: find}", "cases: &x {a: find}, note: *x", "13: nodes.route.note"},
		{"join: any", "join: anny", "18: nodes.both.join: \"anny\" is not all, any or a number from 1 to 2; did you mean any?"},
		{"join: any", "join: 3", "18: nodes.both.join: \"3\" is not all, any or a number from 1 to 2"},
		{"join: any", "on_eror: stop, join: any", "18: nodes.both.on_eror: unknown key; did you mean on_error?"},
		{"join: any", "on_error: collect, join: any", "18: nodes.both.on_error: belongs to join: all"},
		{"join: any", "timeout: 5m, join: any", "18: nodes.both.timeout: only an agent and a flow have one"},
		{", y: {kind: flow, flow: sub}}", "}", "18: nodes.both.branches: is missing: at least two"},
		{"y: {kind: flow, flow: sub}", "first: {kind: flow, flow: sub}", "18: nodes.both.branches.first: is a name that every node with branches has already"},
		{"y: {kind: flow, flow: sub}", "y: {kind: flow, flow: sbu}", "18: nodes.both.branches.y.flow: there is no flow \"sbu\"; did you mean sub?"},
		{"y: {kind: flow, flow: sub}", "y: {kind: flow, flow: sub, wait: false}", "18: nodes.both.branches.y.wait: a branch ends with its flow"},
		{"y: {kind: flow, flow: sub}", "y: {kind: tool, tool: pay}", "18: nodes.both.branches.y.kind: a branch is of one of the kinds agent, deep, plan, flow"},
		{"y: {kind: flow, flow: sub}", "y: {kind: agnt, prompt: x}", "18: nodes.both.branches.y.kind: there is no kind \"agnt\""},
		{"x: {kind: agent, prompt", "x: {kind: agent, next: tell, prompt", "18: nodes.both.branches.x.next: belongs to the node"},
		{"x: {kind: agent, prompt", "x: {kind: agent, memory: on, prompt", "18: nodes.both.branches.x.memory: the agents of branches"},
		{"x: {kind: agent, prompt", "x: {kind: agent, model: smal, prompt", "18: nodes.both.branches.x.model: there is no model \"smal\""},
		{"x: {kind: agent, prompt: \"{{ ask.n }}\"", "x: {kind: agent, prompt: \"{{ ask.m }}\"", "18: nodes.both.branches.x.prompt: ask has no field \"m\""},
		{"sure.output | default('none')", "both.x", "23: nodes.tell.text: both may not have run"},
		{"all: {kind: each,", "all: {kind: each, on_error: colect,", "15: nodes.all.on_error: \"colect\" is not one of stop, continue, collect"},
		{"all: {kind: each,", "all: {kind: each, at_once: 99,", "15: nodes.all.at_once: \"99\" is not a whole number from 1 to 32"},
		{"all: {kind: each,", "all: {kind: each, atonce: 2,", "15: nodes.all.atonce: unknown key; did you mean at_once?"},
	} {
		if !strings.Contains(good, tt.from) {
			t.Errorf("%d: %q is not there", i, tt.from)
			continue
		}
		got := faultsOf(strings.Replace(good, tt.from, tt.to, 1))
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, tt.want) }) {
			t.Errorf("%d: %q for %q: %q, want %q", i, tt.to, tt.from, got, tt.want)
		}
	}
}

// Good flows have no fault: triggers, then nodes.
func TestGoodFlows(t *testing.T) {
	for _, x := range [][2]string{
		{"", `a: {kind: template, value: 1, next: END}`},
		{"c: {on: telegram}", `a: {kind: reply, text: "{{ user.name }}", next: END}`},
		{"c: {on: telegram}, d: {on: telegram, match: '^x'}", `a: {kind: reply, text: "{{ trigger.files }}", next: END}`},
		{"c: {on: slack, channel: C1}, d: {on: slack, channel: C2}", `a: {kind: reply, to: [slack/C3], text: x, next: END}`},
		{"c: {on: slack, user: U1}, d: {on: slack, channel: C2}", `a: {kind: wait, until: "{{ trigger.text }}", next: END}`},
		{"c: {on: slack}, d: {on: slack, mention: true}", `a: {kind: template, value: {a: [1, "{{ now }}"]}, next: END}`},
		{"h: {on: shop}", `a: {kind: template, value: "{{ trigger.payload['a b'].c }}", next: b}, b: {kind: switch, value: "{{ a.output }}", cases: {"1": END, "true": END}, else: END}`},
		{"t: {cron: '0 9 * * *', timezone: Europe/Berlin, text: go}", `a: {kind: reply, to: [slack/C1], text: "{{ trigger.at }}", next: END}`},
		{"", `a: {kind: agent, prompt: x, next: b}, b: {kind: reply, text: "{{ a.output }} {{ a.token_usage.input }}", next: END}`},
		{"", `a: {kind: agent, prompt: x, output: {o: "/^[0-9]{1,9}$/", l: list}, next: b}, b: {kind: each, over: "{{ a.l }}", prompt: "{{ a.o }} {{ item }}", next: END}`},
		{"", `a: {kind: tool, tool: pay, args: {n: 1, deep: {x: ["{{ user.name }}"]}}, next: END, error: b}, b: {kind: reply, text: "{{ error.code }} {{ error.node }}", next: END}`},
		{"", `a: {kind: ask, text: 'Sure?', denied: c, expired: c, next: b}, b: {kind: reply, text: "{{ a.by }}", next: END}, c: {kind: reply, text: "{{ a.answered }}", next: END}`},
		{"", `a: {kind: ask, type: number, text: 'How many?', by: [slack/U2], expires: 7d, next: END}`},
		{"", `a: {kind: switch, value: x, cases: {x: b}, else: c}, b: {kind: template, value: 1, next: d}, c: {kind: template, value: 2, next: d}, d: {kind: template, value: "{{ b.output | default(c.output | default('')) }}", next: END}`},
		{"", `a: {kind: template, value: "{% if b is defined %}{{ b.output }}{% endif %}", max_visits: 2, next: b}, b: {kind: switch, max_visits: 2, value: "{{ a.output }}", cases: {x: a}, else: END}`},
		{"", `a: {kind: template, value: "{% for x in trigger.payload %}{{ loop.index }}{{ x }}{% endfor %}", next: END}`},
		{"", `a: {kind: template, value: "{% set x = user.name %}{{ x }}", next: END}`},
		{"", `a: {kind: tool, tool: web_search, tries: 5, args: {query: "{{ trigger.text }}"}, next: b}, b: {kind: template, value: "{{ nodes.a.text }} {{ a.saved | default('') }}", next: END}`},
		{"", `a: {kind: agent, timeout: 1h, tries: 1, system: "For {{ trigger.connector }}", model: large, prompt: x, note: why, next: b}, b: {kind: agent, prompt: x, memory: on, next: c}, c: {kind: agent, prompt: x, memory: on, thread: node, next: END}`},
		{"", `a: {kind: deep, prompt: x, tools: [web_search], todos: false, files: none, subagents: [{name: s, description: d, system_prompt: p, tools: [web_search]}], output: {n: number}, next: b}, b: {kind: plan, tools: [pay], prompt: "{{ a.n }}", timeout: 2h, next: c}, c: {kind: each, engine: plan, tools: [pay], over: "{{ b.output }}", prompt: "{{ item }}", next: END}`},
		{"", `a: {kind: parallel, branches: {x: {kind: agent, prompt: x}, y: {kind: deep, prompt: y}}, next: b}, b: {kind: reply, text: "{{ a.x }} {{ a.output.y }} {{ a.failed }} {{ a.token_usage.input }}", next: c}, c: {kind: parallel, join: 1, branches: {x: {kind: plan, tools: [pay], prompt: x}, y: {kind: flow, flow: sub, timeout: 2h}}, next: d}, d: {kind: reply, text: "{{ c.first }} {{ c.x | default('') }}", next: END}`},
		{"", `a: {kind: reply, text: "{{ b.callback }}", next: b}, b: {kind: wait, event: callback, for: 2d, expired: END, next: c, error: d}, c: {kind: reply, text: "{{ b.output.x }} {{ b.y }}", next: END}, d: {kind: reply, text: "{{ error.code }} {{ b.callback }}", next: END}`},
		{"", `a: {kind: each, at_once: 2, on_error: continue, over: "{{ trigger.payload }}", prompt: "{{ item }}", next: b}, b: {kind: reply, text: "{{ a.failed }}", next: END}`},
		{"", `a: {kind: http, url: "https://example.org/", headers: {Authorization: "env:SHOP_KEY", X: "file:shop key"}, body: {note: "env: SHOP is set, file:/a b"}, next: END}`},
		{"", `a: {kind: template, value: [], next: b}, b: {kind: template, value: {"no {": "brace } here"}, next: END}`},
	} {
		if got := faultsOf("owner: slack/U1\ntriggers: {" + x[0] + "}\nstart: a\nnodes: {" + x[1] + "}\n"); len(got) > 0 {
			t.Errorf("%s %s: %q", x[0], x[1], got)
		}
	}
}

// What a branch puts out that does not have to succeed may be missing.
func TestBranchMayBeMissing(t *testing.T) {
	for _, x := range []struct{ node, read string }{
		{"join: any", "a.x"}, {"join: 1", "a.output.x"}, {"on_error: continue", "a.y"},
	} {
		got := faultsOf("owner: slack/U1\nstart: a\nnodes:\n  a: {kind: parallel, " + x.node + ", branches: {x: {kind: agent, prompt: x}, y: {kind: agent, prompt: y}}, next: b}\n  b: {kind: reply, text: \"{{ " + x.read + " }}\", next: END}\n")
		if len(got) != 1 || !strings.HasPrefix(got[0], "5: nodes.b.text: "+x.read+" may be missing") {
			t.Errorf("%s, %s: %q", x.node, x.read, got)
		}
	}
}
