package prompts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// sample is data with something of everything.
func sample() Data {
	var payload any
	if err := json.Unmarshal([]byte(`{
		"n": 3, "f": 2.5, "s": "Hello World", "t": true, "nil": null, "list": ["b", "a", "c"],
		"rows": [{"name": "Ann", "age": 41}, {"name": "Bob", "age": 7}],
		"map": {"x": 1, "y": 2}, "date": "2026-03-31T15:04:05+02:00", "items": "mine"}`), &payload); err != nil {
		panic(err)
	}
	berlin := time.FixedZone("CEST", 2*60*60)
	return Data{
		Trigger: Trigger{
			Text: "please {{ 7*7 }} {% if %}", Payload: payload,
			Files: []claybot.FileReference{{ID: "f1", Name: "a.txt", MIMEType: "text/plain", Size: 12, Text: "abc"}},
			User:  User{"telegram/1", "Ann"}, Channel: "4711", Connector: "telegram", At: time.Date(2026, 3, 31, 15, 4, 5, 0, berlin),
		},
		User:  User{"telegram/1", "Ann"},
		Agent: Agent{ID: "agent1", Type: "user", Name: "helper", Profile: "default"},
		Nodes: map[string]any{
			"plan": map[string]any{"output": map[string]any{"summary": "done", "steps": []string{"one", "two"}}, "messages": []any{"m"}, "token_usage": map[string]int{"total": 9}},
			"used": map[string]any{"output": "x", "token_usage": claybot.Usage{Input: 10, Output: 2, CachedInput: 3, CostMicroUSD: 500_000, LLMCalls: 2, ToolCalls: 4}},
			"old":  map[string]any{"output": "text", "_messages": []any{"old"}, "_token_usage": map[string]any{"total": 1}},
			"a-b":  "dashed", "now": "never seen", "struct": struct {
				Output string `json:"output"`
				secret string
			}{"public", "hidden"},
		},
		Now: time.Date(2026, 11, 1, 8, 5, 9, 0, time.UTC),
		Env: map[string]string{"CITY": "Berlin"},
	}
}

