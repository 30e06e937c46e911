package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// The table of who may do what, whatever the model says.
func TestJudge(t *testing.T) {
	const a, q, r = tools.Allow, tools.Ask, tools.Refuse
	rows := []struct {
		in   tools.Situation
		want [6]tools.Verdict // inside, schedule, outward and listed, outward, authority, host
	}{
		{tools.Situation{}, [6]tools.Verdict{a, a, a, q, q, r}},
		{tools.Situation{Tainted: true}, [6]tools.Verdict{a, q, a, q, r, r}},
		{tools.Situation{Nobody: true}, [6]tools.Verdict{a, a, a, r, r, r}},
		{tools.Situation{Tainted: true, Nobody: true}, [6]tools.Verdict{a, r, a, r, r, r}},
	}
	columns := []struct {
		class  tools.Class
		listed bool
	}{{tools.Inside, false}, {tools.Schedule, false}, {tools.Outward, true}, {tools.Outward, false}, {tools.Authority, true}, {tools.Host, true}}
	for _, row := range rows {
		for i, c := range columns {
			if got := tools.Judge(row.in, tools.Spec{Class: c.class}, c.listed); got != row.want[i] {
				t.Errorf("%+v, %v, listed %v: %v, want %v", row.in, c.class, c.listed, got, row.want[i])
			}
		}
	}
	if got := tools.Judge(tools.Situation{}, tools.Spec{Class: 99}, true); got != r {
		t.Errorf("an unknown class: %v", got)
	}
}

func TestPermits(t *testing.T) {
	for _, tt := range []struct {
		pattern, subject string
		want             bool
	}{
		{"git status*", "git status", true},
		{"git status*", "git status --short src/*.go", true},
		{"git status*", "git statu", false},
		{"git status", "git status --short", false},
		{"*", "", true},
		{"*.example.org", "docs.example.org", true},
		{"*.example.org", "example.org", false},
		{"*.example.org", "docs.example.org.evil.test", false},
		{"a*b*c", "aXbXbYc", true},
		{"a*b*c", "aXcXb", false},
		{"ls; pwd", "ls; pwd", true}, // written out
		{"ls; *", "ls; pwd", true},
		{"ls; *", "ls; pwd; rm -rf /", false},
		{"ä*", "äöü", true},
		{"a?", "ab", false}, // no other sign is special
		{"[a]", "a", false},
	} {
		if got := tools.Permits(tt.pattern, tt.subject); got != tt.want {
			t.Errorf("%q on %q = %v", tt.pattern, tt.subject, got)
		}
	}
	for _, joined := range []string{
		"; rm -rf /", " && rm x", " | sh", " & rm x", " > x", " < x", " $(rm x)", " `rm x`", " ${IFS}x", " {a,b}", " (x)",
		"\nrm x", "\rrm x", " \\\nrm", " 'x'", ` "x"`, "\x00x", "\x1b[2K", "\u2028x", "\tx", "\xffx",
	} {
		if tools.Permits("git status*", "git status"+joined) || tools.Permits("*", joined) || tools.Permits("*git*status*", "git status"+joined) {
			t.Errorf("a pattern lets %q through", joined)
		}
	}
	if tools.Permits("*", strings.Repeat("a", 10_001)) {
		t.Error("a subject that is too long fits")
	}
}

// command is the subject of the tools below.
func command(args json.RawMessage) string {
	var in struct{ Command string }
	_ = json.Unmarshal(args, &in) // it was checked
	return in.Command
}

