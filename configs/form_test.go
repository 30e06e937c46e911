package configs

import (
	"slices"
	"strings"
	"testing"
)

// What a form offers, a file can say: its words, and the least and the most of a number.
func TestForms(t *testing.T) {
	seen := make(map[string]int)
	for _, key := range Keys() {
		if strings.Contains(key, "[]") || strings.HasPrefix(key, "connectors.") {
			continue
		}
		f := FormOf(key)
		seen[f.Kind]++
		values := f.Words
		if f.Kind == FormNumber {
			least, most, ok := strings.Cut(f.Limits, "..")
			if !ok {
				t.Errorf("%s: limits %q", key, f.Limits)
			}
			values = []string{least, most}
		}
		if (f.Kind == FormTruth || f.Kind == FormWord) && len(values) < 2 || f.Kind == FormTruth && len(values) != 2 {
			t.Errorf("%s: words %q", key, values)
		}
		for _, v := range values {
			text, err := Set(nil, key, v)
			if err != nil {
				t.Errorf("%s: %s: %v", key, v, err)
				continue
			}
			_, warnings := load(t, string(text), nil)
			if slices.ContainsFunc(warnings, func(w Warning) bool { return w.Key == key && strings.Contains(w.Text, "is not") }) {
				t.Errorf("%s: %s: %v", key, v, warnings)
			}
		}
	}
	for _, kind := range []string{FormTruth, FormWord, FormNumber, FormSecret, FormList, FormText} {
		if seen[kind] < 5 {
			t.Errorf("%d keys are of the kind %s", seen[kind], kind)
		}
	}
	for key, want := range map[string]string{
		"agents.sales.max_steps": FormNumber, "connectors.work.bot_token": FormSecret, "connectors.hook.scheme": FormWord, "agents.sales.tools": FormList, "no.such.thing": FormText,
		"agents.default.memory": FormTruth, "retention.runs": FormText, "model.keys": FormSecret,
	} {
		if got := FormOf(key).Kind; got != want {
			t.Errorf("%s is of the kind %s", key, got)
		}
	}
}