func render(t *testing.T, text string, o Options) (string, []string, error) {
	t.Helper()
	tpl, err := Parse("p", text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return tpl.Render(sample(), o)
}

func TestRender(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		// names
		{"{{ trigger.text }}", "please {{ 7*7 }} {% if %}"},
		{"{{ trigger.user.name }}/{{ trigger['user']['id'] }}", "Ann/telegram/1"},
		{"{{ user.id }} {{ agent.id }} {{ agent.type }} {{ agent.name }} {{ agent.profile }}", "telegram/1 agent1 user helper default"},
		{"{{ trigger.channel }} {{ trigger.connector }} {{ trigger.at }}", "4711 telegram 2026-03-31T15:04:05+02:00"},
		{"{% for f in trigger.files %}{{ f.name }} {{ f.type }} {{ f.size }} {{ f.text }}{% endfor %}", "a.txt text/plain 12 abc"},
		{"{{ nodes.plan.output.summary }} {{ plan.output.summary }} {{ plan.summary }} {{ plan.steps[1] }}", "done done done two"},
		{"{{ plan.messages[0] }} {{ plan._messages[0] }} {{ plan.token_usage.total }} {{ plan._token_usage.total }}", "m m 9 9"},
		{"{{ used.token_usage.total }} {{ used._token_usage.cost_usd }} {{ used.token_usage.cached_input }} {{ used.token_usage.llm_calls }} {{ used.token_usage.tool_invocations }} {{ used.token_usage.input }}", "12 0.5 3 2 4 10"},
		{"{{ old.output }} {{ old.messages[0] }} {{ old.token_usage.total }}", "text old 1"},
		{"{{ nodes['a-b'] }} {{ nodes.now }} {{ nodes.struct.output }}", "dashed never seen public"},
		{"{{ now }} {{ env.CITY }}", "2026-11-01T08:05:09Z Berlin"},
		{"{{ trigger.payload.list[0] }}{{ trigger.payload.list[-1] }}{{ trigger.payload.list.1 }}", "bca"},
		{"{{ trigger.payload.s[1] }}{{ trigger.payload.s[1:4] }}{{ 'añb'[1:] }}{{ 'abcdef'[::-2] }}{{ [1,2,3][:-1] }}", "eellñbfdb[1, 2]"},
		{"{{ 'é'[0] }}|{{ 'abc'[5:1] }}|{{ [1,2,3][9:] }}|{{ [1,2,3][::-1] }}", "é||[]|[3, 2, 1]"},

		// how values look
		{"{{ none }} {{ None }} {{ true }} {{ False }} {{ 1.0 }} {{ 1e20 }} {{ 0.5 }} {{ 1_000 }}", "None None True False 1.0 1e+20 0.5 1000"},
		{"{{ ['a', 1, none, true, \"it's\"] }} {{ {'k': 'v'} }}", `['a', 1, None, True, "it's"] {'k': 'v'}`},
		{"{{ trigger.payload.n }} {{ trigger.payload.f }} {{ trigger.payload.t }} {{ trigger.payload.nil }}", "3 2.5 True None"},
		{`{{ "a\nb" }}{{ 'c\'d' }}{{ "e\"f" }}`, "a\nbc'de\"f"},

		// operators
		{"{{ 1 + 2 * 3 - 4 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ (-1) ** 3 }}", "3 3.5 3 -4 2 1024 0.5 -1"},
		{"{{ 'a' + 'b' ~ 1 ~ 2.0 }} {{ [1] + [2] }} {{ 1.5 + 1 }} {{ -5.5 // 2 }} {{ -5.5 % 2 }}", "ab12.0 [1, 2] 2.5 -3.0 0.5"},
		{"{{ 1 < 2 and 'a' < 'b' and not 2 <= 1 and 2 >= 2.0 and 1 != 2 and 1 == 1.0 }}", "True"},
		{"{{ '' or 'x' }} {{ 'a' and 'b' }} {{ not '' }} {{ 0 or none }}", "x b True None"},
		{"{{ 'ell' in trigger.payload.s }} {{ 'a' in trigger.payload.list }} {{ 'x' in trigger.payload.map }} {{ 'z' not in trigger.payload.map }}", "True True True True"},
		{"{{ [1, {'a': 2}] == [1, {'a': 2}] }} {{ 'a' == 1 }} {{ none == none }} {{ true == true }} {{ [1] == 1 }} {{ 1 == [1] }}", "True False True True False False"},
		{"{{ trigger.at < now }} {{ now == now }}", "True True"},
		{"{{ 'yes' if trigger.payload.t else 'no' }}{{ 'x' if false }}", "yes"},

		// tests
		{"{{ nothing is defined }} {{ trigger.text is defined }} {{ trigger.nothing is undefined }} {{ nothing.at.all is not defined }}", "False True True True"},
		{"{{ none is none }} {{ 'a' is string }} {{ 1 is number }} {{ true is boolean }} {{ {} is mapping }} {{ [] is sequence }} {{ 3 is odd }} {{ 3 is even }} {{ 1 is iterable }}", "True True True True True True True False False"},
		{"{% if trigger.text is defined and trigger.payload.n == 3 %}a{% endif %}", "a"},

		// tags
		{"{% if false %}a{% elif 0 %}b{% elif 'x' %}c{% else %}d{% endif %}", "c"},
		{"{% if [] %}a{% else %}d{% endif %}", "d"},
		{"{% for x in [3,1] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}:{{ x }} {% endfor %}", "10TrueFalse221:3 21FalseTrue210:1 "},
		{"{% for k, v in trigger.payload.map %}{{ k }}={{ v|int }};{% endfor %}{% for k, v in trigger.payload.map.items() %}{{ k }}{% endfor %}", "x=1;y=2;xy"},
		{"{% for k in trigger.payload.map %}{{ k }}{% endfor %}{% for c in 'héy' %}<{{ c }}>{% endfor %}", "xy<h><é><y>"},
		{"{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }} {% endfor %}", "12 34 "},
		{"{% for x in range(5) if x is odd %}{{ x }}{{ loop.length }} {% else %}none{% endfor %}", "12 32 "},
		{"{% for x in [] %}a{% else %}none{% endfor %}{% for x in [1] if x > 1 %}a{% else %}none{% endfor %}", "nonenone"},
		{"{% for x in [1,2] %}{% for y in [1,2] %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}", "121 122 "},
		{"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "21"},
		{"{% set x %}a{{ 1 }}b{% endset %}{{ x|upper }}{% set y = 'p' if x else 'q' %}{{ y }}", "A1Bp"},
		{"{% if true %}{% set z = 5 %}{% endif %}{{ z }}", "5"},
		{"{{ range(3) }} {{ range(1, 4) }} {{ range(5, 0, -2) }} {{ range(0) }}", "[0, 1, 2] [1, 2, 3] [5, 3, 1] []"},
		{"a {# not {{ here }} #} b", "a  b"},
		{"{% raw %}{{ not }} {% this %}{% endraw %}{% raw %}{% endraw %}", "{{ not }} {% this %}"},
		{"a \n {%- if true -%} \n b \n {%- endif %} c {{- 1 -}} d {#- x -#} e", "ab c1de"},
		{"x{% if true %}\ny\n{% endif %}\n", "x\ny\n\n"},

		// layouts that people write
		{"{{\n  trigger.user.name\n  | upper\n}}", "ANN"},
		{"{%\n  if\n  true\n%}a{% endif\n%}", "a"},
		{"{{ 'a' in\n ['a'] and\n not\n false }}", "True"},
		{"{% if (1 == 1)and(2 == 2)or(false) %}a{% endif %}", "a"},
		{"{{ {'in': 1, 'or': 2}.or }}{{ {'in': 1}.in }}", "21"},
		{"{{ {'a': {'b': 1}}.a.b }}{{ {} }}{{ {'a': {'b': {}}} }}", "1{}{'a': {'b': {}}}"},
		{"a\r\nb {{ 1 }}\r\n", "a\nb 1\n"},
		{"{{ 'x' not in 'AXB'|lower }}{{ true and 'x' in 'AXB'|lower }}", "FalseTrue"},
		{"{{ 'x' in 'AXB'|lower }}{{ 'X' in 'axb'|upper|lower }}{{ ('a' in 'a')|tojson }}{{ ('a' in ('b'))|tojson }}", "TrueFalsetruefalse"},
		{"{{'a'}}{{\"b\"}}{{1}}", "ab1"},
		{"{ {{ '{' }} }", "{ { }"},
		{`{{ 'a\\' ~ "\d" ~ 'C:\x\'' }}{{ '}}' ~ "%}" }}`, `a\\dC:\x'}}%}`},
		{"{{ {'a': {}}}}{{ {'a': 1}['a']}}{% if {'a': 1}%}y{% endif %}", "{'a': {}}1y"},
		{"{%- raw -%} {{ x }} {%- endraw -%} z", "{{ x }}z"},
		{"{{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1.5e3 }} {{ [[1, 2]].0.1 }} {{ 5%3 }}", "31 3 15 1500.0 2 2"},
		{"{{ trigger.payload['items'] }}{{ trigger.payload.items }}", "minemine"},
	} {
		got, warnings, err := render(t, tt.text, Options{Strict: true})
		if err != nil || got != tt.want || warnings != nil {
			t.Errorf("%q\n got %q, %v, %v\nwant %q", tt.text, got, warnings, err, tt.want)
		}
	}
}

func TestFilters(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"{{ x|default('d') }}{{ ''|default('d') }}{{ ''|default('d', true) }}{{ x|default }}{{ x|default(default_value='n', boolean=true) }}", "ddn"},
		{"{{ x.y.z|default('deep') }}", "deep"},
		{"{{ 'aé'|upper }}{{ 'AÉ'|lower }}{{ \"hello wORLD it's o_k\"|title }}", "AÉaéHello World It's O_k"},
		{"<{{ ' a '|trim }}><{{ 'xxaxx'|trim('x') }}>", "<a><a>"},
		{"{{ [1, 'a', none]|join(', ') }}{{ 'abc'|join('-') }}{{ trigger.payload.rows|join('/', attribute='name') }}{{ []|join }}", "1, a, Nonea-b-cAnn/Bob"},
		{"{{ 'añ'|length }}{{ [1,2]|length }}{{ {'a':1}|length }}", "221"},
		{"{{ [1,2]|first }}{{ [1,2]|last }}{{ 'abc'|first }}{{ 'abc'|last }}{{ {'b':1,'a':2}|first }}", "12aca"},
		{"{{ 'aaa'|replace('a', 'b') }}{{ 'aaa'|replace('a', 'b', 2) }}{{ 'ab'|replace('', '-') }}{{ 'a'|replace(old='a', new='c', count=none) }}", "bbbbba-a-b-c"},
		{"{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz qux'|truncate(11, false, '...', 0) }}|{{ 'ab'|truncate(255) }}", "foo...|foo ba...|foo bar baz qux|foo bar...|ab"},
		{"{{ 42.55|round }} {{ 42.55|round(1, 'floor') }} {{ 42.1|round(method='ceil') }} {{ 7|round }} {{ 1234|round(-2) }} {{ 1e308|round(300) }}", "43.0 42.5 43.0 7.0 1200.0 1e+308"},
		{"{{ '42'|int }} {{ '3.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 3.7|int }} {{ true|int }} {{ none|int }} {{ '99999999999999999999'|int(-1) }} {{ 'inf'|int }}", "42 3 0 7 3 1 0 -1 0"},
		{"{{ '4.5'|float }} {{ 'x'|float }} {{ 4|float }} {{ 'x'|float(none) }}", "4.5 0.0 4.0 None"},
		{`{{ {'b': [1, "é<"], 'a': none}|tojson }} {{ 'a"b'|tojson }} {{ 1.0|tojson }} {{ now|tojson }}`, `{"a": null, "b": [1, "é<"]} "a\"b" 1.0 "2026-11-01T08:05:09Z"`},
		{"{{ {'a': [1, 2], 'b': {}}|tojson(indent=2) }}", "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}"},
		{"{{ now|date }} {{ now|date('%A, %-d %B %Y %H:%M:%S %% %j') }} {{ trigger.at|date('%F %T %Z %z %-I %p %a %b %y %m %e') }}", "2026-11-01 08:05 Sunday, 1 November 2026 08:05:09 % 305 2026-03-31 15:04:05 CEST +0200 3 PM Tue Mar 26 03 31"},
		{"{{ trigger.payload.date|date('%H') }} {{ '2026-01-02'|date('%d') }} {{ 0|date('%Y %s %u %w %V') }} {{ ''|date }}", "15 02 1970 0 4 4 01 "},
		{"{{ now|date('%-M %-H %-S') }} {{ '2026-01-01T00:00'|date('%-H|%-M') }}", "5 8 9 0|0"},
		{"{{ '  Mixed '|trim|lower|replace('m', 'M')|upper }}", "MIXED"},
	} {
		got, warnings, err := render(t, tt.text, Options{Strict: true})
		if err != nil || got != tt.want || warnings != nil {
			t.Errorf("%q\n got %q, %v, %v\nwant %q", tt.text, got, warnings, err, tt.want)
		}
	}
}

