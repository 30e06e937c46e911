package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/webhook"
	"github.com/claybot/claybot/llm/prompts"
)

// Of what a template cannot be filled with, the sender is told if less would do; the mistakes of
// a template are the operator's.
func TestHookTemplates(t *testing.T) {
	nested := any("x")
	for range 9_999 {
		nested = []any{nested}
	}
	for name, tt := range map[string]struct {
		prompt  string
		payload any
		ok      bool
		much    bool
	}{
		"a text":                    {"", "x", true, false},
		"240,000 characters":        {"", strings.Repeat("x", 240_000), true, false}, // refused later, with the number
		"300,000 characters":        {"", strings.Repeat("x", 300_000), false, true},
		"a million":                 {"", strings.Repeat("x", 1_000_000), false, true},
		"nested":                    {"", nested, false, true},
		"nested, a part":            {"{{ trigger.event }}", nested, false, true},
		"a mistake of the template": {"{{ trigger.payload // 0 }}", "x", false, false},
	} {
		fill, err := hookTemplates("ci", &configs.Webhook{Prompt: tt.prompt})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, _, err = fill(prompts.Data{Trigger: prompts.Trigger{Payload: tt.payload}})
		if (err == nil) != tt.ok || errors.Is(err, webhook.ErrTooMuch) != tt.much {
			t.Errorf("%s: %v", name, err)
		}
	}
}
