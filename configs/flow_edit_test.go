package configs_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

const editedFlow = `# Takes orders.
owner: telegram/1001   # the shop
triggers: {chat: {on: telegram}}
start: what
nodes:
  what: {kind: template, value: "{{ trigger.text }}", next: ask} # why
  # Asks before it buys.

  ask:
    kind: ask   # a question
    text: |
      Order {{ what.output }}?

        # no comment
    by: [telegram/1001,
      telegram/1002] # both
    denied: sorry
    # the way on
    next: pick
  pick:
    kind: switch
    value: a long text
      of two lines
    cases: {tea: brew, 'juice': sorry,
      7: brew,}
    else: sorry # otherwise
  brew: {kind: tool, tool: brew, args: {n: 1, deep: {a: [1, "x, y"]}}, next: sorry}
  sorry: {kind: reply, text: "Not ordered.", next: END}
# the end
`

// An edit changes its value alone: each other line, comment and key stays as it is.
func TestEditFlow(t *testing.T) {
	for _, test := range []struct {
		name, path, value, rename, old, next string
	}{
		{"a value of the root", "owner", `"slack/U1"`, "", "owner: telegram/1001 ", "owner: slack/U1 "},
		{"a value in braces", "nodes what next", `"pick"`, "", "next: ask}", "next: pick}"},
		{"a text that needs quotes in braces", "nodes sorry text", `"a, {b}"`, "", `"Not ordered."`, `"a, {b}"`},
		{"a text with quotes", "nodes sorry text", `"\"a\", \\n"`, "", `"Not ordered."`, `'"a", \n'`},
		{"a text that YAML reads otherwise", "nodes sorry text", `"yes"`, "", `"Not ordered."`, `"yes"`},
		{"a duration", "nodes ask expires", `"10m"`, "", "    next: pick\n", "    next: pick\n    expires: 10m\n"},
		{"a value before a comment", "nodes ask kind", `"wait"`, "", "kind: ask   #", "kind: wait   #"},
		{"lines before a comment", "nodes ask kind", `"a\nb"`, "", "kind: ask   #", `kind: "a\nb"   #`},
		{"a text of lines", "nodes ask text", `"One.\nTwo.\n"`, "", "      Order {{ what.output }}?\n\n        # no comment\n", "      One.\n      Two.\n"},
		{"one line for lines", "nodes ask text", `"One."`, "", "|\n      Order {{ what.output }}?\n\n        # no comment\n", "One.\n"},
		{"a list of lines", "nodes ask by", `["telegram/1"]`, "", "[telegram/1001,\n      telegram/1002] #", "[telegram/1] #"},
		{"a plain text of lines", "nodes pick value", `"x"`, "", "a long text\n      of two lines", "x"},
		{"a case", "nodes pick cases juice", `"brew"`, "", "'juice': sorry", "'juice': brew"},
		{"a case that is a number", "nodes pick cases 7", `"sorry"`, "", "7: brew", "7: sorry"},
		{"a new case", "nodes pick cases milk", `"brew"`, "", "7: brew,}", "7: brew, milk: brew,}"},
		{"another name for a case", "nodes pick cases juice", "", "water", "'juice': sorry", "water: sorry"},
		{"a case less", "nodes pick cases tea", "", "", "{tea: brew, 'juice'", "{'juice'"},
		{"the last case less", "nodes pick cases 7", "", "", ",\n      7: brew,}", ",}"},
		{"one argument of a group", "nodes brew args", `{"n": 2, "deep": {"a": [1, "x, y"]}}`, "", "n: 1", "n: 2"},
		{"an argument more and one less", "nodes brew args", `{"deep": {"a": [1, "x, y"]}, "m": true}`, "", `n: 1, deep: {a: [1, "x, y"]}`, `deep: {a: [1, "x, y"]}, m: true`},
		{"other arguments", "nodes brew args", `{"m": null}`, "", `{n: 1, deep: {a: [1, "x, y"]}}`, `{m: null}`},
		{"no arguments", "nodes brew args", "", "", `args: {n: 1, deep: {a: [1, "x, y"]}}, `, ""},
		{"an argument deep down", "nodes brew args deep b c", `1.50`, "", `"x, y"]}`, `"x, y"], b: {c: 1.50}}`},
		{"a key less", "nodes ask denied", "", "", "    denied: sorry\n", ""},
		{"a key that is not there", "nodes ask expired", "", "", "", ""},
		{"the same value", "nodes ask by", `["telegram/1001", "telegram/1002"]`, "", "", ""},
		{"a small node", "nodes more", `{"kind": "reply", "text": "Hi: you", "next": "END"}`, "", "next: END}\n# the end", "next: END}\n  more: {kind: reply, text: \"Hi: you\", next: END}\n# the end"},
		{
			"a node of lines", "nodes more", `{"kind": "agent", "prompt": "One.\n\nTwo.", "tools": [], "next": "END"}`, "",
			"next: END}\n# the end", "next: END}\n  more:\n    kind: agent\n    prompt: |-\n      One.\n\n      Two.\n    tools: []\n    next: END\n# the end",
		},
		{"a node less", "nodes ask", "", "", editedFlow[strings.Index(editedFlow, "  ask:"):strings.Index(editedFlow, "  pick:")], ""},
		{"another name for a node", "nodes ask", "", "question", "  ask:\n", "  question:\n"},
		{"a value in YAML", "nodes brew args", "yaml:n: 1\ndeep: {a: [7]}\n", "", `[1, "x, y"]`, "[7]"},
		{"a new group", "concurrency max", `20`, "", "# the end\n", "# the end\nconcurrency: {max: 20}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := strings.Replace(editedFlow, test.old, test.next, 1)
			if test.name == "a new group" { // behind the last key, before the comments at the end
				want = strings.Replace(editedFlow, "# the end\n", "concurrency: {max: 20}\n# the end\n", 1)
			}
			e := flows.Edit{Path: strings.Fields(test.path), Value: json.RawMessage(test.value), Rename: test.rename}
			if text, ok := strings.CutPrefix(test.value, "yaml:"); ok {
				e.Value, e.YAML = nil, text
			}
			for _, ending := range []string{"\n", "\r\n"} {
				lines := func(s string) string { return strings.ReplaceAll(s, "\n", ending) }
				got, err := configs.EditFlow([]byte(lines(editedFlow)), []flows.Edit{e})
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != lines(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			}
		})
	}
}