// What is inserted is text, whatever it looks like.
func TestValuesAreNoTemplates(t *testing.T) {
	got, _, err := render(t, "{% set x = trigger.text %}{{ x }}{{ [x]|join }}{% set y %}{{ x }}{% endset %}{{ y }}", Options{})
	want := strings.Repeat("please {{ 7*7 }} {% if %}", 3)
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestUndefined(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		warnings   []string
	}{
		{"a{{ x }}b", "ab", []string{"p: line 1: x is not defined; it is left empty"}},
		{"\n{{ trigger.usr.name }}{{ trigger.usr.name }}", "\n", []string{"p: line 2: trigger.usr.name is not defined; it is left empty"}},
		{"{{ env.HOME }}{{ nodes['x-y'].output }}", "", []string{"p: line 1: env.HOME is not defined; it is left empty", `p: line 1: nodes["x-y"].output is not defined; it is left empty`}},
		{"{{ trigger.payload.list[9] }}{{ trigger.text.upper }}", "", []string{"p: line 1: trigger.payload.list[9] is not defined; it is left empty", "p: line 1: trigger.text.upper is not defined; it is left empty"}},
		{"{% if x %}a{% else %}b{% endif %}", "b", []string{"p: line 1: x is not defined; it is left empty"}},
		{"{% for a in x %}a{% else %}b{% endfor %}", "b", []string{"p: line 1: x is not defined; it is left empty"}},
		{"{{ x + 1 + 2 }}{{ x ~ 'a' }}{{ x < 1 }}{{ x == 1 }}{{ -x }}", "aFalseFalse", []string{"p: line 1: x is not defined; it is left empty"}},
		{"{{ x|upper }}{{ x|length }}{{ x|round }}{{ x|int(3) }}{{ x|tojson }}{{ x|first }}{{ x|join }}{{ x|date }}", "03null", []string{"p: line 1: x is not defined; it is left empty"}},
		{"{{ []|first }}", "", []string{"p: line 1: the first of nothing is not defined; it is left empty"}},
		{"{{ 'a' in x }}{{ x in 'a' }}{{ x[1:] }}{{ x.items() }}{{ 'abc'[x] }}", "FalseFalse[]", []string{
			"p: line 1: x is not defined; it is left empty", `p: line 1: an expression[…] is not defined; it is left empty`,
		}},
		{"{{ loop }}{{ secret }}", "", []string{"p: line 1: loop is not defined; it is left empty", "p: line 1: secret is not defined; it is left empty"}},
		{"{{ nodes.struct.secret }}", "", []string{"p: line 1: nodes.struct.secret is not defined; it is left empty"}},
		{"{{ x is defined }}{{ x|default('') }}{{ 'a' if x is defined else '' }}", "False", nil},
	} {
		got, warnings, err := render(t, tt.text, Options{})
		if err != nil || got != tt.want || !reflect.DeepEqual(warnings, tt.warnings) {
			t.Errorf("%q\n got %q, %q, %v\nwant %q, %q", tt.text, got, warnings, err, tt.want, tt.warnings)
		}
		got, warnings, err = render(t, tt.text, Options{Strict: true})
		if tt.warnings == nil {
			if err != nil || got != tt.want {
				t.Errorf("%q, strict: %q, %v", tt.text, got, err)
			}
			continue
		}
		want := strings.TrimSuffix(tt.warnings[0], "; it is left empty")
		if err == nil || err.Error() != want || got != "" || warnings != nil {
			t.Errorf("%q, strict: %q, %q, %v, want %q", tt.text, got, warnings, err, want)
		}
	}
}

