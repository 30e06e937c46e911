package configs

import (
	"strings"
	"testing"
)

// A model name of an agent's own is reached as the configuration says, or not at all:
// it never moves a host or a key to another model.
func TestModelNamed(t *testing.T) {
	both := map[string]string{"KEY": "key", "OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k", "L": "l"}
	const (
		private = "model: {name: gpt-5, base_url: http://A/v1}\nagents: {private: {match: [telegram], model: {name: llama, base_url: http://B/v1, key: env:K}}}\n"
		claude  = "model: gpt-5\nagents: {s: {match: [slack], model: claude-sonnet-4-5}}\n"
		twice   = "model: {name: gpt-5, base_url: http://A/v1}\n" +
			"agents: {b: {match: [telegram], model: {name: llama, base_url: http://B/v1}}, c: {match: [slack], model: {name: llama, base_url: http://C/v1}}}\n"
		keys = "model: {name: gpt-5, base_url: http://A/v1}\n" +
			"agents: {b: {match: [telegram], model: {name: llama, base_url: http://B/v1, key: env:K}}, c: {match: [slack], model: {name: llama, base_url: http://B/v1, key: env:L}}}\n"
		alike = "model: {name: gpt-5, base_url: http://A/v1}\n" +
			"agents: {b: {match: [telegram], model: {name: llama, base_url: http://B/v1}}, c: {match: [slack], model: {name: llama, base_url: http://B/v1, max_tokens: 5}}}\n"
		second = "model: {name: gpt-5, base_url: http://A/v1, fallback: [{name: llama, base_url: http://B/v1, key: env:K}]}\n" +
			"agents: {c: {match: [slack], model: {name: llama, base_url: http://C/v1, fallback: []}}}\n"
		off = "model: {name: gpt-5, base_url: http://A/v1}\nagents: {b: {match: [telegram], model: {name: llama, base_url: 'B:1/v1'}}}\n"
	)
	for _, tt := range []struct {
		name, file, profile, model string
		want                       string // the route; a part of why it is off, after a "!"
		refused                    bool
	}{
		{"its own", private, DefaultProfile, "gpt-5", "openai gpt-5 http://A/v1 o", false},
		{"of another profile", private, DefaultProfile, "llama", "openai llama http://B/v1 k", false},
		{"of the default profile", private, "private", "gpt-5", "openai gpt-5 http://A/v1 o", false},
		{"of another provider", claude, DefaultProfile, "claude-sonnet-4-5", "anthropic claude-sonnet-4-5  a", false},
		{"and back", claude, "s", "gpt-5", "openai gpt-5  o", false},
		{"of no profile, at the same server", private, DefaultProfile, "gpt-5-mini", "openai gpt-5-mini http://A/v1 o", false},
		{"of no profile, Claude at a broker", private, DefaultProfile, "claude-x", "openai claude-x http://A/v1 o", false},
		{"of no profile and another provider", "model: gpt-5\n", DefaultProfile, "claude-x", "!another provider", true},
		{"of no profile and another provider, back", "model: claude-x\n", DefaultProfile, "gpt-5", "!another provider", true},
		{"two servers", twice, DefaultProfile, "llama", "!the profiles b, c", true},
		{"two servers, one its own", twice, "c", "llama", "openai llama http://C/v1 ", false},
		{"two keys", keys, DefaultProfile, "llama", "!the profiles b, c", true},
		{"two profiles, one route", alike, DefaultProfile, "llama", "openai llama http://B/v1 ", false},
		{"its own fallback", second, DefaultProfile, "llama", "openai llama http://B/v1 k", false},
		{"switched off", off, DefaultProfile, "llama", "!has no scheme", false},
		{"another key at its server", "model: {name: gpt-5, base_url: http://A/v1, key: env:KEY}\nagents: {b: {match: [telegram], model: {name: gpt-5-mini, base_url: http://A/v1, key: env:K}}, c: {match: [slack], model: {name: gpt-5-mini, base_url: http://A/v1, key: env:L}}}\n", DefaultProfile, "gpt-5-mini", "openai gpt-5-mini http://A/v1 key", false},
		{"the demo", "model: demo\n", DefaultProfile, "anything", "openai demo  o", false},
	} {
		c, _ := load(t, tt.file, both)
		m, refused := c.ModelNamed(c.Agents.Profiles[tt.profile].Model, tt.model)
		got := reached(m)
		if why, closed := strings.CutPrefix(tt.want, "!"); closed {
			if !strings.Contains(m.Off(), why) {
				t.Errorf("%s: off is %q, want %q", tt.name, m.Off(), why)
			}
			got = tt.want
		} else if m.Off() != "" {
			t.Errorf("%s: it is off: %s", tt.name, m.Off())
		}
		if got != tt.want || refused != tt.refused {
			t.Errorf("%s: got %q, refused %v; want %q, %v", tt.name, got, refused, tt.want, tt.refused)
		}
		if refused && (m.BaseURL != "" || len(m.Secrets()) > 2 || m.Secrets()[0].Value() != "") {
			t.Errorf("%s: the refused model keeps a route: %+v", tt.name, m)
		}
	}
}