func TestDecide(t *testing.T) {
	shell := tools.Spec{Tool: llm.Tool{Name: "shell"}, Confirm: true, Subject: command}
	inside := tools.Spec{Tool: llm.Tool{Name: "shell"}, Subject: command}
	fetch := tools.Spec{
		Tool: llm.Tool{Name: "fetch_url"}, Class: tools.Outward, Effect: tools.ReadOnly,
		Listed: func(env tools.Env, _ json.RawMessage) bool {
			return !env.Tainted || env.Wrote != nil && env.Wrote("https://example.org/")
		},
	}
	unlisted := fetch
	unlisted.Listed, unlisted.PerSubject, unlisted.Subject = nil, true, command
	mail := tools.Spec{Tool: llm.Tool{Name: "mail"}, Class: tools.Outward}
	remind := tools.Spec{Tool: llm.Tool{Name: "remind_me"}, Class: tools.Schedule}
	grant := tools.Spec{Tool: llm.Tool{Name: "grant"}, Class: tools.Authority}
	broken := tools.Spec{Tool: llm.Tool{Name: "broken"}, Class: tools.Outward, Listed: func(tools.Env, json.RawMessage) bool { panic("x") }}
	tainted := []claybot.Record{{Type: claybot.RecordTool, Tainted: true}}
	wrote := []claybot.Record{{Type: claybot.RecordUser, Text: "Read example.org, please."}, tainted[0]}
	session := []claybot.Record{
		{Type: claybot.RecordQuestion, Question: &claybot.Question{ID: "q", Type: claybot.QuestionConfirm, Tool: "mail"}},
		{Type: claybot.RecordAnswer, Answer: &claybot.Answer{Question: "q", Value: json.RawMessage("true"), Scope: claybot.ApproveSession}},
	}
	one := []claybot.Record{
		{Type: claybot.RecordQuestion, Question: &claybot.Question{ID: "q", Type: claybot.QuestionConfirm, Tool: "fetch_url", Rule: "fetch_url(git status -s)"}},
		{Type: claybot.RecordAnswer, Answer: &claybot.Answer{Question: "q", Value: json.RawMessage("true")}},
	}
	denied := []claybot.Record{one[0], {Type: claybot.RecordAnswer, Answer: &claybot.Answer{Question: "q", Value: json.RawMessage("false")}}}
	confirm := func(tool string, when tools.Confirm) tools.Rules {
		return tools.Rules{Confirm: []tools.Confirming{{Tools: tool, When: when}}}
	}
	always := func(rules ...string) tools.Rules { return tools.Rules{Always: rules} }
	status := `{"command":"git status -s"}`
	for _, tt := range []struct {
		name    string
		rules   tools.Rules
		spec    tools.Spec
		args    string
		history []claybot.Record
		want    tools.Verdict
	}{
		{"contained shell", tools.Rules{}, inside, status, tainted, tools.Allow},
		{"shell on the machine", tools.Rules{}, shell, status, nil, tools.Ask},
		{"never", confirm("sh*", tools.ConfirmNever), shell, status, nil, tools.Allow},
		{"always", confirm("*", tools.ConfirmAlways), inside, status, nil, tools.Ask},
		{"unless allowed, not", confirm("*", tools.ConfirmUnlessAllowed), inside, status, nil, tools.Ask},
		{"unless allowed", tools.Rules{Confirm: confirm("*", tools.ConfirmUnlessAllowed).Confirm, Allow: []string{"shell(git status*)"}}, inside, status, nil, tools.Allow},
		{"allowed, by the tool alone", tools.Rules{Allow: []string{"sh*"}}, shell, status, nil, tools.Allow},
		{"allowed is another command", tools.Rules{Allow: []string{"shell(git status*)"}}, shell, `{"command":"git status; rm -rf /"}`, nil, tools.Ask},
		{"allowed is another tool", tools.Rules{Allow: []string{"sh(git status*)"}}, shell, status, nil, tools.Ask},
		{"allow that cannot be read", tools.Rules{Allow: []string{"shell(git", "shell()", "[s"}}, shell, status, nil, tools.Ask},
		{"always wins over allow", tools.Rules{Ask: []string{"shell"}, Allow: []string{"shell"}}, shell, status, nil, tools.Ask},
		{"first word counts", tools.Rules{Confirm: []tools.Confirming{{"shell", tools.ConfirmNever}, {"*", tools.ConfirmAlways}}}, shell, status, nil, tools.Allow},
		{"unreadable asks", confirm("[", tools.ConfirmNever), inside, status, nil, tools.Ask},
		{"unknown word asks", confirm("*", "perhaps"), inside, status, nil, tools.Ask},
		{"a person's rule", always("shell(git status -s)"), shell, status, nil, tools.Allow},
		{"a person's rule is not a pattern", always("shell(git status*)"), shell, status, nil, tools.Ask},
		{"a person's rule for the tool", always("mail"), mail, "{}", tainted, tools.Allow},
		{"several must approve", tools.Rules{Always: []string{"mail"}, Quorum: 2}, mail, "{}", session, tools.Ask},
		{"clean fetch", tools.Rules{}, fetch, "{}", nil, tools.Allow},
		{"tainted fetch", tools.Rules{}, fetch, "{}", tainted, tools.Ask},
		{"tainted fetch of what the person wrote", tools.Rules{}, fetch, "{}", wrote, tools.Allow},
		{"after a reset", tools.Rules{}, fetch, "{}", append(tainted[:1:1], claybot.Record{Type: claybot.RecordReset}), tools.Allow},
		{"a subject that was approved once", tools.Rules{}, unlisted, status, append(tainted[:1:1], one...), tools.Allow},
		{"another subject", tools.Rules{}, unlisted, `{"command":"git push"}`, append(tainted[:1:1], one...), tools.Ask},
		{"a subject that was denied", tools.Rules{}, unlisted, status, append(tainted[:1:1], denied...), tools.Ask},
		{"a subject that was approved before the taint", tools.Rules{}, unlisted, status, append(one[:2:2], tainted[0]), tools.Ask},
		{"a subject that was approved before a reset", tools.Rules{}, unlisted, status, append(one[:2:2], claybot.Record{Type: claybot.RecordReset}), tools.Ask},
		{"clean reminder", tools.Rules{}, remind, "{}", nil, tools.Allow},
		{"tainted reminder", tools.Rules{}, remind, "{}", tainted, tools.Ask},
		{"mail", tools.Rules{}, mail, "{}", nil, tools.Ask},
		{"mail in the session", tools.Rules{}, mail, "{}", session, tools.Allow},
		{"session before the taint", tools.Rules{}, mail, "{}", append(session[:2:2], tainted[0]), tools.Ask},
		{"session after it", tools.Rules{}, mail, "{}", append(tainted[:1:1], session...), tools.Allow},
		{"authority asks", tools.Rules{Always: []string{"*"}, Allow: []string{"grant"}, Confirm: confirm("*", tools.ConfirmNever).Confirm}, grant, "{}", nil, tools.Ask},
		{"tainted authority", tools.Rules{}, grant, "{}", tainted, tools.Refuse},
		{"host", confirm("*", tools.ConfirmNever), tools.Spec{Tool: llm.Tool{Name: "x"}, Class: tools.Host}, "{}", nil, tools.Refuse},
		{"a hook that panics", tools.Rules{}, broken, "{}", nil, tools.Ask},
	} {
		call := claybot.ToolCall{ID: "a", Name: tt.spec.Name, Args: tt.args}
		got := tt.rules.Decide(t.Context(), tools.Env{}.Aware(tt.history), tt.spec, call, tt.history)
		if got.Verdict != tt.want || (got.Why == "") != (got.Verdict == tools.Allow) {
			t.Errorf("%s: %v %q, want %v", tt.name, got.Verdict, got.Why, tt.want)
		}
	}
}