func TestManyWarnings(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "{{ name%d }}", i)
	}
	_, warnings, err := render(t, text.String(), Options{})
	if err != nil || len(warnings) != maxWarnings+1 || warnings[maxWarnings] != "p: more names are not defined" {
		t.Errorf("%d warnings, %v", len(warnings), err)
	}
}

// Syntax errors are found without values, and have a line.
func TestParseErrors(t *testing.T) {
	filtersThereAre := "default, upper, lower, title, trim, join, length, first, last, replace, truncate, round, int, float, tojson, date"
	for _, tt := range []struct {
		text, want string
		line       int
	}{
		{"a\n{{ x|uper }}", `there is no filter "uper"; there are ` + filtersThereAre, 2},
		{"{{ x|attr('a') }}", `there is no filter "attr"`, 1},
		{"{{ [1]|map('upper') }}", `there is no filter "map"`, 1},
		{"\n\n{% include 'a.txt' %}", `there is no tag "include"; there are if, for, set and raw`, 3},
		{"{% import 'a' as b %}", `there is no tag "import"`, 1},
		{"{% from 'a' import b %}", `there is no tag "from"`, 1},
		{"{% extends 'a' %}", `there is no tag "extends"`, 1},
		{"{% macro a() %}{% endmacro %}", `there is no tag "macro"`, 1},
		{"{% block a %}{% endblock %}", `there is no tag "block"`, 1},
		{"{% do x %}", `there is no tag "do"`, 1},
		{"{% %}", "expected a tag name here", 1},
		{"{{ trigger.text.upper() }}", "trigger.text.upper cannot be called; there are range() and .items()", 1},
		{"{{ cycler('a') }}", "cycler cannot be called", 1},
		{"{{ ''.__class__.__mro__() }}", "cannot be called", 1},
		{"{{ self.x() }}", "self.x cannot be called", 1},
		{"{{ range() }}", "range takes one to three numbers", 1},
		{"{{ range(1, stop=2) }}", "range takes one to three numbers", 1},
		{"{{ x is divisibleby 3 }}", `there is no test "divisibleby"`, 1},
		{"{{ x is }}", "the name of a test is missing", 1},
		{"{{ x is defined 3 }}", "the test defined takes nothing", 1},
		{"a\n{% if x %}\nb", "{% if %} has no {% endif %}", 2},
		{"{% for x in y %}", "{% for %} has no {% endfor %}", 1},
		{"{% if x %}{% for y in z %}{% endif %}", "{% endif %} has no {% if %} before it", 1},
		{"{% endif %}", "{% endif %} has no {% if %} before it", 1},
		{"{% endfor %}", "{% endfor %} has no {% for %} before it", 1},
		{"{% set x %}", "{% set %} has no {% endset %}", 1},
		{"{% raw %}abc", "{% raw %} has no {% endraw %}", 1},
		{"{% if %}a{% endif %}", "expected either", 1},
		{"{% if x y %}a{% endif %}", "the condition does not end here", 1},
		{"{% if x %}a{% else y %}b{% endif %}", "{% else %} takes nothing", 1},
		{"{% for %}{% endfor %}", "a loop is written", 1},
		{"{% for a, b, c in x %}{% endfor %}", "a loop is written", 1},
		{"{% for a of x %}{% endfor %}", "a loop is written", 1},
		{"{% for a in x y %}{% endfor %}", "the loop's list does not end here", 1},
		{"{% for a in x recursive %}{% endfor %}", "the loop's list does not end here", 1},
		{"{% set 3 = x %}", "a value is set as", 1},
		{"{% set a.b = x %}", "a value is set as", 1},
		{"{% set a = 1 2 %}", "the value does not end here", 1},
		{"{% set a = %}", "expected either", 1},
		{"{{ }}", "expected either", 1},
		{"a\n{{ x\n\n", "{{ has no }}", 2},
		{"{{ x }", "a bracket is closed that was never opened: }", 1},
		{"{{ x %}", "a bracket is closed that was never opened", 1},
		{"{{ (x }}", "a bracket is not closed: ) is missing", 1},
		{"{{ (x] }}", "brackets are not closed in the order in which they were opened: ) is missing before ]", 1},
		{"{{ x) }}", "a bracket is closed that was never opened", 1},
		{"{{ 'abc }}\n\n", "a text in quotes has no end", 1},
		{"{# abc", "a comment {# has no end #}", 1},
		{"{{ a ! b }}", "the character '!' has no meaning here; write not", 1},
		{"a\n{{ a\n @ b }}", `the character '@' has no meaning here`, 3},
		{"{{ @a }}", `the character '@' has no meaning here`, 1},
		{"{{ a; }}", `the character ';' has no meaning here`, 1},
		{"{{ $a }}", `the character '$' has no meaning here`, 1},
		{"{{ a ? b }}", `the character '?' has no meaning here`, 1},
		{"{{ 1__0 }}", "a number is not written as numbers are", 1},
		{"{{ 99999999999999999999 }}", "a number is too large", 1},
		{"{{ 010 }}", "a number is not written as numbers are", 1},
		{"{{ 1a }}", "a number is not written as numbers are", 1},
		{"{{ 1. }}", "expected name or integer", 1},
		{"{{ ٣ }}", "the character '٣' has no meaning here", 1},
		{"{% if 0.\u2000 %}", "the character '\\u2000' has no meaning here", 1},
		{"{{ a b }}", "'}}' expected here", 1},
		{"{{ a + }}", "expected either", 1},
		{"{{ a. }}", "expected name or integer", 1},
		{"{{ a[] }}", "an expression is missing", 1},
		{"{{ a[1 }}", "a bracket is not closed: ] is missing", 1},
		{"{{ {'a': 1 }}", "a bracket is closed that was never opened: }", 1},
		{"{{ {a} }}", `expected ":"`, 1},
		{"{{ x|upper(1) }}", "the filter upper takes at most 0 values", 1},
		{"{{ x|replace('a') }}", "the filter replace needs the value new", 1},
		{"{{ x|join(sep=',') }}", `the filter join does not take "sep" here`, 1},
		{"{{ x|join(',', d=',') }}", `the filter join does not take "d" here`, 1},
		{"{{ x is defined|upper }}", `a filter cannot follow the test "defined"`, 1},
		{"{{ x| }}", "filter name must be an identifier", 1},
		{"{{ \xff }}", "the template is not valid UTF-8", 0},
		{strings.Repeat("{{ 1 }}", MaxTemplate/7+1), "the template has 262150 bytes; at most 262144 can be read", 0},
		{"{{ " + strings.Repeat("(", 100_000) + " }}", "brackets are nested too deeply", 1},
		{"{{ " + strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100) + " }}", "brackets are nested too deeply", 1},
		{"{{ a" + strings.Repeat(".a", 1000) + " }}", "the expression has too many parts", 1},
		{"{{ a" + strings.Repeat(" ~ a", 1000) + " }}", "the expression has too many parts", 1},
		{strings.Repeat("{% if x %}", 100) + strings.Repeat("{% endif %}", 100), "tags are nested too deeply", 1},
	} {
		_, err := Parse("agents.work.prompt", tt.text)
		var e *Error
		if !errors.As(err, &e) || e.Line != tt.line || !strings.Contains(e.Text, tt.want) || e.Name != "agents.work.prompt" {
			t.Errorf("%.80q: %v, want line %d: %s", tt.text, err, tt.line, tt.want)
		}
	}
}

