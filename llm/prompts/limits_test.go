package prompts

import (
	"strings"
	"testing"
)

// Values that do not fit stop the template, with a line.
func TestRenderErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"{{ 1 / 0 }}", "line 1: a number is divided by 0"},
		{"\n{{ 1 // 0 }}", "line 2: a number is divided by 0"},
		{"{{ 1 % 0 }}{{ 1.0 % 0 }}", "line 1: a number is divided by 0"},
		{"{{ 1.5 / 0.0 }}", "line 1: a number is divided by 0"},
		{"{{ 9223372036854775807 + 1 }}", "the number becomes too large"},
		{"{{ -9223372036854775807 - 2 }}", "the number becomes too large"},
		{"{{ 9223372036854775807 * 2 }}", "the number becomes too large"},
		{"{{ 10 ** 1000000000 }}", "the number becomes too large"},
		{"{{ 'a' * 1000000000 }}", "a text and a number cannot be put together"},
		{"{{ 'a' + 1 }}", "a text and a number cannot be put together"},
		{"{{ 1 < 'a' }}", "a number cannot be compared with a text"},
		{"{{ none < none }}", "none cannot be compared with none"},
		{"{{ 1 in 2 }}", "nothing can be in a number"},
		{"{{ 1 in 'a' }}", "only a text can be in a text"},
		{"{{ -'a' }}", "a text has no sign"},
		{"{{ 1|length }}", "a number has no length"},
		{"{{ none|length }}", "none has no length"},
		{"{{ 'a'|round }}", "a text cannot be rounded"},
		{"{{ 1|round(0, 'up') }}", "the filter round has the methods"},
		{"{{ 1|round(999) }}", "precision of 999"},
		{"{{ 1|round('a') }}", "the filter round cannot use a text here"},
		{"{{ 'x'|date }}", `"x" is not a date such as`},
		{"{{ true|date }}", "true or false is not a date"},
		{"{{ now|date('%Q') }}", "has a part %Q that is not known"},
		{"{{ now|date('%') }}", "ends within a %"},
		{"{{ 'abc'|truncate(1) }}", "needs a length that has room"},
		{"{{ 1|tojson(99) }}", "indents by 0 to 8"},
		{"{{ range(1, 10, 0) }}", "the step of range must not be 0"},
		{"{{ range('a') }}", "range needs whole numbers, not a text"},
		{"{{ range(1.5) }}", "range needs whole numbers, not a number"},
		{"{{ [1][::0] }}", "the step of a part must not be 0"},
		{"{{ [1]['a':] }}", "the bounds of a part must be whole numbers"},
		{"{{ 1[0:] }}", "a number has no parts"},
		{"{{ {1: 2} }}", "the keys of an object must be texts"},
		{"{{ 1.5.items() }}", "a number has no items()"},
		{"{{ trigger.text.items() }}", "a text has no items()"},
		{"{% for x in 1 %}{% endfor %}", "a number has no entries"},
		{"{% for x, y in [1] %}{% endfor %}", "a loop with two names needs an object, or a list of pairs"},
		{"{% for x in [1] %}{% for y in loop %}{% endfor %}{% endfor %}", "a loop has no entries"},
	} {
		tpl, err := Parse("p", tt.text)
		if err == nil {
			var text string
			if text, _, err = tpl.Render(sample(), Options{}); text != "" {
				t.Errorf("%q: a text beside the error: %q", tt.text, text)
			}
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "p: line ") {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// Templates end, whatever they try, and leave no more than the limit behind.
func TestLimits(t *testing.T) {
	doubling := strings.Repeat("{% set x = x ~ x %}", 60)
	lists := strings.Repeat("{% set x = [x, x] %}", 60)
	for _, tt := range []struct{ name, text, want string }{
		{"output", "{% for i in range(10000) %}" + strings.Repeat("0123456789", 3) + "{% endfor %}", "the text becomes longer than 256 KiB"},
		{"turns", "{% for i in range(200) %}{% for j in range(200) %}{% endfor %}{% endfor %}", "more than 10000 turns"},
		{"turns one after another", strings.Repeat("{% for i in range(6000) %}{% endfor %}", 2), "more than 10000 turns"},
		{"turns of a condition", strings.Repeat("{% for i in range(6000) if false %}{% endfor %}", 2), "more than 10000 turns"},
		{"range", "{{ range(1000000000)|length }}", "range has more than 10000 numbers"},
		{"range downwards", "{{ range(0, -1000000000, -1)|last }}", "range has more than 10000 numbers"},
		{"range at the end of numbers", "{{ range(9223372036854775800, 9223372036854775807, 5)|length }}{% for i in range(200) %}{% for j in range(200) %}{% endfor %}{% endfor %}", "more than 10000 turns"},
		{"many ranges", "{% for i in range(9000) %}{{ range(9000)|length }}{% endfor %}", "takes too long"},
		{"doubled text", "{% set x = 'ab' %}" + doubling, "the text becomes longer than 256 KiB"},
		{"doubled body", "{% set x = 'ab' %}" + strings.Repeat("{% set x %}{{ x }}{{ x }}{% endset %}", 60), "the text becomes longer than 256 KiB"},
		{"doubled by replace", "{% set x = 'aa' %}" + strings.Repeat("{% set x = x|replace('a', 'aaaa') %}", 60), "the text becomes longer than 256 KiB"},
		{"replace of nothing", "{% set x = 'a'|replace('', '" + strings.Repeat("b", 100_000) + "')|replace('', '" + strings.Repeat("c", 100_000) + "') %}", "the text becomes longer than 256 KiB"},
		{"doubled list", "{% set x = [1] %}" + strings.Repeat("{% set x = x + x %}", 60), "takes too long"},
		{"shared list shown", "{% set x = 1 %}" + lists + "{{ x }}", "takes too long"},
		{"shared list as JSON", "{% set x = 1 %}" + lists + "{{ x|tojson }}", "takes too long"},
		{"shared lists compared", "{% set x = 1 %}" + lists + "{% set y = x %}{{ [x] == [y] }}", "takes too long"},
		{"deep list", "{% set x = 1 %}" + strings.Repeat("{% set x = [x] %}", 5000) + "{{ x }}", "nested too deeply"},
		{"joined", "{% set x = trigger.text %}{% for i in range(9999) %}{% set x = range(500)|join(',') %}{% endfor %}", "takes too long"},
		{"upper", "{% set x = '" + strings.Repeat("a", 100_000) + "' %}{% for i in range(9999) %}{% set y = x|upper %}{% endfor %}", "takes too long"},
		{"slices", "{% set x = '" + strings.Repeat("a", 100_000) + "' %}{% for i in range(9999) %}{% set y = x[1:] %}{% endfor %}", "takes too long"},
		{"letters", "{% set x = '" + strings.Repeat("a", 100_000) + "' %}{% for i in range(9999) %}{% set y = x[1] %}{% endfor %}", "takes too long"},
		{"contains", "{% set x = '" + strings.Repeat("a", 100_000) + "' %}{% for i in range(9999) %}{% set y = 'b' in x %}{% endfor %}", "takes too long"},
		{"trim", "{% set x = '" + strings.Repeat("ä", 60_000) + "' %}{% for i in range(99) %}{% set y = x|trim(x) %}{% endfor %}", "takes too long"},
		{"long name", "{% for i in range(9999) %}{{ " + strings.Repeat("a", 200_000) + " }}{% endfor %}", "takes too long"},
		{"long date", "{{ now|date('" + strings.Repeat("%A", 100_000) + "') }}", "takes too long"},
		{"date", "{{ now|date('" + strings.Repeat("%A"+strings.Repeat("x", 60), 4000) + "') }}", "the text becomes longer than 256 KiB"},
	} {
		tpl, err := Parse("p", tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		text, _, err := tpl.Render(sample(), Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || text != "" {
			t.Errorf("%s: %d bytes, %v, want %q", tt.name, len(text), err, tt.want)
		}
	}
}

// What is just within the limits passes.
func TestWithinLimits(t *testing.T) {
	for name, text := range map[string]string{
		"turns":  "{% for i in range(10000) %}{% endfor %}",
		"output": "{% set x = '" + strings.Repeat("a", 1024) + "' %}{% for i in range(256) %}{{ x }}{% endfor %}",
	} {
		if _, _, err := render(t, text, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