func TestRule(t *testing.T) {
	spec := tools.Spec{Tool: llm.Tool{Name: "shell"}, Subject: command}
	for _, tt := range []struct {
		spec tools.Spec
		args string
		want string
	}{
		{spec, `{"command":"git (x)*"}`, "shell(git (x)*)"},
		{spec, `{}`, ""},
		{spec, `{"command":"` + strings.Repeat("a", 500) + `"}`, ""},
		{tools.Spec{Tool: llm.Tool{Name: "mail"}}, `{}`, "mail"},
		{tools.Spec{Tool: llm.Tool{Name: "mail"}, Class: tools.Outward}, `{ "to":"ann", "text":"hi" }`, `mail({"text":"hi","to":"ann"})`},
		{tools.Spec{Tool: llm.Tool{Name: "mail"}, Source: "mcp:mail"}, `{}`, "mail({})"},
		{tools.Spec{Tool: llm.Tool{Name: "mail"}, Class: tools.Outward}, `{"a":1,"a":2}`, ""},
		{tools.Spec{Tool: llm.Tool{Name: "click"}, SubjectIn: func(tools.Env, json.RawMessage) string { return "here" }}, `{}`, ""},
	} {
		got, ok := tools.Rule(tt.spec, claybot.ToolCall{Name: tt.spec.Name, Args: tt.args})
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q %v", tt.args, got, ok)
		}
	}
	q, err := tools.Approval(claybot.Agent{ID: "a"}, "docker, no network", spec, claybot.ToolCall{Name: "shell", Args: `{ "command":"ls" }`}, tools.Grounds{})
	if err != nil || q.Rule != "shell(ls)" || q.Args != `{"command":"ls"}` || q.Once {
		t.Errorf("%+v %v", q, err)
	}
	if q.Digest == tools.Digest("a", "", claybot.ToolCall{Name: "shell", Args: q.Args}) {
		t.Error("the digest does not say where")
	}
}