// A payload that no template should walk through ends the template, not the
// process.
func TestOddData(t *testing.T) {
	deep := any("x")
	for range 100_000 {
		deep = []any{deep}
	}
	endless := map[string]any{}
	endless["self"] = endless
	type ring struct{ Next *ring }
	r := &ring{}
	r.Next = r
	tpl, err := Parse("p", "{{ trigger.payload }}")
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string]any{
		"deep": deep, "endless": endless, "ring": r, "function": func() {}, "channel": make(chan int), "panics": panics{},
	} {
		text, _, err := tpl.Render(Data{Trigger: Trigger{Payload: payload}}, Options{})
		if err == nil || text != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for name, tt := range map[string]struct {
		payload any
		want    string
	}{
		"nothing": {nil, "None"}, "typed nothing": {(*ring)(nil), "None"}, "bytes": {json.RawMessage(`{"a": 12345678901234567890}`), "{'a': 1.2345678901234567e+19}"},
		"number": {uint8(7), "7"}, "texts": {[]string{"a"}, "['a']"}, "huge": {json.Number("1e999"), "1e999"}, "int": {7, "7"},
	} {
		text, _, err := tpl.Render(Data{Trigger: Trigger{Payload: tt.payload}}, Options{})
		if err != nil || text != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, text, err, tt.want)
		}
	}
	tpl, err = Parse("p", "{{ now }}")
	if err != nil {
		t.Fatal(err)
	}
	if _, warnings, err := tpl.Render(Data{}, Options{}); err != nil || len(warnings) != 1 {
		t.Errorf("no data: %v, %v", warnings, err)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("a mistake of the host") }