// What cannot be changed alone is refused, and says why.
func TestEditFlowRefuses(t *testing.T) {
	const aliased = "nodes:\n  a: &a {kind: reply, next: END}\n  b: *a\n"
	for _, test := range []struct {
		name, text string
		edit       flows.Edit
		want       string
	}{
		{"no key", editedFlow, flows.Edit{Value: json.RawMessage(`1`)}, "names no key"},
		{"an empty key", editedFlow, flows.Edit{Path: []string{"nodes", ""}, Value: json.RawMessage(`1`)}, "names no key"},
		{"below a text", editedFlow, flows.Edit{Path: []string{"nodes", "sorry", "text", "x"}, Value: json.RawMessage(`1`)}, `"text" is no group of keys`},
		{"below an alias", aliased, flows.Edit{Path: []string{"nodes", "b", "next"}, Value: json.RawMessage(`"a"`)}, "is no group of keys"},
		{"bad JSON", editedFlow, flows.Edit{Path: []string{"owner"}, Value: json.RawMessage(`{"a":1,"a":2}`)}, "is there twice"},
		{"more JSON", editedFlow, flows.Edit{Path: []string{"owner"}, Value: json.RawMessage(`1 2`)}, "something follows it"},
		{"deep JSON", editedFlow, flows.Edit{Path: []string{"owner"}, Value: json.RawMessage(strings.Repeat("[", 30) + strings.Repeat("]", 30))}, "nested too deeply"},
		{"a name twice", editedFlow, flows.Edit{Path: []string{"nodes", "ask"}, Rename: "what"}, `a key "what" already`},
		{"a name of nothing", editedFlow, flows.Edit{Path: []string{"nodes", "x"}, Rename: "y"}, "no such key"},
		{"bad YAML", "a: [", flows.Edit{Path: []string{"a"}, Value: json.RawMessage(`1`)}, "did not find"},
	} {
		if got, err := configs.EditFlow([]byte(test.text), []flows.Edit{test.edit}); err == nil || !strings.Contains(err.Error(), test.want) && !errors.Is(err, configs.ErrByHand) {
			t.Errorf("%s: %v, want %q\n%s", test.name, err, test.want, got)
		}
	}
}

// A text without edits stays as it is. Edits that would lose a comment, a document or the ends of lines are
// made by hand.
func TestEditFlowByHand(t *testing.T) {
	mixed := "owner: a\r\nstart: b\n"
	if got, err := configs.EditFlow([]byte(mixed), nil); err != nil || string(got) != mixed {
		t.Errorf("without edits: %q %v", got, err)
	}
	for _, test := range []struct{ name, text, path, value string }{
		{"mixed ends of lines", mixed, "owner", `"c"`},
		{"two documents", "owner: a\n---\nowner: b\n", "owner", `"c"`},
		{"a comment behind an entry", "args: {\n  a: 1, # one\n  b: 2, # two\n  c: 3}\n", "args b", ""},
		{"a comment before an entry", "args: {\n  # one\n  a: 1,\n  # two\n  b: 2}\n", "args a", ""},
		{"a comment behind the last entry", "args: {\n  a: 1,\n  b: 2 # two\n}\n", "args b", ""},
		{"a comment before a text", "text: | # why\n  One.\nnext: END\n", "text", `"Two.\n"`},
	} {
		e := flows.Edit{Path: strings.Fields(test.path), Value: json.RawMessage(test.value)}
		if got, err := configs.EditFlow([]byte(test.text), []flows.Edit{e}); !errors.Is(err, configs.ErrByHand) {
			t.Errorf("%s: %v\n%s", test.name, err, got)
		}
	}
}

