package prompts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestUses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"plain", ""},
		{"{{ trigger.text }}", "trigger.text"},
		{"{{ a.output.b[0].c }}", "a.output.b"},
		{`{{ a["b"] }} {{ a[i] }}`, "a.b a i"},
		{"{{ a | default('x') }} {{ b }}", "a? b"},
		{"{% if a.b is defined %}{{ a.b.c }}{{ a.x }}{% endif %}", "a.b? a.b.c? a.x"},
		{"{% for x in list.items() %}{{ x }}{{ loop.index }}{{ y }}{% endfor %}", "list y"},
		{"{% set n = a.b %}{{ n }}{{ range(3) }}{{ none }}", "a.b"},
		{"{{ 'x' if a else b.c|upper }}", "a b.c"},
		{"\n\n{{ a }}", "a"},
	} {
		template, err := Parse("", tt.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range template.Uses() {
			s := strings.Join(u.Path, ".")
			if u.Optional {
				s += "?"
			}
			if u.Line < 1 || u.Line > 1+strings.Count(tt.text, "\n") {
				t.Errorf("%q: %s in line %d", tt.text, s, u.Line)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q uses %q, want %q", tt.text, s, tt.want)
		}
	}
}

func TestValue(t *testing.T) {
	data := Data{Nodes: map[string]any{"a": map[string]any{"output": map[string]any{"list": []any{1, "x"}, "n": 2.5}}}, Names: map[string]any{"item": "i"}, Trigger: Trigger{Name: "chat"}}
	for _, tt := range []struct{ text, want string }{
		{"{{ a.output }}", `{"list":[1,"x"],"n":2.5}`},
		{"{{ a.list }}", `[1,"x"]`},
		{"{{ a.n * 2 }}", `5`},
		{"n: {{ a.n }}", `"n: 2.5"`},
		{"{{ item }}{{ trigger.name }}", `"ichat"`},
		{"{{ none }}", "null"},
		{"{{ true }}", "true"},
		{"plain", `"plain"`},
		{"{{ gone }}", `error line 1: gone is not defined`},
		{"{{ gone | default(3) }}", "3"},
	} {
		template, err := Parse("", tt.text)
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := template.Value(data, Options{Strict: true})
		b, _ := json.Marshal(v)
		got := string(b)
		if err != nil {
			got = fmt.Sprint("error ", err)
		}
		if got != tt.want {
			t.Errorf("%q is %s, want %s", tt.text, got, tt.want)
		}
	}
}
