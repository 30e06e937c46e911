package configs

import (
	"slices"
	"strings"
	"testing"
)

func TestChanged(t *testing.T) {
	const before = "model: gpt-5\naccess:\n  mode: pairing # why\nlog: json\nbudgets:\n  - {per: all, usd: 5}\n"
	for after, want := range map[string]string{
		before:                "",
		"# a note\n" + before: "",
		strings.Replace(before, "json", "text", 1):                         "log",
		strings.Replace(before, "usd: 5", "usd: 6", 1):                     "budgets",
		strings.Replace(before, "model: gpt-5", "model: {name: x1}", 1):    "model.name",
		strings.Replace(before, "model: gpt-5", "model: {name: gpt-5}", 1): "",
		strings.Replace(before, "log: json\n", "", 1) + "language: de\n":   "language log",
		"": "model.name access.mode log budgets",
	} {
		got, err := Changed([]byte(before), []byte(after))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", after, got, err, want)
		}
	}
	if _, err := Changed([]byte(before), []byte("a: [")); err == nil {
		t.Error("what is no YAML was compared")
	}
}

func TestDiff(t *testing.T) {
	text := func(s string) []string { return strings.Split(s, "") }
	for _, x := range []struct{ before, after, want string }{
		{"abcdef", "abcdef", ""},
		{"abcdef", "abXdef", " b-c+X d"},
		{"", "a", "+a"},
		{"abcdefgh", "Xbcdefgh", "-a+X b"},
		{"abcdefgh", "XbcdefgY", "-a+X b| g-h+Y"},
		{"abc", "acb", " a-b c+b"},
	} {
		var got strings.Builder
		for _, l := range Diff(text(x.before), text(x.after), 1) {
			if l.Mark == 0 {
				got.WriteByte('|')
				continue
			}
			got.WriteByte(l.Mark)
			got.WriteString(l.Text)
		}
		if got.String() != x.want {
			t.Errorf("%s, %s: %q, want %q", x.before, x.after, got.String(), x.want)
		}
	}
	long := slices.Repeat([]string{"a", "b"}, 2000)
	other := slices.Repeat([]string{"c", "a"}, 2000)
	if got := Diff(long, other, 0); len(got) == 0 {
		t.Error("no difference")
	}
}
