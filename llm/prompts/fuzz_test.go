package prompts

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func seeds(f *testing.F) {
	for _, s := range []string{
		"hello {{ trigger.text }}", "{% for x in range(9) %}{{ loop.index }}{% else %}n{% endfor %}", "{% if a is defined and not b in c|lower %}{% elif 1 %}{% endif %}",
		"{% set x %}{{ {'a': [1, (2, 3)]}.a[0:1]|tojson(indent=2) }}{% endset %}{% raw %}{{{% endraw %}{# c #}", "{{ a if b else c }}{{- 1 -}}\n{%- set y = -2 ** 3 // 4 % 5 -%}",
		"{{ 'a'|replace('', 'b')|truncate(5)|title }}{{ now|date('%-d %B') }}", "{% include '/etc/hostname' %}", "{{ ''.__class__ }}", "{{ \n x\n in\n y }}", "{{ a @ b }}", "{{ f(in",
		"{%\nif 1 %}{% endif %}", "{{ 1e999 }}{{ 0x1F }}{{ 9223372036854775807 }}", "{{ x is }}", "{% for k, v in m.items() if k %}{% endfor %}", "{{ [1][::-1] }}", "{{ '\\", "{{ a[ }}", "{%0 {{0 ##0.\u2000", "{{ '\\\\' }}",
	} {
		f.Add(s)
	}
}

// FuzzParse: whatever the text, there is a template or an error with the name,
// and what was parsed can be filled within the limits.
func FuzzParse(f *testing.F) {
	seeds(f)
	data := sample()
	f.Fuzz(func(t *testing.T, text string) {
		tpl, err := Parse("p", text)
		if err != nil {
			var e *Error
			if tpl != nil || !errors.As(err, &e) || e.Name != "p" || e.Text == "" || e.Line < 0 || e.Line > 1+strings.Count(text, "\n")+strings.Count(text, "\r") {
				t.Fatalf("Parse(%q) = %v, %#v", text, tpl, err)
			}
			return
		}
		got, warnings, err := tpl.Render(data, Options{})
		again, _, twice := tpl.Render(data, Options{})
		if got != again || (err == nil) != (twice == nil) {
			t.Fatalf("%q gives %q, %v, then %q, %v", text, got, err, again, twice)
		}
		if err != nil && strings.Contains(err.Error(), "cannot be filled here") {
			t.Fatalf("%q: the renderer broke", text)
		}
		if !tpl.Plain() && len(got) > MaxOutput || len(warnings) > maxWarnings+1 {
			t.Fatalf("%q: %d bytes, %d warnings", text, len(got), len(warnings))
		}
		if tpl.Plain() && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		strict, none, err := tpl.Render(data, Options{Strict: true})
		if err == nil && (strict != got || none != nil || len(warnings) > 0) {
			t.Fatalf("%q: strict %q, else %q with %v", text, strict, got, warnings)
		}
	})
}

// FuzzSandbox: nothing of this machine comes out, whatever an expression asks
// for. The secret is in the environment, in a file, and in the fields of a
// value that JSON does not show.
func FuzzSandbox(f *testing.F) {
	const secret = "not-for-templates-8f3a"
	dir := f.TempDir()
	f.Chdir(dir)
	if err := os.WriteFile("a", []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Setenv("A", secret)
	for _, s := range []string{"env.A", "nodes.n.hidden", "n.Method()", "trigger.payload.Method", "self", "loop", "a|tojson", "nodes|tojson", "env['A']", "agent.hidden"} {
		f.Add("{{ "+s+" }}", "x")
	}
	f.Add("{% include 'a' %}", "{{ env.A }}")
	f.Add("{% import 'a' as x %}{{ x }}", "{% include 'a' %}")
	f.Fuzz(func(t *testing.T, text, value string) {
		tpl, err := Parse("p", text)
		if err != nil || tpl.Plain() {
			return
		}
		hidden := &host{hidden: secret, Shown: value}
		got, warnings, err := tpl.Render(Data{
			Trigger: Trigger{Text: value, Payload: hidden}, Nodes: map[string]any{"n": hidden}, Env: map[string]string{"B": value},
		}, Options{})
		if strings.Contains(got, secret) || strings.Contains(strings.Join(warnings, ""), secret) || err != nil && strings.Contains(err.Error(), secret) {
			t.Fatalf("%q shows the secret: %q, %v, %v", text, got, warnings, err)
		}
		if hidden.called {
			t.Fatalf("%q called a method of the host", text)
		}
		// A value alone comes out as it went in.
		whole, err := Parse("p", "{{ trigger.text }}{% set x = trigger.text %}{{ x }}")
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := whole.Render(Data{Trigger: Trigger{Text: value}}, Options{}); err == nil && got != value+value || err != nil && 2*len(value) <= MaxOutput {
			t.Fatalf("%q became %q, %v", value, got, err)
		}
		if _, err := Parse("p", value); err == nil && !utf8.ValidString(value) && tagged(value) {
			t.Fatalf("%q is not a text", value)
		}
	})
}

type host struct {
	hidden string
	called bool
	Shown  string
}

func (h *host) Method() string {
	h.called = true
	return h.hidden
}