// A text without tags comes back as it is, however long.
func TestPlain(t *testing.T) {
	for _, text := range []string{"", "hello", "a { b } %} }} #}", "{", "{ {", "a\r\nb\n", "\xff", strings.Repeat("x", 2*MaxOutput)} {
		tpl, err := Parse("p", text)
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		got, warnings, err := tpl.Render(Data{}, Options{Strict: true})
		if got != text || warnings != nil || err != nil || !tpl.Plain() {
			t.Errorf("%.40q became %.40q, %v, %v, plain %v", text, got, warnings, err, tpl.Plain())
		}
	}
	for _, text := range []string{"{{ 1 }}", "a{%raw%}{%endraw%}", "{#x#}", "{{{ 'a': 1 }}}"} {
		if tpl, err := Parse("p", text); err != nil || tpl.Plain() {
			t.Errorf("%q is plain, or %v", text, err)
		}
	}
}

// A comment alone leaves nothing; that is not the text as it is.
func TestOnlyComment(t *testing.T) {
	if got, _, err := render(t, "{# x #}", Options{}); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// One template serves many runs at the same time.
func TestConcurrentRenders(t *testing.T) {
	tpl, err := Parse("p", "{% for x in range(50) %}{{ x }}{{ trigger.user.name|upper }}{% endfor %}{{ 'a' in trigger.text|lower }}")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := tpl.Render(sample(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, _, err := tpl.Render(sample(), Options{}); got != want || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// The example of the guide does what the guide says.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "    prompt: |\n")
	example, _, _ = strings.Cut(example, "```")
	got, warnings, err := render(t, strings.ReplaceAll(example, "      ", ""), Options{Strict: true})
	want := "You help Ann in Telegram.\n\nToday is Sunday, 1 November 2026.\n"
	if err != nil || got != want || warnings != nil {
		t.Errorf("got %q, %v, %v, want %q", got, warnings, err, want)
	}
	for _, f := range filters() {
		if !strings.Contains(string(text), "`"+f.name+"`") {
			t.Errorf("the guide does not name the filter %s", f.name)
		}
	}
	for _, name := range testNames() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the guide does not name the test %s", name)
		}
	}
}