// What a person approved for good of a tool that sends something out is that and
// nothing else.
func TestRuleIsBound(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for _, spec := range []tools.Spec{
		{Tool: llm.Tool{Name: "mail"}, Class: tools.Outward},
		{Tool: llm.Tool{Name: "mail"}, Class: tools.Outward, Source: "mcp:mail"},
	} {
		for _, approved := range []string{`{"to":"ann","text":"hi"}`, `{"to":"ann","text":"` + long + `"}`} {
			mail := func(args string) claybot.ToolCall { return claybot.ToolCall{ID: "a", Name: "mail", Args: args} }
			rule, ok := tools.Rule(spec, mail(approved))
			if !ok || len(rule) > 500 {
				t.Fatalf("%.100q %v", rule, ok)
			}
			rules := tools.Rules{Always: []string{rule}}
			for args, want := range map[string]tools.Verdict{
				approved: tools.Allow, " " + approved: tools.Allow,
				`{"to":"bob","text":"hi"}`: tools.Ask, `{"to":"ann","text":"` + long + `b"}`: tools.Ask, `{}`: tools.Ask,
			} {
				if got := rules.Decide(t.Context(), tools.Env{Tainted: true}, spec, mail(args), nil).Verdict; got != want {
					t.Errorf("%.60s approved, %.60s: %v, want %v", approved, args, got, want)
				}
			}
			if got := (tools.Rules{Allow: []string{"mail"}}).Decide(t.Context(), tools.Env{}, spec, mail(`{"to":"bob"}`), nil).Verdict; got != tools.Allow {
				t.Errorf("the operator's rule: %v", got)
			}
		}
	}
}

// What only the place of a call says is what rules are about, and is shown.
func TestSubjectIn(t *testing.T) {
	spec := tools.Spec{Tool: llm.Tool{Name: "click"}, Class: tools.Outward, SubjectIn: func(env tools.Env, _ json.RawMessage) string { return env.Route.ThreadID }}
	call := claybot.ToolCall{ID: "a", Name: "click", Args: `{"action":3}`}
	shop := tools.Env{Route: claybot.Route{ThreadID: "shop.test: button Buy"}}
	q, err := tools.Approval(claybot.Agent{ID: "a"}, "", spec.In(shop), call, tools.Grounds{})
	if err != nil || q.Once || q.Rule != "click(shop.test: button Buy)" || !strings.Contains(q.Text, "\nIt is about `shop.test: button Buy`.") {
		t.Errorf("%+v %v", q, err)
	}
	rules := tools.Rules{Always: []string{q.Rule}}
	if got := rules.Decide(t.Context(), shop, spec, call, nil).Verdict; got != tools.Allow {
		t.Errorf("approved: %v", got)
	}
	if got := rules.Decide(t.Context(), tools.Env{Route: claybot.Route{ThreadID: "shop.test: button Delete"}}, spec, call, nil).Verdict; got != tools.Ask {
		t.Errorf("another button: %v", got)
	}
	q, err = tools.Approval(claybot.Agent{ID: "a"}, "", spec.In(tools.Env{}), call, tools.Grounds{})
	if err != nil || !q.Once || !strings.Contains(q.Text, "What it is about is unknown now.") {
		t.Errorf("%+v %v", q, err)
	}
}