// The forms have the keys of each kind, with what the file says, also where it has faults.
func TestFlowForms(t *testing.T) {
	const text = `start: a
nodes:
  a: {kind: agent, prompt: "x", tools: [b, c], tries: 2, output: {n: number}, next: END, error: s}
  s: {kind: switch, value: v, cases: {x: a, 7: END}, else: END, txet: typed}
  p:
    kind: parallel
    branches: {one: {kind: agent, prompt: y}, two: {kind: flow, flow: z}}
  w: {kind: nothing, next: a}
  f: {kind: flow, flow: z, wait: false}
  bad: [x]
`
	start, all, err := configs.FlowForms([]byte(text))
	if err != nil || start != "a" || len(all) != 6 {
		t.Fatalf("%s %d %v", start, len(all), err)
	}
	field := func(form int, key string) flows.FormField {
		i := slices.IndexFunc(all[form].Fields, func(f flows.FormField) bool { return f.Key == key })
		if i < 0 {
			t.Fatalf("%s has no field %s", all[form].Name, key)
		}
		return all[form].Fields[i]
	}
	for _, want := range []struct {
		form             int
		key, kind, value string
	}{
		{0, "prompt", flows.FieldOfText, "x"},
		{0, "tools", flows.FieldOfLines, "b\nc"},
		{0, "tries", flows.FieldOfNumber, "2"},
		{0, "output", flows.FieldOfYAML, "n: number"},
		{0, "next", flows.FieldOfNode, "END"},
		{0, "memory", flows.FieldOfOne, ""},
		{0, "timeout", flows.FieldOfLine, ""},
		{1, "cases", flows.FieldOfYAML, "x: a\n7: END"},
		{1, "txet", flows.FieldOfLine, "typed"},
		{3, "next", flows.FieldOfNode, "a"},
		{4, "wait", flows.FieldOfOne, "false"},
	} {
		if got := field(want.form, want.key); got.Kind != want.kind || got.Value != want.value {
			t.Errorf("%s.%s is %+v, want %s %q", all[want.form].Name, want.key, got, want.kind, want.value)
		}
	}
	if got := all[1].Edges; len(got) != 3 || strings.Join(got[1].Path, ".") != "cases.7" || got[1].To != "END" {
		t.Errorf("the edges are %+v", got)
	}
	if !slices.Equal(all[2].Parts, []string{"one", "two"}) || all[3].Kind != "nothing" || all[5].Kind != "" {
		t.Errorf("the nodes are %+v", all)
	}
	if _, _, err := configs.FlowForms([]byte("a: [")); err == nil {
		t.Error("no YAML is a form")
	}
}

// Every value of the examples can be set to another one and back: the file is the same then.
func TestEditFlowThereAndBack(t *testing.T) {
	files, err := filepath.Glob("../examples/flows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, ".test.yaml") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, faults := configs.ReadFlow(path, text)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		for _, n := range f.Nodes {
			for _, e := range n.Edges() {
				if e.Key == "cases" {
					continue
				}
				set := func(text []byte, to string) []byte {
					next, err := configs.EditFlow(text, []flows.Edit{{Path: []string{"nodes", n.Name, e.Key}, Value: json.RawMessage(`"` + to + `"`)}})
					if err != nil {
						t.Fatalf("%s: %s.%s: %v", path, n.Name, e.Key, err)
					}
					return next
				}
				other := set(text, "elsewhere")
				if string(set(other, e.To)) != string(text) || strings.Count(string(other), "\n") != strings.Count(string(text), "\n") {
					t.Errorf("%s: %s.%s changes more than its value", path, n.Name, e.Key)
				}
			}
		}
	}
}

// Whatever is edited, the result is the file with that edit, or an error.
func FuzzEditFlow(f *testing.F) {
	f.Add([]byte(editedFlow), "nodes ask text", `"x"`, "")
	f.Add([]byte("a: {b: c}\n"), "a b", "", "")
	f.Add([]byte("a:\n- b\n- {c: 'd'} # e\n"), "a", `{"x": ["y\nz"]}`, "")
	f.Add([]byte("? a\n: b\n"), "a", `""`, "c")
	f.Fuzz(func(t *testing.T, text []byte, path, value, rename string) {
		next, err := configs.EditFlow(text, []flows.Edit{{Path: strings.Fields(path), Value: json.RawMessage(value), Rename: rename}})
		if err == nil && rename == "" && value != "" {
			again, err := configs.EditFlow(next, []flows.Edit{{Path: strings.Fields(path), Value: json.RawMessage(value)}})
			if err != nil || string(again) != string(next) {
				t.Errorf("the same edit again changes %q to %q: %v", next, again, err)
			}
		}
	})
}