// A person's words grant exactly the pages that they wrote.
func TestWrote(t *testing.T) {
	history := []claybot.Record{
		{Type: claybot.RecordUser, Text: "Summarize https://Docs.Example.org/x?y=1#z. Then look at shop.test/a/b, (http://plain.test:8080) and [this](https://wiki.test/A_(b)), please!"},
		{Type: claybot.RecordUser, Text: "Mail it to ann@mail.test and bob@other.test/x. See 10.0.0.1/, example.com; e.g. version 1.2"},
		{Type: claybot.RecordUser, Text: "https://forwarded.test/", Tainted: true},
		{Type: claybot.RecordUser, Quote: "https://quoted.test/"},
		{Type: claybot.RecordTool, Text: "https://page.test/"},
	}
	env := tools.Env{}.Aware(history)
	if !env.Tainted {
		t.Error("it is not tainted")
	}
	for address, want := range map[string]bool{
		"https://docs.example.org/x?y=1": true, "https://DOCS.example.org/x?y=1#other": true,
		"https://shop.test/a/b": true, "http://shop.test/a/b": true,
		"http://plain.test:8080/": true, "https://plain.test:8080": true, "https://wiki.test/A_(b)": true,
		"http://10.0.0.1/": true, "https://example.com": true, "https://example.com/": true,

		"https://docs.example.org/x": false, "https://docs.example.org/leak?d=1": false, "https://docs.example.org/": false,
		"http://docs.example.org/x?y=1": false, "https://docs.example.org/x?y=1&d=2": false, "https://docs.example.org:444/x?y=1": false,
		"https://shop.test/a": false, "https://shop.test/a/b/": false, "https://shop.test/a/b?c": false, "https://user@shop.test/a/b": false,
		"http://plain.test/": false, "https://example.org/": false, "https://example.com/x": false,
		"https://mail.test/": false, "https://other.test/x": false, "https://forwarded.test/": false, "https://quoted.test/": false, "https://page.test/": false,
		"": false, "example.com": false, "ftp://example.com/": false, "https://": false,
	} {
		if got := env.Wrote(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

func TestSpent(t *testing.T) {
	var s tools.Spent
	if s.Over(tools.Limits{}) != "" {
		t.Error("nothing is too much")
	}
	s.Add(claybot.Record{MS: 1999, Text: "12345"})
	s.Add(claybot.Record{MS: -5})
	for _, tt := range []struct {
		limits tools.Limits
		want   string
	}{
		{tools.Limits{}, ""},
		{tools.Limits{Time: 2 * time.Second, Output: 6}, ""},
		{tools.Limits{Time: 1999 * time.Millisecond}, "1.999s"},
		{tools.Limits{Output: 5}, "5 bytes"},
		{tools.Limits{Time: -1, Output: -1}, ""},
	} {
		if got := s.Over(tt.limits); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%+v: %q", tt.limits, got)
		}
	}
}

func FuzzPermits(f *testing.F) {
	f.Add("git status*", "git status; rm")
	f.Add("*a*", "aaa")
	f.Fuzz(func(t *testing.T, pattern, subject string) {
		if !tools.Permits(pattern, subject) {
			return
		}
		for _, joiner := range ";&|<>$`\n" { // only what is written out in the pattern can be in the subject
			if strings.Count(subject, string(joiner)) > strings.Count(pattern, string(joiner)) {
				t.Errorf("%q lets %q through", pattern, subject)
			}
		}
	})
}

// What belongs to a program is for the approvers that rules name; what belongs to a person is
// for that person alone.
func TestDisclosureOfProgram(t *testing.T) {
	named := tools.Rules{Approvers: []string{"telegram/7"}, Always: []string{"pass"}, Allow: []string{"pass"}}
	for _, tt := range []struct {
		name    string
		rules   tools.Rules
		program bool
		want    tools.Verdict
		owners  int
	}{
		{"a program, with approvers", named, true, tools.Ask, 0},
		{"a program, without", tools.Rules{}, true, tools.Ask, 1},
		{"a person, with approvers", named, false, tools.Refuse, 0},
		{"a person, without", tools.Rules{}, false, tools.Ask, 1},
	} {
		spec := tools.Spec{Tool: llm.Tool{Name: "pass"}, Discloses: func(context.Context, tools.Env, json.RawMessage) *tools.Disclosure {
			return &tools.Disclosure{Owners: []string{"ci/ci"}, Program: tt.program, Text: "all will know"}
		}}
		got := tt.rules.Decide(t.Context(), tools.Env{}, spec, claybot.ToolCall{ID: "a", Name: "pass", Args: "{}"}, nil)
		if got.Verdict != tt.want || len(got.Owners) != tt.owners {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
